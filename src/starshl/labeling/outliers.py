"""Outliers: rows so far from all others that whatever is learned from both would fit neither."""

from __future__ import annotations

import numpy as np

_FAR = 1e6  # times the typical distance from the median row: there, float32 loses all other rows
_DRAWN_TO = 10.0  # times the typical distance: still the farthest, and harmless to means, directions and scales
_FEWEST_ROWS = 20  # fewer do not tell what is typical
_ROWS_PER_OUTLIER = 100  # where more rows than one in so many are far, they are a group of their own
_MOST_SAMPLED = 1024
_TILE_ROWS = 4096


def draw_in_outliers(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with outliers drawn in toward the median row, and which rows these are.

    Distances are those of the largest coordinate, which no square can take out of range. X itself comes back if it has
    no outliers.

    Examples
    --------
    >>> rows = np.append(np.arange(30.0), 1e9)[:, None]
    >>> drawn_in, outliers = draw_in_outliers(rows)
    >>> outliers.tolist(), drawn_in[-1].tolist()
    ([30], [95.0])
    """
    none = np.empty(0, np.int64)
    n_rows = len(X)
    if n_rows < _FEWEST_ROWS or X.shape[1] == 0:
        return X, none
    # Halves, because the difference of two finite numbers may not be finite.
    sample = _halves(X[:: -(-n_rows // _MOST_SAMPLED)])
    center = _middle(sample)
    distances = np.abs(sample - center).max(axis=1)
    if not distances.any():
        return X, none
    typical = float(_middle(distances[distances > 0]))
    limit = min(_FAR * typical, float(np.finfo(np.float64).max))
    above = X.max(axis=0).astype(np.float64) / 2 - center
    below = center - X.min(axis=0).astype(np.float64) / 2
    if max(above.max(), below.max()) <= limit:
        return X, none
    far = np.concatenate(
        [
            start + np.flatnonzero(np.abs(_halves(X[start : start + _TILE_ROWS]) - center).max(axis=1) > limit)
            for start in range(0, n_rows, _TILE_ROWS)
        ]
    )
    if len(far) > max(1, n_rows // _ROWS_PER_OUTLIER):
        return X, none
    offsets = _halves(X[far]) - center
    offsets /= np.abs(offsets).max(axis=1, keepdims=True)
    drawn_in = X.copy()
    drawn_in[far] = 2 * (center + _DRAWN_TO * typical * offsets)
    return drawn_in, far


def _halves(rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.float64) / 2


def _middle(values: np.ndarray) -> np.ndarray:
    """Return the lower median of each column, which is one of the values."""
    middle = (len(values) - 1) // 2
    return np.partition(values, middle, axis=0)[middle]
