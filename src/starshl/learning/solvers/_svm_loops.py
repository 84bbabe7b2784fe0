"""Compiled loops: pairwise ascent on the dual of an SVM with bias (sequential minimal optimization).

Written in signed coefficients eta = alpha * y, the dual is: maximize y'eta - eta'K eta / 2 subject to
low <= eta <= high and sum(eta) = 0. Its gradient is g = y - K eta, and a step moves one coefficient up and
another one down by the same amount.

The ascent spends its time in passes over all rows, so these are written for the vector units: short stretches that
stay in the fastest cache, loops with one output each, and maxima taken over the bits of a float32 as an integer,
because the compiler does not vectorize a maximum of floating-point numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_SMALLEST_CURVATURE = 1e-12
_STRETCH = 256  # rows; a few arrays of this length fit into the fastest cache
_BARRIER = np.float32(-1e30)  # added to the key of a coefficient that may not move
_SMALLEST_KEY = np.int32(-(2**31) + 1)


@njit(cache=True, nogil=True)
def subtract_products(K, eta, gradient):
    """gradient -= K @ eta, in float64, skipping zeros of eta; K is symmetric."""
    for i in range(eta.shape[0]):
        if eta[i] != 0.0:
            _subtract(eta[i], K[i], gradient)


@njit(nogil=True, fastmath={"contract"})
def _subtract(factor, row, gradient):
    for j in range(gradient.shape[0]):
        gradient[j] -= factor * row[j]


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
    diagonal, gains = np.empty(n_rows, np.float32), np.empty(n_rows, np.float32)
    may_rise, rising_keys = np.empty(n_rows, np.float32), np.empty(n_rows, np.float32)
    may_fall, falling_keys = np.empty(n_rows, np.float32), np.empty(n_rows, np.float32)
    for n in range(n_rows):
        diagonal[n] = K[n, n]
        may_rise[n] = 0 if eta[n] < high[n] else _BARRIER
        may_fall[n] = 0 if eta[n] > low[n] else _BARRIER
    rising, falling, size, middle = 0, 0, 0.0, 0.0
    for step in range(max_iter):
        # The step before is applied in the same pass that looks for the next one.
        row, other = K[rising], K[falling]
        most, least, where = _SMALLEST_KEY, _SMALLEST_KEY, 0
        for start in range(0, n_rows, _STRETCH):
            stop = min(start + _STRETCH, n_rows)
            part = gradient[start:stop]
            _move(part, row[start:stop], other[start:stop], size)
            # Keys are measured from the middle of the gap, so that float32 resolves any gap, however small.
            highest = _fill_keys(part, 1.0, middle, may_rise[start:stop], rising_keys[start:stop])
            if highest > most:
                most, where = highest, start
            least = max(least, _fill_keys(part, -1.0, middle, may_fall[start:stop], falling_keys[start:stop]))
        top, bottom = _float_of(most), -_float_of(least)
        if top - bottom <= tol:
            return step
        rising = _position_of(top, rising_keys, where)
        row = K[rising]
        best, where = np.int32(0), -1
        for start in range(0, n_rows, _STRETCH):
            stop = min(start + _STRETCH, n_rows)
            gain = _fill_gains(
                falling_keys[start:stop],
                top,
                row[start:stop],
                diagonal[start:stop],
                diagonal[rising],
                gains[start:stop],
            )
            if gain > best:
                best, where = gain, start
        if where < 0:
            return step
        falling = _position_of(_float_of(best), gains, where)
        curvature = np.float64(K[rising, rising]) + np.float64(K[falling, falling]) - 2.0 * np.float64(row[falling])
        size = (gradient[rising] - gradient[falling]) / max(curvature, _SMALLEST_CURVATURE)
        room_up, room_down = high[rising] - eta[rising], eta[falling] - low[falling]
        size = min(size, room_up, room_down)
        # Landing on a bound must be exact, or rounding would leave a coefficient that may still move.
        eta[rising] = high[rising] if size == room_up else eta[rising] + size
        eta[falling] = low[falling] if size == room_down else eta[falling] - size
        may_rise[rising] = 0 if eta[rising] < high[rising] else _BARRIER
        may_fall[rising] = 0
        may_rise[falling] = 0
        may_fall[falling] = 0 if eta[falling] > low[falling] else _BARRIER
        middle += 0.5 * (np.float64(top) + np.float64(bottom))
    _move(gradient, K[rising], K[falling], size)
    return max_iter


@njit(nogil=True, fastmath={"contract"})
def _move(gradient, row, other, size):
    for n in range(gradient.shape[0]):
        gradient[n] -= size * (np.float64(row[n]) - np.float64(other[n]))


@njit(nogil=True)
def _fill_keys(gradient, sign, middle, barrier, keys):
    """keys = sign * (gradient - middle) + barrier; return the integer of the largest."""
    most = _SMALLEST_KEY
    for n in range(gradient.shape[0]):
        key = np.float32(sign * (gradient[n] - middle)) + barrier[n]
        keys[n] = key
        integer = _integer_of(key)
        most = integer if integer > most else most
    return most


@njit(nogil=True, error_model="numpy")
def _fill_gains(falling_keys, top, row, diagonal, own_diagonal, gains):
    """Fill in what pairing with each row promises; return the integer of the largest gain."""
    most = np.int32(0)
    two, zero, least = np.float32(2.0), np.float32(0.0), np.float32(_SMALLEST_CURVATURE)
    for n in range(gains.shape[0]):
        gap = max(np.float32(top + falling_keys[n]), zero)
        curvature = max(own_diagonal + diagonal[n] - two * np.float32(row[n]), least)
        gain = gap * gap / curvature
        gains[n] = gain
        integer = np.int32(np.float32(gain).view(np.int32))  # not negative: its bits are in order as they are
        most = integer if integer > most else most
    return most


@njit(inline="always")
def _integer_of(number):
    """Return an integer that is in the same order as the float32."""
    bits = np.int32(np.float32(number).view(np.int32))
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@njit(inline="always")
def _float_of(integer):
    """Return the float32 that the integer stands for."""
    bits = np.int32(integer)
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


@njit(nogil=True)
def _position_of(value, values, start):
    """Return where the value stands, at ``start`` or after."""
    position = start
    while position < values.shape[0] - 1 and values[position] != value:
        position += 1
    return position
