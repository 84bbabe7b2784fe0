"""Compiled loop of COSDISH: local search on a binary quadratic problem."""

import numpy as np
from numba import njit

# A flip that gains less may be rounding, which two flips could pass back and forth forever.
_IMPROVEMENT_TOL = 1e-9


@njit(cache=True, nogil=True)
def descend_by_flips(quadratic, linear, signs):
    """Lower -2 h'Qh - 2 l'h by flipping signs of h in place, the best flip first; return how many.

    Flipping h_i changes it by 8 h_i sum_{j != i} Q_ij h_j + 4 l_i h_i; Q is symmetric.
    """
    size = signs.shape[0]
    fields = np.empty(size)
    for i in range(size):
        total = 0.0
        for j in range(size):
            if j != i:
                total += quadratic[i, j] * signs[j]
        fields[i] = 2.0 * total + linear[i]
    n_flips = 0
    while True:
        best, lowest = -1, -_IMPROVEMENT_TOL
        for i in range(size):
            if signs[i] * fields[i] < lowest:
                best, lowest = i, signs[i] * fields[i]
        if best < 0:
            return n_flips
        signs[best] = -signs[best]
        for i in range(size):
            if i != best:
                fields[i] += 4.0 * quadratic[i, best] * signs[best]
        n_flips += 1
