"""Compiled loops: pairwise ascent on the dual of an SVM with bias (sequential minimal optimization).

Written in signed coefficients eta = alpha * y, the dual is: maximize y'eta - eta'K eta / 2 subject to
low <= eta <= high and sum(eta) = 0. Its gradient is g = y - K eta, and a step moves one coefficient up and
another one down by the same amount.
"""

import numpy as np
from numba import njit

_SMALLEST_CURVATURE = 1e-12


@njit(cache=True, nogil=True)
def subtract_products(K, eta, gradient):
    """gradient -= K @ eta, in float64, skipping zeros of eta; K is symmetric."""
    for i in range(eta.shape[0]):
        value = eta[i]
        if value != 0.0:
            row = K[i]
            for j in range(gradient.shape[0]):
                gradient[j] -= value * row[j]


@njit(cache=True, nogil=True)
def violation_of(gradient, eta, low, high):
    """Return the largest gap between a coefficient that may rise and one that may fall, and both ends."""
    top, bottom = -np.inf, np.inf
    for n in range(eta.shape[0]):
        if eta[n] < high[n] and gradient[n] > top:
            top = gradient[n]
        if eta[n] > low[n] and gradient[n] < bottom:
            bottom = gradient[n]
    return top - bottom, top, bottom


@njit(cache=True, nogil=True)
def ascend_pairs(K, gradient, eta, low, high, tol, max_iter):
    """Step until the violation is at most ``tol``; change eta and gradient in place.

    The rising coefficient has the largest gradient, the falling one promises the largest gain to second
    order (Fan, Chen and Lin 2005). Return the number of steps.
    """
    n_rows = eta.shape[0]
    diagonal = np.empty(n_rows)
    for n in range(n_rows):
        diagonal[n] = K[n, n]
    for step in range(max_iter):
        rising, top = -1, -np.inf
        for n in range(n_rows):
            if eta[n] < high[n] and gradient[n] > top:
                top = gradient[n]
                rising = n
        row = K[rising]
        falling, best, bottom = -1, -np.inf, np.inf
        for n in range(n_rows):
            if eta[n] > low[n]:
                if gradient[n] < bottom:
                    bottom = gradient[n]
                gap = top - gradient[n]
                if gap > 0.0:
                    curvature = diagonal[rising] + diagonal[n] - 2.0 * row[n]
                    gain = gap * gap / max(curvature, _SMALLEST_CURVATURE)
                    if gain > best:
                        best = gain
                        falling = n
        if falling < 0 or top - bottom <= tol:
            return step
        curvature = max(diagonal[rising] + diagonal[falling] - 2.0 * row[falling], _SMALLEST_CURVATURE)
        size = (top - gradient[falling]) / curvature
        room_up, room_down = high[rising] - eta[rising], eta[falling] - low[falling]
        if size >= min(room_up, room_down):
            size = min(room_up, room_down)
        # Landing on a bound must be exact, or rounding would leave a coefficient that may still move.
        eta[rising] = high[rising] if size == room_up else eta[rising] + size
        eta[falling] = low[falling] if size == room_down else eta[falling] - size
        other = K[falling]
        for n in range(n_rows):
            gradient[n] -= size * (row[n] - other[n])
    return max_iter
