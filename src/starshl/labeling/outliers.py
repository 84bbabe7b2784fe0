"""Outliers among the rows of a lesson, drawn in so that the others keep their neighbors."""

from __future__ import annotations

import numpy as np

from .._common.outliers import Spread

_FAR = 1e6  # times the typical distance from the median row: there, float32 loses all other rows
_DRAWN_TO = 10.0  # times the typical distance: still the farthest, and harmless to means, directions and scales


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
    spread = Spread.of(X)
    far = np.empty(0, np.int64) if spread is None else spread.far_rows(X, _FAR)
    if spread is None or len(far) == 0:
        return X, far
    offsets = spread.offsets(X[far])
    offsets /= np.abs(offsets).max(axis=1, keepdims=True)
    drawn_in = X.copy()
    drawn_in[far] = 2 * (spread.center + _DRAWN_TO * spread.typical * offsets)
    return drawn_in, far
