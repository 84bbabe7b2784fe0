"""Compiled loops: squared distances from inner products, in square tiles, and between close pairs of rows only."""

from __future__ import annotations

import numpy as np
from numba import njit

_COLUMNS_AT_ONCE = 16


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


@njit(inline="always")
def tile_number(first, second, n_blocks):
    """Return where the tile of two blocks is stored; first <= second."""
    return first * (2 * n_blocks - first + 1) // 2 + second - first


@njit(cache=True, nogil=True)
def gather(tiles, n_blocks, rows, columns, out):
    """out[i, j] = the table's entry for rows[i] and columns[j]; fastest if both rise."""
    size = tiles.shape[1]
    row_blocks, column_blocks = rows // size, columns // size
    # An unsigned index cannot count from the end: without that case picking entries is a vector loop.
    row_offsets, column_offsets = (rows % size).astype(np.uint32), (columns % size).astype(np.uint32)
    top = 0
    while top < rows.shape[0]:
        bottom = _end_of_run(row_blocks, top)
        start = 0
        while start < columns.shape[0]:
            stop = _end_of_run(column_blocks, start)
            first, second = row_blocks[top], column_blocks[start]
            here, there = row_offsets[top:bottom], column_offsets[start:stop]
            if first <= second:
                tile = tiles[tile_number(first, second, n_blocks)]
                for i in range(top, bottom):
                    _pick(tile[row_offsets[i]], there, out[i, start:stop])
            else:
                _pick_mirrored(tiles[tile_number(second, first, n_blocks)], here, there, top, start, out)
            start = stop
        top = bottom


@njit(cache=True, nogil=True)
def pick_columns(table, offsets, columns, out):
    """out[i, columns[k]] = table[i, offsets[k]]."""
    for i in range(table.shape[0]):
        for k in range(offsets.shape[0]):
            out[i, columns[k]] = table[i, offsets[k]]


@njit(nogil=True)
def _end_of_run(values, start):
    stop = start + 1
    while stop < values.shape[0] and values[stop] == values[start]:
        stop += 1
    return stop


@njit(nogil=True)
def _pick(line, offsets, out):
    for k in range(offsets.shape[0]):
        out[k] = line[offsets[k]]


@njit(nogil=True)
def _pick_mirrored(tile, row_offsets, column_offsets, top, left, out):
    """Read a tile by its columns, a few at a time, so that what is read stays in the cache."""
    for start in range(0, column_offsets.shape[0], _COLUMNS_AT_ONCE):
        stop = min(start + _COLUMNS_AT_ONCE, column_offsets.shape[0])
        for i in range(row_offsets.shape[0]):
            for k in range(start, stop):
                out[top + i, left + k] = tile[column_offsets[k], row_offsets[i]]


@njit(cache=True, nogil=True)
def count_below(table, limit):
    """Return how many entries are smaller than the limit."""
    n_below = 0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            n_below += table[i, j] < limit
    return n_below


@njit(cache=True, nogil=True)
def find_below(table, limit, n_below):
    """Return the rows, columns and values of the entries smaller than the limit, of which there are ``n_below``."""
    rows, columns = np.empty(n_below, np.int32), np.empty(n_below, np.int32)
    values = np.empty(n_below, table.dtype)
    k = 0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] < limit:
                rows[k], columns[k], values[k] = i, j, table[i, j]
                k += 1
    return rows, columns, values


@njit(cache=True, nogil=True)
def add_sparse(starts, columns, values, rows, positions, out):
    """out[i, positions[j]] += the sparse entry of rows[i] and column j, where positions[j] is not negative."""
    for i in range(rows.shape[0]):
        for k in range(starts[rows[i]], starts[rows[i] + 1]):
            position = positions[columns[k]]
            if position >= 0:
                out[i, position] += values[k]


@njit(cache=True, nogil=True)
def multiply_sparse(starts, columns, values, first, last, coefficients, out):
    """out[m, i] += sum_j values[m, (i, j)] coefficients[j] for the rows from ``first`` to ``last``."""
    for m in range(values.shape[0]):
        for i in range(first, last):
            for k in range(starts[i], starts[i + 1]):
                value = np.float64(values[m, k])
                if value != 0.0:
                    _add_row(value, coefficients[columns[k]], out[m, i])


@njit(nogil=True)
def _add_row(value, row, out):
    for b in range(out.shape[0]):
        out[b] += value * row[b]
