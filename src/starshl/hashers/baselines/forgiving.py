"""Forgiving hash: bits that keep groups together, whatever side each group takes (Baluja and Covell 2008)."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from math import comb

import numpy as np
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import run_all
from ..._common.validation import SamplesLike, Seed, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...exceptions import BundleFormatError
from ...learning.linalg import fill_by_tiles
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts
from ..supervision import require_labels
from ._forgiving_loops import boost_bit, vote
from ._stumps import ranked_features

# Up to here all labelings are listed, so that none comes twice before all have come once.
_MAX_LISTED_LABELINGS = 20_000


class ForgivingHash(BaseHasher):
    r"""Learn bits on which groups agree, with targets made up and then moved to where groups fall.

    Only groups of rows that belong together are known (here: classes). A bit starts from a random labeling of the
    groups, half of them +1. Stumps are boosted (AdaBoost) toward it; every few rounds the groups are labeled anew, the
    half with the larger mean output +1, so a group that cannot be kept on its side may change over while the labeling
    stays balanced. Out of a pool of such bits, trained on random rows and features, n_bits are selected one by one by

    .. math:: \text{quality}(b) - \lambda\, \overline{|\text{corr}(b, \text{selected})|}.

    The paper was not followed to the letter where it is silent: the numbers of rounds and of pooled bits are
    ours, quality is the agreement within groups times the entropy of the bit (an agreement of constant
    bits is worth nothing), and labelings are not repeated before all have been used. The paper ranks by hits
    in tables of such bits; here they make one plain code.

    Parameters
    ----------
    n_bits : int, default=32
    max_iter : int, default=100
        Rounds of boosting, one stump per round and bit.
    relabel_every : int, default=10
        Rounds between labelings, in the first half of the rounds.
    pool : int, default=4
        Trained bits per bit selected.
    diversity : float, default=0.5
        :math:`\lambda`.
    max_rows : int, default=2000
        Rows drawn to train one bit.
    max_features : int, default=100
        Features drawn for the stumps of one bit.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    features_ : array of shape (n_bits, max_iter)
    thresholds_ : array of shape (n_bits, max_iter)
    votes_ : array of shape (n_bits, max_iter)
        Signed weights of the stumps.
    n_iter_ : int
    labelings_ : array of shape (n_bits, n_classes), int8
        The final label of each group, in the order of the sorted classes.
    agreement_ : array of shape (n_bits,)
        Mean over groups of the absolute mean bit; 1 if every group is of one mind.
    objective_histories_ : array of shape (n_bits, max_iter)
        Mean exponential loss under the labeling of the time; never rises between labelings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import ForgivingHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = ForgivingHash(8, max_iter=20, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.7  # right digits among the ten nearest
    True
    >>> hasher.labelings_.sum(axis=1).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0]
    """

    facts = Facts(
        paper="Baluja, Covell: Learning to Hash: Forgiving Hash Functions and Applications",
        year=2008,
        labels="some",
        cost="pool x n_bits x rounds x rows x features drawn",
        samples="vectors and labels of groups",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        max_iter: int = 100,
        relabel_every: int = 10,
        pool: int = 4,
        diversity: float = 0.5,
        max_rows: int = 2000,
        max_features: int = 100,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.max_iter = max_iter
        self.relabel_every = relabel_every
        self.pool = pool
        self.diversity = diversity
        self.max_rows = max_rows
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> ForgivingHash:
        """Train a pool of bits on the labeled rows and select the best that differ.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The group of each row; unlabeled rows are not used.
        """
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        for name in ("max_iter", "relabel_every", "pool", "max_rows", "max_features"):
            check_integer(getattr(self, name), name, low=1)
        diversity = check_number(self.diversity, "diversity", low=0)
        X = check_rows(self, X, fitting=True)
        labels = require_labels(self, y, len(X), partial=True, n_classes=2)
        rng = check_random_state(self.random_state)
        rows, groups = X[labels.labeled], labels.index[labels.labeled]
        labelings = balanced_labelings(len(labels.classes), self.pool * n_bits, rng)
        tasks = [partial(self._train_bit, rows, groups, labeling, rng.randint(2**31)) for labeling in labelings]
        features, thresholds, votes, losses, labelings = (
            np.array(column) for column in zip(*run_all(tasks), strict=True)
        )
        bits = signs_of(_scores(rows, features, thresholds, votes)) > 0
        chosen, agreement = select_bits(bits, groups, n_bits, diversity)
        self.features_, self.thresholds_, self.votes_ = features[chosen], thresholds[chosen], votes[chosen]
        self.n_iter_ = int(self.max_iter)
        self.labelings_ = labelings[chosen].astype(np.int8)
        self.objective_histories_, self.agreement_ = losses[chosen], agreement[chosen]
        return self

    def _train_bit(
        self, X: np.ndarray, groups: np.ndarray, labeling: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return features, thresholds, votes and losses of the rounds of one bit, and the labeling it ended with."""
        rng = np.random.RandomState(seed)
        rows = np.sort(rng.choice(len(X), min(self.max_rows, len(X)), replace=False))
        columns = np.sort(rng.choice(X.shape[1], min(self.max_features, X.shape[1]), replace=False))
        ranked = ranked_features(X[np.ix_(rows, columns)], "raw", 1, rng)
        labeling = labeling.copy()
        features, cuts = np.zeros(self.max_iter, np.int64), np.zeros(self.max_iter, np.int64)
        votes, losses = np.zeros(self.max_iter), np.zeros(self.max_iter)
        boost_bit(
            ranked.ranks,
            ranked.n_values,
            groups[rows],
            labeling,
            self.max_iter,
            self.relabel_every,
            features,
            cuts,
            votes,
            losses,
        )
        # Where every feature is constant there is no cut, and the vote is zero.
        thresholds = [
            ranked.threshold(feature, cut) if weight else 0.0
            for feature, cut, weight in zip(features.tolist(), cuts.tolist(), votes.tolist(), strict=True)
        ]
        return columns[features], np.array(thresholds, X.dtype), votes, losses, labeling

    def _learned_indices(self) -> dict[str, int]:
        return {"features_": self.n_features_in_}

    def _check_restored(self) -> None:
        shapes = {np.shape(getattr(self, name)) for name in ("features_", "thresholds_", "votes_")}
        if len(shapes) > 1 or len(shapes.pop()) != 2:
            raise BundleFormatError.damaged("its stumps lack features, thresholds or votes")
        super()._check_restored()

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the weighted votes of the stumps, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        return _scores(X, self.features_, self.thresholds_, self.votes_)


