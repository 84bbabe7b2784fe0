"""Outliers: rows so far from all others that what is learned from both fits neither."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .warn import warn_caller

_FEWEST_ROWS = 20  # fewer do not tell what is typical
_ROWS_PER_OUTLIER = 100  # where more rows than one in so many are far, they are a group of their own
_MOST_SAMPLED = 1024
_TILE_ROWS = 4096
_QUESTIONED = 1e3  # times the typical distance: means and variances are those of the outlier
_FEWEST_STEPS = 32  # between the ends of a column; with fewer, rounding decides which rows are near


@dataclass(frozen=True, slots=True)
class Spread:
    """Half of the median row, and half of the typical distance from it, in the largest coordinate.

    Halves, because the difference of two finite numbers may not be finite.
    """

    center: np.ndarray
    typical: float

    @classmethod
    def of(cls, X: np.ndarray) -> Spread | None:
        """Return the spread of the rows; None if there are too few, or most of them are equal."""
        if len(X) < _FEWEST_ROWS or X.shape[1] == 0:
            return None
        sample = _halves(X[:: -(-len(X) // _MOST_SAMPLED)])
        center = _middle(sample)
        distances = np.abs(sample - center).max(axis=1)
        return cls(center, float(_middle(distances[distances > 0]))) if distances.any() else None

    def offsets(self, rows: np.ndarray) -> np.ndarray:
        """Return the halves of rows, relative to the center."""
        return _halves(rows) - self.center

    def far_rows(self, X: np.ndarray, times: float) -> np.ndarray:
        """Return which rows are farther than so many times the typical distance; none if they are many."""
        none = np.empty(0, np.int64)
        limit = min(times * self.typical, float(np.finfo(np.float64).max))
        ends = self.offsets(np.stack([X.max(axis=0), X.min(axis=0)]))
        if np.abs(ends).max() <= limit:
            return none
        far = np.concatenate(
            [
                start + np.flatnonzero(np.abs(self.offsets(X[start : start + _TILE_ROWS])).max(axis=1) > limit)
                for start in range(0, len(X), _TILE_ROWS)
            ]
        )
        return far if len(far) <= max(1, len(X) // _ROWS_PER_OUTLIER) else none


def question_spread(X: np.ndarray) -> None:
    """Warn of outliers among the rows of a fit, and of rows that differ by little more than rounding."""
    low, high = X.min(axis=0), X.max(axis=0)
    steps = float(np.finfo(X.dtype).eps) * np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
    ranges = _halves(high) - _halves(low)
    if ranges.any() and not (2 * ranges > _FEWEST_STEPS * steps).any():
        warn_caller(
            f"No column of X varies by more than {_FEWEST_STEPS} times the rounding of {X.dtype}, so codes may be "
            "those of rounding. Subtract the mean of each column, in float64, before you convert the rows."
        )
        return
    spread = Spread.of(X)
    far = np.empty(0, np.int64) if spread is None else spread.far_rows(X, _QUESTIONED)
    if len(far):
        warn_caller(
            f"Row {far[0]} of X{f' and {len(far) - 1} others are' if len(far) > 1 else ' is'} over {_QUESTIONED:,.0f} "
            "times as far from the median row as is typical, and many methods would see little else. Correct or drop "
            "such rows, or scale the features, for example with sklearn.preprocessing.QuantileTransformer."
        )


def _halves(rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.float64) / 2


def _middle(values: np.ndarray) -> np.ndarray:
    """Return the lower median of each column, which is one of the values."""
    middle = (len(values) - 1) // 2
    return np.partition(values, middle, axis=0)[middle]
