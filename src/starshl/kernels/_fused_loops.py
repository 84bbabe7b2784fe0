"""Compiled loops: kernels on vectors from one table of squared distances, a stretch of columns at a time.

A stretch stays in the fastest cache while every kernel is computed on it. Gaussians come in order of rising rate. One
whose rate is 2^s times that of the one before is the latter squared s times; and where one is below e^-cutoff on a
whole stretch, so are all that follow: narrow Gaussians cost next to nothing.

Arguments that all functions share: ``squared`` holds squared distances, (n_rows, n_columns). ``dots`` is (biases,
degrees, weights): kernel p is ((a.b + biases[p]) * row_scales[p] * column_scales[p])^degrees[p]. ``gaussians`` is
(rates, squarings, weights): kernel m is exp(-rates[m] * squared); squarings[m] is s as above, or -1 where no power of
two fits. All arrays must be contiguous, or the loops are not vectorized.
"""

import numpy as np
from numba import njit, types
from numba.extending import overload

from ._exp_loops import exp_of_nonpositive

_STRETCH = 256
_BAND = 32  # rows that are transposed together


@njit(cache=True, nogil=True)
def sum_block(
    squared, row_norms, column_norms, row_scales, column_scales, dots, gaussians, cutoff, top, left, out
):  # fmt: skip
    """Write the weighted sum of all kernels over a block to out[top:, left:] and, mirrored, to out[left:, top:]."""
    n_rows, n_columns = squared.shape
    values = np.empty(_STRETCH, squared.dtype)
    block, mirrored = np.empty((n_rows, n_columns), squared.dtype), np.empty((n_columns, n_rows), squared.dtype)
    for i in range(n_rows):
        for start in range(0, n_columns, _STRETCH):
            stop = min(start + _STRETCH, n_columns)
            _sum_stretch(
                squared[i, start:stop], row_norms[i], column_norms[start:stop], row_scales, i, column_scales, start,
                dots, gaussians, cutoff, values[: stop - start], block[i, start:stop],
            )  # fmt: skip
    if top == left:
        for i in range(n_rows):
            for j in range(i):
                block[i, j] = block[j, i]  # rounding is not symmetric, a kernel must be
    # Rows of the result are far apart in memory, so each is written once a block, not once an entry.
    for i in range(n_rows):
        _copy(block[i], out[top + i, left : left + n_columns])
    if top != left:
        _transpose(block, mirrored)
        for j in range(n_columns):
            _copy(mirrored[j], out[left + j, top : top + n_rows])


@njit(nogil=True)
def _copy(source, target):
    for j in range(target.shape[0]):
        target[j] = source[j]


@njit(nogil=True)
def _transpose(block, mirrored):
    for start in range(0, block.shape[0], _BAND):
        band = block[start : start + _BAND]
        for j in range(block.shape[1]):
            target = mirrored[j, start : start + _BAND]
            for i in range(target.shape[0]):
                target[i] = band[i, j]


@njit(cache=True, nogil=True)
def evaluate_each(squared, row_norms, column_norms, row_scales, column_scales, dots, gaussians, cutoff, out):
    """Fill out[k] with kernel k of a block of rows: dot-product kernels first, then Gaussians by rate."""
    n_rows, n_columns = squared.shape
    n_dots, n_kernels = dots[0].shape[0], dots[0].shape[0] + gaussians[0].shape[0]
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
            nearest = _smallest(table)
            for k in range(n_dots, n_kernels):
                values = out[k, i, start:stop]
                m = k - n_dots
                if rates[m] * nearest >= cutoff:
                    values[:] = 0
                else:
                    if squarings[m] >= 0:
                        values[:] = out[k - 1, i, start:stop]
                    _gaussian(table, rates[m], squarings[m], values)


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
def _sum_stretch(
    table, row_norm, column_norms, row_scales, row, column_scales, start, dots, gaussians, cutoff, values, total
):  # fmt: skip
    biases, degrees, dot_weights = dots
    rates, squarings, weights = gaussians
    stop = start + table.shape[0]
    total[:] = 0
    for p in range(dot_weights.shape[0]):
        if dot_weights[p] != 0:
            factors = column_scales[p, start:stop]
            _dot_kernel(table, row_norm, column_norms, biases[p], row_scales[p, row], factors, degrees[p], values)
            _add(dot_weights[p], values, total)
    nearest = _smallest(table)
    for m in range(rates.shape[0]):
        if rates[m] * nearest >= cutoff:
            return
        _gaussian(table, rates[m], squarings[m], values)
        _add(weights[m], values, total)


@njit(nogil=True, fastmath={"contract"})
def _dot_kernel(table, row_norm, column_norms, bias, row_scale, column_scales, degree, values):
    half = table.dtype.type(0.5)
    shift = half * row_norm + bias
    if degree == 2:
        for j in range(table.shape[0]):
            cosine = (shift + half * (column_norms[j] - table[j])) * (row_scale * column_scales[j])
            values[j] = cosine * cosine
    else:
        for j in range(table.shape[0]):
            values[j] = (shift + half * (column_norms[j] - table[j])) * (row_scale * column_scales[j])
    if degree > 2:
        for j in range(table.shape[0]):
            values[j] = values[j] ** degree


@njit(nogil=True, fastmath={"contract"})
def _gaussian(table, rate, n_squarings, values):
    """Overwrite ``values``; if n_squarings is not -1, they hold the Gaussian before."""
    if n_squarings < 0:
        for j in range(table.shape[0]):
            values[j] = exp_of_nonpositive(-rate * table[j])
    elif n_squarings == 4:
        for j in range(table.shape[0]):
            second = values[j] * values[j]
            fourth = second * second
            eighth = fourth * fourth
            values[j] = eighth * eighth
    else:
        for _ in range(n_squarings):
            for j in range(table.shape[0]):
                values[j] *= values[j]


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
