"""The median distance between training rows, the natural unit of a bandwidth."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .._threads import run_all, single_threaded_blas
from .._types import Rows
from .distances import DistanceTiles
from .rows import as_floats, distinct_rows

__all__ = ["median_distance", "merge_equal_rows"]

_ALL_PAIRS_UP_TO = 2048


def median_distance(X: ArrayLike | Rows, sample_weight: np.ndarray | None = None) -> float:
    """Return the weighted median of the positive Euclidean distances between rows (1.0 if there is none).

    A pair weighs the product of its rows' weights, so a row of weight 2 counts as two equal rows. Beyond
    2,048 distinct rows the median is that of 2,048 rows taken at equal steps of weight along a fixed random
    direction, which neither the order of the rows nor repeating all of them changes. Distances have the precision of
    the rows.
    """
    rows, weights = merge_equal_rows(X, sample_weight)
    if len(weights) > _ALL_PAIRS_UP_TO:
        rows, weights = _spread_rows(rows, weights)
    if len(weights) < 2:
        return 1.0
    squared, pair_weights = _pairs(rows.astype(as_floats(X).dtype), weights)
    if np.all(weights == weights[0]):
        middle = (len(squared) - 1) // 2
        return float(np.sqrt(np.partition(squared, middle)[middle]))
    order = np.argsort(squared, kind="stable")
    cumulative = np.cumsum(pair_weights[order])
    return float(np.sqrt(squared[order[np.searchsorted(cumulative, cumulative[-1] / 2)]]))


def _pairs(rows: Rows, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared distances and the weights of all pairs of rows."""
    table = DistanceTiles(rows, stored=False)

    def tile(first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
        squared, above, left = table.tile(first, second), table.blocks[first], table.blocks[second]
        both = weights[above, None] * weights[left]
        pairs = np.triu_indices(len(squared), 1) if first == second else ...
        return squared[pairs].ravel(), both[pairs].ravel()

    numbers = range(table.n_blocks)
    with single_threaded_blas():
        parts = run_all([partial(tile, first, second) for first in numbers for second in numbers[first:]])
    squared, pair_weights = zip(*parts, strict=True)
    return np.concatenate(squared), np.concatenate(pair_weights)


def merge_equal_rows(X: ArrayLike | Rows, sample_weight: np.ndarray | None = None) -> tuple[Rows, np.ndarray]:
    """Return the distinct rows of positive weight, in float64, and their total weights."""
    rows = as_floats(X)
    weights = np.ones(rows.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    used = np.flatnonzero(weights > 0)
    rows, number = distinct_rows(rows[used])
    return rows, np.bincount(number, weights[used], minlength=rows.shape[0])


def _spread_rows(rows: Rows, weights: np.ndarray) -> tuple[Rows, np.ndarray]:
    direction = np.random.RandomState(0).standard_normal(rows.shape[1])
    order = np.argsort(rows @ direction, kind="stable")
    cumulative = np.cumsum(weights[order])
    steps = (np.arange(_ALL_PAIRS_UP_TO) + 0.5) / _ALL_PAIRS_UP_TO * cumulative[-1]
    chosen, counts = np.unique(order[np.searchsorted(cumulative, steps)], return_counts=True)
    return rows[chosen], counts.astype(np.float64)
