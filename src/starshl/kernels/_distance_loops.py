"""Compiled loop: squared distances from inner products."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def turn_into_distances(inner, norms_a, norms_b, A, B, threshold):
    """Turn inner products into |a|^2 + |b|^2 - 2 a.b, in place.

    Where the three terms nearly cancel, the difference is summed directly, so that equal rows have
    distance exactly zero in any precision.
    """
    for i in range(inner.shape[0]):
        row = inner[i]
        if _subtract(row, norms_a[i], norms_b, threshold) > 0:
            for j in range(row.shape[0]):
                if row[j] <= threshold * (norms_a[i] + norms_b[j]):
                    row[j] = _squared_distance(A[i], B[j])


@njit(nogil=True)
def _subtract(row, norm, norms_b, threshold):
    """Subtract and return how many results have lost their digits; without branches, to be vectorized."""
    n_lost = 0
    for j in range(row.shape[0]):
        both = norm + norms_b[j]
        row[j] = both - 2.0 * np.float64(row[j])
        n_lost += row[j] <= threshold * both
    return n_lost


@njit(nogil=True)
def _squared_distance(a, b):
    squared = 0.0
    for d in range(a.shape[0]):
        gap = np.float64(a[d]) - np.float64(b[d])
        squared += gap * gap
    return squared
