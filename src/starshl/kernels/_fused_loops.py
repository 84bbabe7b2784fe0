"""Compiled loops: kernels on vectors from one table of squared distances, a stretch of columns at a time.

A stretch stays in the fastest cache while every kernel is computed on it. Gaussians come in order of rising rate. One
whose rate is 2^s times that of the one before is the latter squared s times; and where one is below e^-cutoff on a
whole stretch, so are all that follow: the narrow Gaussians of a bank, nearly identity matrices, cost next to nothing.

Arguments that all functions share: ``squared`` holds squared distances, (n_rows, n_columns). ``dots`` is (biases,
degrees, weights): kernel p is ((a.b + biases[p]) * row_scales[p] * column_scales[p])^degrees[p]. ``gaussians`` is
(rates, squarings, weights): kernel m is exp(-rates[m] * squared); squarings[m] is s as above, or -1 where no power of
two fits.
"""

import numpy as np
from numba import njit

from ._exp_loops import exp_of_nonpositive

_STRETCH = 256


@njit(cache=True, nogil=True)
def combine_symmetric(squared, norms, scales, dots, gaussians, cutoff, out):
    """Fill ``out`` with the weighted sum of all kernels: compute the upper half and mirror it, tile by tile."""
    n_rows = squared.shape[0]
    values = np.empty(_STRETCH, squared.dtype)
    for top in range(0, n_rows, _STRETCH):
        bottom = min(top + _STRETCH, n_rows)
        for start in range(top, n_rows, _STRETCH):
            stop = min(start + _STRETCH, n_rows)
            for i in range(top, bottom):
                _sum_stretch(
                    squared[i, start:stop], norms[i], norms[start:stop], scales, i, scales, start,
                    dots, gaussians, cutoff, values[: stop - start], out[i, start:stop],
                )  # fmt: skip
            for j in range(start, stop):
                for i in range(top, min(bottom, j)):
                    out[j, i] = out[i, j]


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


@njit(nogil=True)
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


@njit(nogil=True)
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


@njit(nogil=True)
def _add(weight, values, total):
    for j in range(total.shape[0]):
        total[j] += weight * values[j]


# Without these flags a minimum is taken one number at a time; there are no NaN in a table of distances.
@njit(nogil=True, fastmath={"nnan", "nsz"})
def _smallest(values):
    least = values[0]
    for j in range(values.shape[0]):
        least = min(least, values[j])
    return least


@njit(cache=True, nogil=True)
def count_beyond(values, threshold):
    """Return how many entries are larger than the threshold."""
    n_found = 0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            n_found += values[i, j] > threshold
    return n_found


@njit(cache=True, nogil=True)
def add_sparse_products(values, coefficients, threshold, out):
    """out[i, b] += sum_j values[i, j] coefficients[j, b] over the entries larger than the threshold."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[i, j]
            if value > threshold:
                for b in range(coefficients.shape[1]):
                    out[i, b] += value * coefficients[j, b]
