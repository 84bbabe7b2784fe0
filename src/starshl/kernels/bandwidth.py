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

_ALL_PAIRS_UP_TO = 2048  # rows, or two million pairs: plenty for a median


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
    squared = _distances_of_pairs(rows.astype(as_floats(X).dtype))
    if np.all(weights == weights[0]):
        middle = (len(squared) - 1) // 2
        return float(np.sqrt(np.partition(squared, middle)[middle]))
    first, second = np.triu_indices(len(weights), 1)
    order = np.argsort(squared, kind="stable")
    cumulative = np.cumsum((weights[first] * weights[second])[order])
    return float(np.sqrt(squared[order[np.searchsorted(cumulative, cumulative[-1] / 2)]]))


def _distances_of_pairs(rows: Rows) -> np.ndarray:
    """Return the squared distances of all pairs of rows, in the order of ``numpy.triu_indices``."""
    table = DistanceTiles(rows, stored=False)
    squared = np.empty((table.n_rows, table.n_rows), dtype=rows.dtype)

    def fill(first: int, second: int) -> None:
        squared[table.blocks[first], table.blocks[second]] = table.tile(first, second)

    numbers = range(table.n_blocks)
    with single_threaded_blas():
        run_all([partial(fill, first, second) for first in numbers for second in numbers[first:]])
    return np.concatenate([row[i + 1 :] for i, row in enumerate(squared)])


def merge_equal_rows(X: ArrayLike | Rows, sample_weight: np.ndarray | None = None) -> tuple[Rows, np.ndarray]:
    """Return the distinct rows of positive weight, in float64, and their total weights."""
    rows = as_floats(X)
    weights = np.ones(rows.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not np.all(weights > 0):
        used = np.flatnonzero(weights > 0)
        rows, weights = rows[used], weights[used]
    rows, number = distinct_rows(rows)
    return rows, np.bincount(number, weights, minlength=rows.shape[0])


def _spread_rows(rows: Rows, weights: np.ndarray) -> tuple[Rows, np.ndarray]:
    direction = np.random.RandomState(0).standard_normal(rows.shape[1])
    order = np.argsort(rows @ direction, kind="stable")
    cumulative = np.cumsum(weights[order])
    steps = (np.arange(_ALL_PAIRS_UP_TO) + 0.5) / _ALL_PAIRS_UP_TO * cumulative[-1]
    chosen, counts = np.unique(order[np.searchsorted(cumulative, steps)], return_counts=True)
    return rows[chosen], counts.astype(np.float64)