def _scores(X: np.ndarray, features: np.ndarray, thresholds: np.ndarray, votes: np.ndarray) -> np.ndarray:
    def of(tile: slice) -> np.ndarray:
        scores = np.empty((len(X[tile]), len(features)))
        vote(X[tile], features, thresholds, votes, scores)
        return scores

    return fill_by_tiles(len(X), len(features), X.dtype, of)


def balanced_labelings(n_groups: int, n_wanted: int, rng: np.random.RandomState) -> np.ndarray:
    """Return random ±1 labelings of groups with n_groups // 2 of them +1, shape (n_wanted, n_groups).

    A labeling and its negative make the same bit. No such pair comes twice before all have come once, as
    long as there are few enough to list them.
    """
    half = n_groups // 2
    n_labelings = comb(n_groups, half) // (2 if n_groups % 2 == 0 else 1)
    labelings = np.full((n_wanted, n_groups), -1.0)
    if n_labelings > _MAX_LISTED_LABELINGS:
        for labeling in labelings:
            labeling[rng.permutation(n_groups)[:half]] = 1.0
        return labelings
    listed = list(combinations(range(n_groups), half))
    if n_groups % 2 == 0:
        listed = [groups for groups in listed if groups[0] == 0]
    rounds = [rng.permutation(n_labelings) for _ in range(-(-n_wanted // n_labelings))]
    for labeling, choice in zip(labelings, np.concatenate(rounds), strict=False):
        labeling[list(listed[choice])] = 1.0
    return labelings


def group_agreement(bits: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the mean over groups of the absolute mean ±1 bit, for each column of a boolean matrix."""
    signs = np.where(bits, 1.0, -1.0)
    sums = np.zeros((groups.max() + 1, bits.shape[1]))
    np.add.at(sums, groups, signs)
    return np.abs(sums / np.bincount(groups)[:, None]).mean(axis=0)


def select_bits(bits: np.ndarray, groups: np.ndarray, n_bits: int, diversity: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the bits selected one by one, and the agreement of every bit of the pool."""
    agreement = group_agreement(bits, groups)
    share = np.clip(bits.mean(axis=0), 1e-12, 1 - 1e-12)
    entropy = -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
    quality = agreement * entropy
    centered = bits - bits.mean(axis=0)
    norms = np.linalg.norm(centered, axis=0)
    unit = centered / np.where(norms > 0, norms, 1.0)
    chosen, overlap = [], np.zeros(bits.shape[1])
    free = np.ones(bits.shape[1], dtype=bool)
    for n_chosen in range(n_bits):
        value = quality - diversity * overlap / max(n_chosen, 1)
        best = int(np.argmax(np.where(free, value, -np.inf)))
        chosen.append(best)
        free[best] = False
        overlap += np.abs(unit[:, best] @ unit)
    return np.array(chosen), agreement
