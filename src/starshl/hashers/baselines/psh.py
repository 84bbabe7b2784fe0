"""Parameter-sensitive hashing: random stumps out of those that respect similarity.

Shakhnarovich, Viola and Darrell 2003.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.validation import SamplesLike, Seed, check_integer, check_number, check_rows
from ..base import all_or_nothing
from ..facts import Facts
from ..supervision import Pairs, PairsLike
from ._stumps import RankedFeatures, StumpFeatures, StumpHasher, separated_by_cuts

# Stumps to draw from, per bit: fewer would leave little to chance, and bits would resemble each other.
_CANDIDATES_PER_BIT = 5


class ParamSensitiveHash(StumpHasher):
    r"""Draw bits at random from the stumps that keep similar pairs together and dissimilar ones apart.

    A stump :math:`h(x) = [x_f \ge T]` is a candidate if it gives one value to at least the share
    ``together`` of the similar pairs and to at most the share ``collide`` of the dissimilar pairs. All
    thresholds of a feature are judged in one pass over the pairs. n_bits candidates are drawn without
    replacement.

    A choice made here: neighboring thresholds of a feature are nearly the same bit, so only the best few of each
    feature are looked at, as few as give 5 n_bits stumps (one where there are that many features). If fewer than that
    qualify, both shares are relaxed by the same amount, the smallest that admits so many (``relaxation_``).

    Parameters
    ----------
    n_bits : int, default=32
        At most the number of distinct stumps.
    together : float, default=0.8
        p1 of the paper.
    collide : float, default=0.5
        p2 of the paper.
    features : {"raw", "random", "pca"}, default="raw"
        What stumps look at: features of X, random projections or principal components.
    n_projections : int, default=256
        How many, for "random" and "pca".
    n_pairs : int, default=20000
        Pairs drawn from the labels, half of them similar. Ignored when ``fit`` is given pairs.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    features_ : array of shape (n_bits,)
        The feature (or projection) of each stump.
    thresholds_ : array of shape (n_bits,)
    projections_ : array of shape (n_bits, n_features) or None
        What the features are projections onto, one row per bit.
    n_candidates_ : int
        Stumps that the bits were drawn from.
    relaxation_ : float
        By how much ``together`` was lowered and ``collide`` raised.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import ParamSensitiveHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = ParamSensitiveHash(16, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.6  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Shakhnarovich, Viola, Darrell: Fast Pose Estimation with Parameter-Sensitive Hashing",
        year=2003,
        labels="some",
        cost="features x (pairs + n)",
        samples="vectors and labels or pairs",
        max_bits="distinct thresholds",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        together: float = 0.8,
        collide: float = 0.5,
        features: StumpFeatures = "raw",
        n_projections: int = 256,
        n_pairs: int = 20_000,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.together = together
        self.collide = collide
        self.features = features
        self.n_projections = n_projections
        self.n_pairs = n_pairs
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> ParamSensitiveHash:
        """Judge all stumps by pairs, or by pairs drawn from labels, and draw the bits.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Labels; unlabeled rows enter no pair. Not read if pairs are given.
        pairs : (first, second, similarity), default=None
            Row indices, and +1 for similar, -1 for dissimilar; both kinds are needed.
        """
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        together = check_number(self.together, "together", low=0)
        collide = check_number(self.collide, "collide", low=0)
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        ranked, pairs = self._ranked_with_pairs(X, y, pairs, rng)
        stumps, kept, collided = stump_rates(ranked, pairs)
        missing = np.maximum(np.maximum(together - kept, collided - collide), 0.0)
        candidates = candidate_stumps(stumps[:, 0], missing, collided - kept, _CANDIDATES_PER_BIT * n_bits)
        self.relaxation_ = float(missing[candidates].max())
        self.n_candidates_ = len(candidates)
        chosen = stumps[rng.choice(candidates, n_bits, replace=False)]
        self._keep_stumps(chosen, ranked, X.dtype)
        return self


def stump_rates(ranked: RankedFeatures, pairs: Pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all stumps as (feature, cut) and the shares of similar and dissimilar pairs each keeps together.

    O(n_features (n_pairs + n_samples)).
    """
    stumps: list[np.ndarray] = []
    rates: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    kinds = [pairs.similarity == kind for kind in (1, -1)]
    ends = [(pairs.first[kind], pairs.second[kind], np.ones(kind.sum())) for kind in kinds]
    for feature, values in enumerate(ranked.values):
        stumps.append(np.column_stack([np.full(len(values) - 1, feature), np.arange(len(values) - 1)]))
        for rate, (first, second, weights) in zip(rates, ends, strict=True):
            separated = np.empty(len(values))
            separated_by_cuts(ranked.ranks[feature], first, second, weights, separated)
            rate.append(1.0 - separated[:-1] / len(first))
    return np.concatenate(stumps), np.concatenate(rates[0]), np.concatenate(rates[1])


def candidate_stumps(features: np.ndarray, missing: np.ndarray, tie_break: np.ndarray, n_wanted: int) -> np.ndarray:
    """Return the stumps that miss least among the best few of each feature, ``n_wanted`` or more.

    As few of each feature as give ``n_wanted`` altogether; ``tie_break`` orders those that miss equally.
    """
    n_wanted = min(n_wanted, len(missing))
    order = np.lexsort((tie_break, missing, features))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.searchsorted(features[order], features[order])
    shortlist = np.flatnonzero(place <= np.partition(place, n_wanted - 1)[n_wanted - 1])
    bound = np.partition(missing[shortlist], n_wanted - 1)[n_wanted - 1]
    return shortlist[missing[shortlist] <= bound]
