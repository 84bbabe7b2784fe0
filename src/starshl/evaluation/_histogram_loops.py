"""Compiled loops over packed codes: distances are counted on the fly and never stored."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..codes._hamming_loops import fill_distances, lowest_bit, near_bits, popcount

# Items of one block stay in the first-level cache while the queries of a tile pass over them.
_BLOCK = 2048


@njit(cache=True, nogil=True, inline="always")
def _distance(a, b):
    n_different = np.uint64(0)
    for w in range(a.shape[0]):
        n_different += popcount(a[w] ^ b[w])
    return np.intp(n_different)


@njit(cache=True, nogil=True)
def count_by_distance(queries, planes, query_class, starts, weights, count, relevant):
    """Set ``count[q, r]`` to the items at distance r and ``relevant[q, r]`` to those of the query's class.

    ``planes`` holds distinct codes as in ``codes``, those of class c at ``starts[c]`` to ``starts[c + 1]``, and
    ``weights`` how many items have each. Equal queries follow each other, so that their distances are computed once.
    """
    n_rows = planes.shape[1]
    distances = np.empty(n_rows, np.uint64)
    parts = np.empty((4, count.shape[1]), np.int64)
    for q in range(queries.shape[0]):
        if q > 0 and _is_equal(queries[q], queries[q - 1]):
            count[q] = count[q - 1]
            if query_class[q] == query_class[q - 1]:
                relevant[q] = relevant[q - 1]
                continue
        else:
            fill_distances(planes, 0, n_rows, queries[q], distances)
            _add_up(distances, weights, 0, n_rows, parts, count[q])
        wanted = query_class[q]
        _add_up(distances, weights, starts[wanted], starts[wanted + 1], parts, relevant[q])


@njit(nogil=True)
def _is_equal(a, b):
    n_different = 0
    for w in range(a.shape[0]):
        n_different += a[w] != b[w]
    return n_different == 0


@njit(nogil=True)
def _add_up(distances, weights, start, stop, parts, total):
    """Set ``total[r]`` to the weights at distance r, from ``start`` to ``stop``."""
    # Neighbors often have the same distance, and adding to one number twice takes longer than adding to two of them.
    parts[:] = 0
    first, second, third, fourth = parts
    whole = start + (stop - start) // 4 * 4
    for i in range(start, whole, 4):
        first[distances[i]] += weights[i]
        second[distances[i + 1]] += weights[i + 1]
        third[distances[i + 2]] += weights[i + 2]
        fourth[distances[i + 3]] += weights[i + 3]
    for i in range(whole, stop):
        first[distances[i]] += weights[i]
    for r in range(total.shape[0]):
        total[r] = first[r] + second[r] + third[r] + fourth[r]


@njit(cache=True, nogil=True)
def count_by_distance_multilabel(queries, items, query_labels, item_labels, count, relevant):
    """As :func:`count_by_distance`, with labels as sets of bits: one in common makes an item relevant."""
    for start in range(0, items.shape[0], _BLOCK):
        stop = min(start + _BLOCK, items.shape[0])
        for q in range(queries.shape[0]):
            for i in range(start, stop):
                shared = False
                for w in range(query_labels.shape[1]):
                    shared |= (query_labels[q, w] & item_labels[i, w]) != 0
                r = _distance(queries[q], items[i])
                count[q, r] += 1
                relevant[q, r] += shared


@njit(cache=True, nogil=True)
def hits_in_storage_order(queries, items, query_class, item_class, count, s, hits):
    """Set ``hits[q]`` to the relevant items among the first s, those at equal distance in storage order."""
    for q in range(queries.shape[0]):
        last, left = 0, s
        while last < count.shape[1] - 1 and count[q, last] < left:
            left -= count[q, last]
            last += 1
        n_hits = 0
        for i in range(items.shape[0]):
            r = _distance(queries[q], items[i])
            if r < last or (r == last and left > 0):
                n_hits += item_class[i] == query_class[q]
                left -= r == last
        hits[q] = n_hits


@njit(cache=True, nogil=True)
def neighbor_votes(queries, planes, item_class, weights, n_bits, k, votes):
    """Add to ``votes[q, c]`` the expected number of items of class c among the k nearest of query q.

    ``planes``, ``weights`` and equal queries are as in :func:`count_by_distance`.
    """
    n_rows = planes.shape[1]
    count, parts = np.empty(n_bits + 1, np.int64), np.empty((4, n_bits + 1), np.int64)
    distances = np.empty(n_rows, np.uint64)
    for q in range(queries.shape[0]):
        if q > 0 and _is_equal(queries[q], queries[q - 1]):
            votes[q] = votes[q - 1]
            continue
        fill_distances(planes, 0, n_rows, queries[q], distances)
        _add_up(distances, weights, 0, n_rows, parts, count)
        last, left = 0, k
        while count[last] < left:
            left -= count[last]
            last += 1
        share = left / count[last]
        for start in range(0, n_rows, 64):
            stop = min(start + 64, n_rows)
            near = near_bits(distances[start:stop], 0, stop - start, last)
            while near:
                i = start + lowest_bit(near)
                votes[q, item_class[i]] += weights[i] * (share if distances[i] == np.uint64(last) else 1.0)
                near &= near - np.uint64(1)
