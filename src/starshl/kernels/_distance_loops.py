"""Compiled loop: squared distances from inner products."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def squared_distances(inner, norms_a, norms_b, A, B, threshold):
    """Turn inner products into |a|^2 + |b|^2 - 2 a.b, in place.

    Where the three terms nearly cancel, the difference is summed directly, so that equal rows have
    distance exactly zero in any precision.
    """
    n_rows, n_columns = inner.shape
    for i in range(n_rows):
        norm = norms_a[i]
        for j in range(n_columns):
            both = norm + norms_b[j]
            squared = both - 2.0 * np.float64(inner[i, j])
            if squared <= threshold * both:
                squared = 0.0
                for d in range(A.shape[1]):
                    gap = np.float64(A[i, d]) - np.float64(B[j, d])
                    squared += gap * gap
            inner[i, j] = squared
