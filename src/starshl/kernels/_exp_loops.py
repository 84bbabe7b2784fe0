"""Compiled exponentials of numbers that are not positive, written so that the compiler can vectorize them.

exp(x) = 2^k exp(r) with k = round(x / log 2) and |r| <= log(2) / 2; exp(r) is a polynomial; 2^k is put together from
its bits or, in float32, k is added to the bits of the exponent. The largest relative error is 1e-7 in float32 and
4e-16 in float64.
"""

import numpy as np
from numba import njit, types
from numba.extending import overload

# Adding and subtracting 1.5 * 2^(mantissa bits) rounds to the nearest integer.
_ROUND32, _ROUND64 = np.float32(1.5 * 2**23), 1.5 * 2.0**52
_PER_LOG2 = 1.4426950408889634
_LOG2_HIGH32, _LOG2_LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOG2_HIGH64, _LOG2_LOW64 = 0.6931471803691238, 1.9082149292705877e-10
_SMALLEST_EXPONENT32, _SMALLEST_EXPONENT64 = np.float32(-86.0), -708.0
_TAYLOR64 = tuple(1.0 / np.prod(np.arange(1.0, n + 1.0)) for n in range(13, 1, -1))
_TAYLOR32 = tuple(np.float32(1.0 / np.prod(np.arange(1.0, n + 1.0))) for n in range(7, 1, -1))


def exp_of_nonpositive(x):
    """Return exp(x) for x <= 0; below the smallest normal number it is flushed to about that number."""
    return np.exp(x)


@njit(inline="always")
def _exp32(x):
    x = max(x, _SMALLEST_EXPONENT32)
    rounded = x * np.float32(_PER_LOG2) + _ROUND32  # its last bits hold the integer k
    k = rounded - _ROUND32
    r = (x - k * _LOG2_HIGH32) - k * _LOG2_LOW32
    p = _TAYLOR32[0]
    p = p * r + _TAYLOR32[1]
    p = p * r + _TAYLOR32[2]
    p = p * r + _TAYLOR32[3]
    p = p * r + _TAYLOR32[4]
    p = p * r + _TAYLOR32[5]
    p = (p * r) * r + r + np.float32(1.0)
    exponent = np.int32(np.float32(rounded).view(np.int32)) << np.int32(23)
    return np.int32(np.int32(np.float32(p).view(np.int32)) + exponent).view(np.float32)


@njit(inline="always")
def _exp64(x):
    x = max(x, _SMALLEST_EXPONENT64)
    k = (x * _PER_LOG2 + _ROUND64) - _ROUND64
    r = (x - k * _LOG2_HIGH64) - k * _LOG2_LOW64
    p = _TAYLOR64[0]
    p = p * r + _TAYLOR64[1]
    p = p * r + _TAYLOR64[2]
    p = p * r + _TAYLOR64[3]
    p = p * r + _TAYLOR64[4]
    p = p * r + _TAYLOR64[5]
    p = p * r + _TAYLOR64[6]
    p = p * r + _TAYLOR64[7]
    p = p * r + _TAYLOR64[8]
    p = p * r + _TAYLOR64[9]
    p = p * r + _TAYLOR64[10]
    p = p * r + _TAYLOR64[11]
    p = (p * r) * r + r + 1.0
    return p * np.int64((np.int64(k) + np.int64(1023)) << np.int64(52)).view(np.float64)


@overload(exp_of_nonpositive, inline="always")
def _choose_precision(x):
    return (lambda x: _exp32(x)) if x == types.float32 else (lambda x: _exp64(x))
