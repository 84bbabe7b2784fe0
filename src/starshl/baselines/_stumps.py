"""Stumps [feature >= threshold], judged by the pairs of rows they separate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._validation import check_choice, check_integer
from ..linalg import principal_directions, project

__all__ = ["FEATURES", "RankedFeatures", "ranked_features", "refuse_too_many_bits", "separated_weights"]

FEATURES = ("raw", "random", "pca")


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


def ranked_features(X: np.ndarray, kind: str, n_projections: int, rng) -> RankedFeatures:
    """Rank the columns of X ("raw"), random projections ("random") or principal components ("pca") of it."""
    check_choice(kind, "features", FEATURES)
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


def refuse_too_many_bits(n_bits: int, ranked: RankedFeatures) -> None:
    """Raise if there are fewer distinct stumps than bits."""
    if n_bits > ranked.n_stumps:
        raise ValueError(
            f"n_bits is {n_bits}; the {len(ranked.values)} features of X have {ranked.n_stumps} distinct thresholds "
            f"between training values. Use at most {ranked.n_stumps} bits, or features='random'."
        )


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
