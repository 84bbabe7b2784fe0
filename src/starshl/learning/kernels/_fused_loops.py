"""Compiled loops: kernels on vectors from one table of squared distances, a stretch of columns at a time.

A stretch stays in the fastest cache while every kernel is computed on it. Gaussians come in order of rising rate. One
whose rate is 2^s times that of the one before is the latter squared s times; and where one is below e^-cutoff on a
whole stretch, so are all that follow: narrow Gaussians cost next to nothing. Shifted cosines come in order of rising
power and are squared in the same way.

Arguments that all functions share: ``squared`` holds squared distances, (n_rows, n_columns). ``rows`` and ``columns``
are (norms, scales): squared norms, and one factor per dot-product kernel and row; the last one is 1 / (2 |row|), for
shifted cosines. ``mixture`` is (dots, cosines, cauchys, gaussians, cutoff). ``dots`` is (biases, degrees, weights):
kernel p is ((a.b + biases[p]) * row_scales[p] * column_scales[p])^degrees[p]. ``cosines`` is (powers, squarings,
weights): kernel q is ((1 + cosine) / 2)^powers[q]. ``cauchys`` is (rates, weights): kernel c is
1 / (1 + rates[c] * squared). ``gaussians`` is (rates, squarings, weights): kernel m is exp(-rates[m] * squared).
squarings[m] is s as above, or -1 where no power of two fits; that of the first shifted cosine counts from power one.
All arrays must be contiguous, or the loops are not vectorized.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import overload

_STRETCH = 384  # columns
_BAND = 64  # rows whose sums stay in the cache until they are written out
# Adding and subtracting 1.5 * 2^(mantissa bits) rounds to the nearest integer.
_ROUND32, _ROUND64 = np.float32(1.5 * 2**23), 1.5 * 2.0**52
_PER_LOG2 = 1.4426950408889634
_LOG2_HIGH32, _LOG2_LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOG2_HIGH64, _LOG2_LOW64 = 0.6931471803691238, 1.9082149292705877e-10
_SMALLEST_EXPONENT32, _SMALLEST_EXPONENT64 = np.float32(-86.0), -708.0
_TAYLOR64 = tuple(1.0 / np.prod(np.arange(1.0, n + 1.0)) for n in range(13, 1, -1))
_TAYLOR32 = tuple(np.float32(1.0 / np.prod(np.arange(1.0, n + 1.0))) for n in range(7, 1, -1))


def exp_of_nonpositive(x):
    """Return exp(x) for x <= 0 such that loops can be vectorized; below the smallest normal number, about that one."""
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


@njit(cache=True, nogil=True)
def sum_block(squared, rows, columns, mixture, top, left, out):
    """Write the weighted sum of all kernels over a block to out[top:, left:] and, mirrored, to out[left:, top:]."""
    n_rows, n_columns = squared.shape
    values = np.empty(_STRETCH, squared.dtype)
    band, mirrored = np.empty((_BAND, n_columns), squared.dtype), np.empty((n_columns, _BAND), squared.dtype)
    for first in range(0, n_rows, _BAND):
        last = min(first + _BAND, n_rows)
        for i in range(first, last):
            for start in range(0, n_columns, _STRETCH):
                stop = min(start + _STRETCH, n_columns)
                table, total = squared[i, start:stop], band[i - first, start:stop]
                _sum_stretch(table, rows, i, columns, start, mixture, values[: stop - start], total)
        # Rows of the result are far apart in memory, so each is written a stretch at a time, not entry by entry.
        for i in range(first, last):
            _copy(band[i - first], out[top + i, left : left + n_columns])
        if top != left:
            _transpose(band, mirrored)
            for j in range(n_columns):
                _copy(mirrored[j], out[left + j, top + first : top + last])
    if top == left:
        for i in range(n_rows):
            for j in range(i):
                out[top + i, left + j] = out[top + j, left + i]  # rounding is not symmetric, a kernel must be


@njit(cache=True, nogil=True)
def sum_between(squared, rows, columns, mixture, out):
    """Fill ``out`` with the weighted sum of all kernels between two blocks of rows."""
    n_rows, n_columns = squared.shape
    values = np.empty(_STRETCH, squared.dtype)
    for i in range(n_rows):
        for start in range(0, n_columns, _STRETCH):
            stop = min(start + _STRETCH, n_columns)
            table, total = squared[i, start:stop], out[i, start:stop]
            _sum_stretch(table, rows, i, columns, start, mixture, values[: stop - start], total)


@njit(nogil=True)
def _copy(source, target):
    for j in range(target.shape[0]):
        target[j] = source[j]


@njit(nogil=True)
def _transpose(band, mirrored):
    for j in range(band.shape[1]):
        for i in range(band.shape[0]):
            mirrored[j, i] = band[i, j]


@njit(cache=True, nogil=True)
def evaluate_each(squared, rows, columns, mixture, out):
    """Fill out[k] with kernel k of a block of rows: first dots, then cosines, Cauchy kernels and Gaussians."""
    n_rows, n_columns = squared.shape
    row_norms, row_scales = rows
    column_norms, column_scales = columns
    dots, cosines, cauchys, gaussians, cutoff = mixture
    n_dots = dots[0].shape[0]
    first_cauchy = n_dots + cosines[0].shape[0]
    first_gaussian = first_cauchy + cauchys[0].shape[0]
    n_kernels = first_gaussian + gaussians[0].shape[0]
    rates, squarings, _ = gaussians
    for i in range(n_rows):
        for start in range(0, n_columns, _STRETCH):
            stop = min(start + _STRETCH, n_columns)
            table = squared[i, start:stop]
            for p in range(n_dots):
                _dot_kernel(
                    table, row_norms[i], column_norms[start:stop], dots[0][p], row_scales[p, i],
                    column_scales[p, start:stop], dots[1][p], out[p, i, start:stop],
                )  # fmt: skip
            for k in range(n_dots, first_cauchy):
                values = out[k, i, start:stop]
                power, n_squarings = cosines[0][k - n_dots], cosines[1][k - n_dots]
                if k == n_dots or n_squarings < 0:
                    _half_cosine(
                        table, row_norms[i], column_norms[start:stop], row_scales[n_dots, i],
                        column_scales[n_dots, start:stop], values,
                    )  # fmt: skip
                else:
                    _copy(out[k - 1, i, start:stop], values)
                _raise(values, power, n_squarings)
            for k in range(first_cauchy, first_gaussian):
                _cauchy(table, cauchys[0][k - first_cauchy], out[k, i, start:stop])
            nearest = _smallest(table)
            for k in range(first_gaussian, n_kernels):
                values = out[k, i, start:stop]
                m = k - first_gaussian
                if rates[m] * nearest >= cutoff:
                    values[:] = 0
                else:
                    _gaussian(table, rates[m], squarings[m], out[k - 1, i, start:stop], values)


@njit(cache=True, nogil=True)
def add_forms(values, row_factors, column_factors, out):
    """out[k] += sum_ij row_factors[i] values[k, i, j] column_factors[j], in float64."""
    for k in range(values.shape[0]):
        for i in range(values.shape[1]):
            if row_factors[i] != 0.0:
                out[k] += row_factors[i] * _dot(values[k, i], column_factors)


@njit(nogil=True, fastmath={"contract", "reassoc"})
def _dot(values, factors):
    total = 0.0
    for j in range(values.shape[0]):
        total += values[j] * factors[j]
    return total


@njit(nogil=True)
def _sum_stretch(table, rows, row, columns, start, mixture, values, total):
    """Fill ``total`` with the weighted sum over one row and the stretch of columns that begins at ``start``."""
    dots, cosines, cauchys, gaussians, cutoff = mixture
    biases, degrees, dot_weights = dots
    n_dots = dot_weights.shape[0]
    rates, squarings, weights = gaussians
    stop = start + table.shape[0]
    row_norm, row_scales = rows[0][row], rows[1]
    column_norms, column_scales = columns[0][start:stop], columns[1]
    total[:] = 0
    for p in range(n_dots):
        if dot_weights[p] != 0:
            factors = column_scales[p, start:stop]
            if degrees[p] == 2:
                _add_square(
                    table, row_norm, column_norms, biases[p], row_scales[p, row], factors, dot_weights[p], total
                )
            else:
                _dot_kernel(table, row_norm, column_norms, biases[p], row_scales[p, row], factors, degrees[p], values)
                _add(dot_weights[p], values, total)
    for q in range(cosines[0].shape[0]):
        power, n_squarings, weight = cosines[0][q], cosines[1][q], cosines[2][q]
        if q == 0 or n_squarings < 0:
            scale, factors = row_scales[n_dots, row], column_scales[n_dots, start:stop]
            _half_cosine(table, row_norm, column_norms, scale, factors, values)
        _raise(values, power, n_squarings)
        _add(weight, values, total)
    for c in range(cauchys[0].shape[0]):
        _add_cauchy(table, cauchys[0][c], cauchys[1][c], total)
    nearest = _smallest(table)
    for m in range(rates.shape[0]):
        if rates[m] * nearest >= cutoff:
            return
        _add_gaussian(table, rates[m], squarings[m], weights[m], values, total)


@njit(nogil=True, fastmath={"contract"})
def _dot_kernel(table, row_norm, column_norms, bias, row_scale, column_scales, degree, values):
    half = table.dtype.type(0.5)
    shift = half * row_norm + bias
    for j in range(table.shape[0]):
        values[j] = (shift + half * (column_norms[j] - table[j])) * (row_scale * column_scales[j])
    if degree == 2:
        for j in range(table.shape[0]):
            values[j] *= values[j]
    elif degree > 2:
        for j in range(table.shape[0]):
            values[j] = values[j] ** degree


@njit(nogil=True, fastmath={"contract"})
def _half_cosine(table, row_norm, column_norms, row_scale, column_scales, values):
    """Fill ``values`` with (1 + cosine) / 2; the cosine is twice the dot product times both scales, 1 / (2 |row|)."""
    half = table.dtype.type(0.5)
    for j in range(table.shape[0]):
        values[j] = half + (row_norm + (column_norms[j] - table[j])) * (row_scale * column_scales[j])


@njit(nogil=True)
def _raise(values, power, n_squarings):
    """Square some values n_squarings times or, if that is -1, raise them to a power."""
    if n_squarings < 0:
        for j in range(values.shape[0]):
            values[j] = values[j] ** power
    for _ in range(n_squarings):
        for j in range(values.shape[0]):
            values[j] *= values[j]


@njit(nogil=True, fastmath={"contract"})
def _cauchy(table, rate, values):
    one = table.dtype.type(1.0)
    for j in range(table.shape[0]):
        values[j] = one / (one + rate * table[j])


@njit(nogil=True, fastmath={"contract"})
def _add_cauchy(table, rate, weight, total):
    one = table.dtype.type(1.0)
    for j in range(table.shape[0]):
        total[j] += weight / (one + rate * table[j])


@njit(nogil=True, fastmath={"contract"})
def _gaussian(table, rate, n_squarings, wider, values):
    """Fill ``values``; if n_squarings is not -1, they are powers of those of the Gaussian before, ``wider``."""
    if n_squarings < 0:
        for j in range(table.shape[0]):
            values[j] = exp_of_nonpositive(-rate * table[j])
    elif n_squarings == 4:
        for j in range(table.shape[0]):
            second = wider[j] * wider[j]
            fourth = second * second
            eighth = fourth * fourth
            values[j] = eighth * eighth
    else:
        for j in range(table.shape[0]):
            values[j] = wider[j] * wider[j]
        for _ in range(n_squarings - 1):
            for j in range(table.shape[0]):
                values[j] *= values[j]


@njit(nogil=True, fastmath={"contract"})
def _add_square(table, row_norm, column_norms, bias, row_scale, column_scales, weight, total):
    """Do what _dot_kernel and _add do for degree 2, in one pass: passes cost as much as their arithmetic."""
    half = table.dtype.type(0.5)
    shift = half * row_norm + bias
    for j in range(table.shape[0]):
        cosine = (shift + half * (column_norms[j] - table[j])) * (row_scale * column_scales[j])
        total[j] += weight * (cosine * cosine)


@njit(nogil=True, fastmath={"contract"})
def _add_gaussian(table, rate, n_squarings, weight, values, total):
    """Add a Gaussian to a sum, leaving it in ``values``; if n_squarings is not -1, these hold the Gaussian before."""
    if n_squarings < 0:
        for j in range(table.shape[0]):
            values[j] = exp_of_nonpositive(-rate * table[j])
            total[j] += weight * values[j]
    elif n_squarings == 4:
        for j in range(table.shape[0]):
            second = values[j] * values[j]
            fourth = second * second
            eighth = fourth * fourth
            values[j] = eighth * eighth
            total[j] += weight * values[j]
    else:
        for _ in range(n_squarings - 1):
            for j in range(table.shape[0]):
                values[j] *= values[j]
        for j in range(table.shape[0]):
            values[j] *= values[j]
            total[j] += weight * values[j]


@njit(nogil=True, fastmath={"contract"})
def _add(weight, values, total):
    for j in range(total.shape[0]):
        total[j] += weight * values[j]


def _bits(number):
    """Return the bits of a number >= 0 as an integer; these are in the same order as the numbers."""


def _number(bits):
    """Return the number of which these are the bits."""


@overload(_bits, inline="always")
def _choose_bits(number):
    if number == types.float32:
        return lambda number: np.int32(np.float32(number).view(np.int32))
    return lambda number: np.int64(np.float64(number).view(np.int64))


@overload(_number, inline="always")
def _choose_number(bits):
    if bits == types.int32:
        return lambda bits: np.int32(bits).view(np.float32)
    return lambda bits: np.int64(bits).view(np.float64)


@njit(nogil=True)
def _smallest(values):
    """Return the smallest of some numbers >= 0; as integers, because only their minimum is vectorized."""
    least = _bits(values[0])
    for j in range(values.shape[0]):
        bits = _bits(values[j])
        least = bits if bits < least else least
    return _number(least)
