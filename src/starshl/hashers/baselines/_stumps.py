"""Stumps [feature >= threshold], judged by the pairs of rows they separate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numba import njit
from numpy.typing import DTypeLike

from ..._common.labels import LabelsLike
from ..._common.validation import SamplesLike, check_choice, check_integer, check_rows
from ...exceptions import InputError
from ...learning.linalg import principal_directions, project
from ..base import BaseHasher
from ..supervision import Pairs, PairsLike, pairs_or_labels, require_both_kinds

StumpFeatures: TypeAlias = Literal["raw", "random", "pca"]


@dataclass(frozen=True, slots=True)
class RankedFeatures:
    """Features as ranks among their distinct values, which is all that a search for stumps needs.

    Parameters
    ----------
    ranks : array of shape (n_features, n_samples), int32
    values : list of n_features ascending arrays of distinct values
    projections : array of shape (n_features, n_features of X) if features are projections, else None
    """

    ranks: np.ndarray
    values: list[np.ndarray]
    projections: np.ndarray | None

    @property
    def n_values(self) -> np.ndarray:
        return np.array([len(values) for values in self.values])

    @property
    def n_stumps(self) -> int:
        return int((self.n_values - 1).sum())

    def threshold(self, feature: int, cut: int) -> float:
        """Return the threshold halfway between the values of rank ``cut`` and ``cut + 1``."""
        below, above = self.values[feature][cut : cut + 2]
        return float(_between(below, above))


def ranked_features(
    X: np.ndarray, kind: StumpFeatures, n_projections: int, rng: np.random.RandomState
) -> RankedFeatures:
    """Rank the columns of X ("raw"), random projections ("random") or principal components ("pca") of it."""
    check_choice(kind, "features", get_args(StumpFeatures))
    check_integer(n_projections, "n_projections", low=1)
    projections = None
    if kind == "random":
        projections = rng.standard_normal((n_projections, X.shape[1])).astype(X.dtype)
    elif kind == "pca":
        projections = principal_directions(X, min(n_projections, *X.shape))[0].astype(X.dtype)
    columns = (X if projections is None else project(X, projections)).T
    pairs = [np.unique(column, return_inverse=True) for column in columns]
    ranks = np.array([inverse for _, inverse in pairs], dtype=np.int32).reshape(len(pairs), len(X))
    return RankedFeatures(ranks, [values for values, _ in pairs], projections)


class StumpHasher(BaseHasher):
    """A hasher that compares one feature, or one projection, with one threshold per bit."""

    features: StumpFeatures
    n_pairs: int
    n_projections: int

    def _ranked_with_pairs(
        self, X: np.ndarray, y: LabelsLike, pairs: PairsLike | None, rng: np.random.RandomState
    ) -> tuple[RankedFeatures, Pairs]:
        """Return the features to cut and the pairs to judge cuts by; there are at least as many cuts as bits."""
        check_integer(self.n_pairs, "n_pairs", low=2)
        pairs = pairs_or_labels(self, pairs, y, len(X), n_pairs=self.n_pairs, random_state=rng)
        require_both_kinds(self, pairs)
        ranked = ranked_features(X, self.features, self.n_projections, rng)
        if self.n_bits > ranked.n_stumps:
            raise InputError(
                "{parameter} is {value}",
                "the {n_features} features of X have {most} distinct thresholds between training values",
                "Use at most {most} bits, or features='random'.",
                parameter="n_bits",
                value=self.n_bits,
                n_features=len(ranked.values),
                most=ranked.n_stumps,
            )
        return ranked, pairs

    def _keep_stumps(self, stumps: np.ndarray, ranked: RankedFeatures, dtype: DTypeLike) -> None:
        """Learn stumps given as (feature, cut), shape (n_bits, 2)."""
        self.features_ = stumps[:, 0]
        self.thresholds_ = np.array([ranked.threshold(*stump) for stump in stumps]).astype(dtype)
        self.projections_ = None if ranked.projections is None else ranked.projections[self.features_]

    def _learned_indices(self) -> dict[str, int]:
        # Projections are kept in the order of the bits; nothing is looked up by feature then.
        return {"features_": self.n_features_in_} if self.projections_ is None else {}

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return how far each stump's feature lies above its threshold, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        values = X[:, self.features_] if self.projections_ is None else project(X, self.projections_)
        return values - self.thresholds_


def separated_weights(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return every threshold that tells pairs apart, and the weight of the pairs it separates.

    The threshold t separates a pair of values if :math:`\min < t \le \max`, that is, if exactly one of
    them satisfies ``value >= t``. Each pair thus adds its weight over an interval, and one pass over the
    sorted ends gives the sum for all thresholds: O(n_pairs log n_pairs).

    Returns
    -------
    thresholds : array, ascending, one between every two neighboring distinct values
    sums : array of the same shape, :math:`\sum_p w_p [\min_p < t \le \max_p]`

    Examples
    --------
    >>> separated_weights(np.array([0.0, 1.0]), np.array([2.0, 5.0]), np.array([1.0, 10.0]))
    (array([0.5, 1.5, 3.5]), array([ 1., 11., 10.]))
    """
    values = np.concatenate([np.minimum(first, second), np.maximum(first, second)])
    events = np.concatenate([weights, -weights])
    order = np.argsort(values, kind="stable")
    values, sums = values[order], np.cumsum(events[order])
    last = np.flatnonzero(values[1:] > values[:-1])
    return _between(values[last], values[last + 1]), sums[last]


def _between(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    middle = below + (above - below) / 2
    # Between neighboring floating-point numbers there is no middle; the upper one separates as well.
    return np.where(middle > below, middle, above)


@njit(cache=True, nogil=True)
def separated_by_cuts(
    ranks: np.ndarray, first: np.ndarray, second: np.ndarray, weights: np.ndarray, sums: np.ndarray
) -> None:
    """Fill ``sums[k]`` with the weight of the pairs that a cut just above rank k separates.

    ``ranks`` holds the rank of each row among the distinct values of one feature. O(n_pairs + n_values).
    """
    sums[:] = 0.0
    for p in range(first.shape[0]):
        a, b = ranks[first[p]], ranks[second[p]]
        if a < b:
            sums[a] += weights[p]
            sums[b] -= weights[p]
        elif b < a:
            sums[b] += weights[p]
            sums[a] -= weights[p]
    for k in range(1, sums.shape[0]):
        sums[k] += sums[k - 1]


@njit(cache=True, nogil=True)
def best_stump(
    ranks: np.ndarray,
    n_values: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    weights: np.ndarray,
    start: int,
    stop: int,
    taken: np.ndarray,
) -> tuple[int, int, float]:
    """Return feature, cut and separated weight of the stump that separates the least weight.

    Looks at the features from ``start`` to ``stop``; ``taken`` lists (feature, cut) that are not allowed.
    The first of equals wins; feature -1 means that there is no stump.
    """
    best_feature, best_cut, best_sum = -1, -1, np.inf
    for f in range(start, stop):
        sums = np.empty(n_values[f])
        separated_by_cuts(ranks[f], first, second, weights, sums)
        for k in range(n_values[f] - 1):
            if sums[k] < best_sum:
                allowed = True
                for t in range(taken.shape[0]):
                    if taken[t, 0] == f and taken[t, 1] == k:
                        allowed = False
                        break
                if allowed:
                    best_feature, best_cut, best_sum = f, k, sums[k]
    return best_feature, best_cut, best_sum
