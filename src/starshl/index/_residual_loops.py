"""Compiled scan of reconstructed items: distances to a query as sums of table entries, one per byte of a code.

As in ``_hybrid_loops.py``, rows are visited in the order of their ids, so a row only matters if it is strictly nearer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..codes._hamming_loops import CHUNK, TILE


@njit(cache=True, nogil=True)
def squared_reconstruction_norms(planes, n_rows, n_class_bits, centers, products, constant):
    """Return centers[c] + 2 sum_j b_j products[c, j] + constant for the class c and the signs b of each row.

    The sum runs in the order of bits, so equal codes have equal norms.
    """
    word_bits, field = 8 * planes.itemsize, planes.dtype.type((1 << n_class_bits) - 1)
    norms = np.empty(n_rows, np.float32)
    for row in range(n_rows):
        c = np.int64(planes[0, row] & field)
        total = centers[c] + constant
        for j in range(products.shape[1]):
            bit = n_class_bits + j
            word = planes[bit // word_bits, row] >> planes.dtype.type(bit % word_bits)
            total += 2.0 * products[c, j] if word & planes.dtype.type(1) else -2.0 * products[c, j]
        norms[row] = total
    return norms


@njit(cache=True, nogil=True)
def fill_chunk(planes, first, n_rows, norms, heads, tables, field, own, distances, differs):
    """Write the distances of some rows, and whether their class differs from the query's, ``own``."""
    words, start = planes[0, first : first + n_rows], norms[first : first + n_rows]
    for i in range(n_rows):
        c = words[i] & field
        distances[i] = start[i] + heads[c]
        differs[i] = c != own
    # Four bytes at a time: fewer would write and read the sums more often.
    n_parts = max(1, planes.itemsize // 4)
    for p in range(planes.shape[0]):
        words = planes[p, first : first + n_rows]
        for part in range(n_parts):
            table, shift = tables[4 * (n_parts * p + part) :], planes.dtype.type(32 * part)
            add_entries(words, shift, table[0], table[1], table[2], table[3], distances)


@njit(cache=True, nogil=True)
def add_entries(words, shift, table0, table1, table2, table3, sums):
    """Add the entries of four bytes of each word, from ``shift`` on."""
    for i in range(len(words)):
        four = np.uint32(words[i] >> shift)
        low = table0[four & np.uint32(255)] + table1[(four >> np.uint32(8)) & np.uint32(255)]
        sums[i] += low + (table2[(four >> np.uint32(16)) & np.uint32(255)] + table3[four >> np.uint32(24)])


@njit(cache=True, nogil=True)
def candidates(planes, start, stop, norms, heads, tables, field, owns, rule, start_limits, mask):
    """Return query number, row and whether the class differs, and the distance, of all candidates.

    ``rule`` is (k, weight, n_first): candidates are all rows that can be among the k nearest, and the n_first nearest
    of the query's class. If k is 0, they are all rows nearer than ``start_limits``, (n_queries, 2): one limit for rows
    of the query's class, one for all others. An empty ``mask`` lets every row pass.
    """
    k, weight, n_first = rule
    n_queries = len(owns)
    n_hits = 0
    hits, hit_distances = np.empty((1024, 3), np.int64), np.empty(1024, np.float32)
    limits = start_limits.copy()
    of_class = np.full((n_queries, max(k, n_first)), np.inf, np.float32)
    of_others = np.full((n_queries, k), np.inf, np.float32)
    distances, differs = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.bool_)
    for tile in range(start, stop, TILE):
        tile_stop = min(tile + TILE, stop)
        for q in range(n_queries):
            for first in range(tile, tile_stop, CHUNK):
                n_rows = min(CHUNK, tile_stop - first)
                fill_chunk(planes, first, n_rows, norms, heads[q], tables[q], field, owns[q], distances, differs)
                if not any_near(distances, differs, n_rows, limits[q]):
                    continue
                if n_hits + CHUNK > len(hits):
                    hits = np.concatenate((hits, np.empty_like(hits)))
                    hit_distances = np.concatenate((hit_distances, np.empty_like(hit_distances)))
                for i in range(n_rows):
                    # Rounding may leave a small negative number where a query is its own item.
                    distance = max(distances[i], np.float32(0))
                    if not distance < limits[q, np.int64(differs[i])] or (mask.size and not mask[first + i]):
                        continue
                    hits[n_hits, 0], hits[n_hits, 1], hits[n_hits, 2] = q, first + i, differs[i]
                    hit_distances[n_hits] = distance
                    n_hits += 1
                    if k:
                        replace_largest(of_others[q] if differs[i] else of_class[q], distance)
                        limits[q, 0] = of_class[q, 0]
                        limits[q, 1] = min(np.float64(of_others[q, 0]), of_class[q, 0] - weight)
    return hits[:n_hits].copy(), hit_distances[:n_hits].copy()


@njit(cache=True, nogil=True)
def any_near(distances, differs, n_rows, limits):
    """Return whether a row is below its limit."""
    near, of_class, of_others = 0, limits[0], limits[1]
    for i in range(n_rows):
        near |= distances[i] < (of_others if differs[i] else of_class)
    return near > 0


@njit(cache=True, nogil=True)
def replace_largest(heap, value):
    """Put a value in the place of the largest one, which is the first entry of a heap."""
    place = 0
    while 2 * place + 1 < len(heap):
        child = 2 * place + 1
        if child + 1 < len(heap) and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = value
