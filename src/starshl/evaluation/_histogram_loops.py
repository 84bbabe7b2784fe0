"""Compiled loops over packed codes: distances are counted on the fly and never stored."""

import numpy as np
from numba import njit

from ..codes._hamming_loops import popcount

__all__ = ["count_by_distance", "count_by_distance_multilabel", "hits_in_storage_order", "neighbor_votes"]

# Items of one block stay in the first-level cache while the queries of a tile pass over them.
_BLOCK = 2048


@njit(cache=True, nogil=True, inline="always")
def _distance(a, b):
    n_different = np.uint64(0)
    for w in range(a.shape[0]):
        n_different += popcount(a[w] ^ b[w])
    return np.intp(n_different)


@njit(cache=True, nogil=True)
def count_by_distance(queries, items, query_class, item_class, count, relevant):
    """Add to ``count[q, r]`` the items at distance r and to ``relevant[q, r]`` those of the query's class."""
    for start in range(0, items.shape[0], _BLOCK):
        stop = min(start + _BLOCK, items.shape[0])
        for q in range(queries.shape[0]):
            wanted = query_class[q]
            for i in range(start, stop):
                r = _distance(queries[q], items[i])
                count[q, r] += 1
                relevant[q, r] += item_class[i] == wanted


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
def neighbor_votes(queries, items, item_class, n_bits, k, votes):
    """Add to ``votes[q, c]`` the expected number of items of class c among the k nearest of query q."""
    count = np.empty(n_bits + 1, np.int64)
    distance = np.empty(items.shape[0], np.int64)
    for q in range(queries.shape[0]):
        count[:] = 0
        for i in range(items.shape[0]):
            distance[i] = _distance(queries[q], items[i])
            count[distance[i]] += 1
        last, left = 0, k
        while count[last] < left:
            left -= count[last]
            last += 1
        for i in range(items.shape[0]):
            if distance[i] < last:
                votes[q, item_class[i]] += 1.0
            elif distance[i] == last:
                votes[q, item_class[i]] += left / count[last]
