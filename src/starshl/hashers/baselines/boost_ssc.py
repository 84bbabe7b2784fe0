"""BoostSSC: similarity-sensitive coding by AdaBoost over pairs of rows (Shakhnarovich 2005)."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import run_all, tiles
from ..._common.validation import SamplesLike, Seed, check_integer, check_rows
from ..base import all_or_nothing
from ..facts import Facts
from ..supervision import Pairs, PairsLike
from ._shared import WeightedBits
from ._stumps import RankedFeatures, StumpFeatures, StumpHasher, best_stump

# More certainty than this would be an infinite weight for a stump without error.
_MAX_WEIGHT = 10.0
_TILE_FEATURES = 64  # per task: enough work to be worth handing out


class BoostSSC(WeightedBits, StumpHasher):
    r"""Boost stumps to agree on similar pairs and to differ on dissimilar ones, one stump per bit.

    A stump :math:`h(x) = [x_f \ge T]` votes :math:`c_p = +1` on a pair whose rows it gives the same value,
    -1 otherwise. With :math:`s_p = \pm1` the similarity and D the weights of the pairs, each round takes
    the stump that maximizes :math:`r = \sum_p D_p s_p c_p` over all features and thresholds, and then

    .. math::

        \alpha = \tfrac12 \log\frac{1 + r}{1 - r}, \qquad D_p \propto D_p e^{-\alpha s_p c_p}.

    r is maximized and not its magnitude: negating a bit does not negate the vote of a pair. The paper
    ranks by ``weighted_distances``, in which a differing bit counts by its weight in ``bit_weights_``; indexes
    compare codes by plain Hamming distance.

    A choice made here: :math:`\alpha` is capped at 10. When no stump is left with r > 0, the remaining bits are the
    best of the remaining stumps, with weight 0.

    Parameters
    ----------
    n_bits : int, default=32
        At most the number of distinct stumps.
    features : {"raw", "random", "pca"}, default="raw"
        What stumps look at: features of X, random projections or principal components.
    n_projections : int, default=256
        How many, for "random" and "pca".
    n_pairs : int, default=20000
        Pairs drawn from the labels, half of them similar. Ignored when ``fit`` is given pairs.
    unique : bool, default=True
        Take no stump twice: AdaBoost may, but a repeated bit tells nothing new.
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
    bit_weights_ : array of shape (n_bits,)
        :math:`\alpha` of each bit.
    objective_history_ : array of shape (n_bits,)
        Mean exponential loss of the pairs after each round; never rises.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import BoostSSC
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = BoostSSC(16, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.7  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Shakhnarovich: Learning Task-Specific Similarity",
        year=2005,
        labels="some",
        cost="n_bits x features x pairs",
        samples="vectors and labels or pairs",
        max_bits="distinct thresholds",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        features: StumpFeatures = "raw",
        n_projections: int = 256,
        n_pairs: int = 20_000,
        unique: bool = True,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.features = features
        self.n_projections = n_projections
        self.n_pairs = n_pairs
        self.unique = unique
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> BoostSSC:
        """Choose the stumps by pairs, or by pairs drawn from labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Labels; unlabeled rows enter no pair. Not read if pairs are given.
        pairs : (first, second, similarity), default=None
            Row indices, and +1 for similar, -1 for dissimilar; both kinds are needed.
        """
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        ranked, pairs = self._ranked_with_pairs(X, y, pairs, rng)
        stumps, self.bit_weights_, self.objective_history_ = _boost(ranked, pairs, n_bits, self.unique)
        self._keep_stumps(stumps, ranked, X.dtype)
        return self


def _boost(
    ranked: RankedFeatures, pairs: Pairs, n_rounds: int, unique: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return stumps as (feature, cut), their weights, and the exponential loss after each round."""
    signs = pairs.similarity.astype(np.float64)
    weights = np.full(len(pairs.first), 1.0 / len(pairs.first))
    stumps = np.empty((n_rounds, 2), dtype=np.int64)
    alphas, losses = np.empty(n_rounds), np.empty(n_rounds)
    loss = 1.0
    for b in range(n_rounds):
        taken = stumps[:b] if unique else stumps[:0]
        feature, cut = stumps[b] = _best_of_all(ranked, pairs, weights * signs, taken)
        above = ranked.ranks[feature] > cut
        votes = np.where(above[pairs.first] == above[pairs.second], 1.0, -1.0)
        r = float(np.sum(weights * signs * votes))
        alphas[b] = _stump_weight(r)
        weights *= np.exp(-alphas[b] * signs * votes)
        loss *= weights.sum()
        weights /= weights.sum()
        losses[b] = loss
    return stumps, alphas, losses


def _stump_weight(r: float) -> float:
    if r <= 0:
        return 0.0
    return _MAX_WEIGHT if r >= 1 else min(0.5 * np.log((1 + r) / (1 - r)), _MAX_WEIGHT)


def _best_of_all(ranked: RankedFeatures, pairs: Pairs, weights: np.ndarray, taken: np.ndarray) -> tuple[int, int]:
    n_values = ranked.n_values
    search = partial(best_stump, ranked.ranks, n_values, pairs.first, pairs.second, weights)
    best_of_tiles = run_all(
        [partial(search, tile.start, tile.stop, taken) for tile in tiles(len(n_values), _TILE_FEATURES)],
    )
    # min keeps the first of equals, so the answer does not depend on the tiles.
    feature, cut, _ = min((stump for stump in best_of_tiles if stump[0] >= 0), key=lambda stump: stump[2])
    return feature, cut
