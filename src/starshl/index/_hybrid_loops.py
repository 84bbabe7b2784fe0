"""Compiled scan of codes that begin with a class: candidates of the query's own class, and of all others.

Rows are visited in the order of their ids. So a row cannot be among the k nearest if k earlier rows are no farther.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..codes._hamming_loops import CHUNK, TILE, fill_distances, lower_level, lowest_bit, popcount, select_rows

# Beyond every distance plus weight.
NOT_YET = 1 << 30


@njit(cache=True, nogil=True)
def fill_chunk(planes, first, n_rows, query, field, distances, differs):
    """Write the distances of the neighbor bits to the query, and whether the class fields differ."""
    words, word = planes[0, first : first + n_rows], query[0]
    for i in range(len(words)):
        difference = words[i] ^ word
        distances[i] = np.int64(popcount(difference & ~field))
        differs[i] = np.int64((difference & field) != 0)
    for p in range(1, planes.shape[0]):
        words, word = planes[p, first : first + n_rows], query[p]
        for i in range(len(words)):
            distances[i] += np.int64(popcount(words[i] ^ word))


@njit(cache=True, nogil=True)
def next_near_chunk(planes, first, stop, query, field, limits, distances, differs):
    """Find the first chunk from ``first`` on with a row within its limit; return where it starts, else ``stop``.

    ``limits`` are the largest distances of rows of the query's class and of other rows. The distances of that chunk
    are written to ``distances``; its length is min(CHUNK, stop - start).
    """
    # Whole codes are tested faster, and no row is within its limit if its whole code is beyond both of these. While
    # they let too many chunks pass in vain, which depends on the number of classes, both fields are tested at once.
    whole_limit = max(limits[0], limits[1] + np.int64(popcount(field)))
    start, n_vain = first, 0
    while first + CHUNK <= stop:
        if n_vain > 2 + (first - start) // (4 * CHUNK):
            first = next_exact_chunk(planes, first, stop, query, field, limits, distances, differs)
            break
        first = next_whole_chunk(planes, first, stop, query, whole_limit, distances)
        if first + CHUNK > stop:
            break
        one_chunk = first + CHUNK
        if next_exact_chunk(planes, first, one_chunk, query, field, limits, distances, differs) < one_chunk:
            break
        first, n_vain = one_chunk, n_vain + 1
    if first < stop:
        fill_chunk(planes, first, min(CHUNK, stop - first), query, field, distances, differs)
    return first


@njit(cache=True, nogil=True)
def next_whole_chunk(planes, first, stop, query, limit, distances):
    """Find the first chunk with a row whose whole code is within the limit; return where it starts, else ``stop``."""
    threshold = np.uint64(limit + 1)
    while first + CHUNK <= stop:
        # A distance below the threshold wraps around and sets the top bit: no comparison, one branch per chunk.
        wrapped = np.uint64(0)
        if planes.shape[0] == 1:
            words, word = planes[0, first : first + CHUNK], query[0]
            for i in range(CHUNK):
                wrapped |= np.uint64(popcount(words[i] ^ word)) - threshold
        else:
            fill_distances(planes, first, CHUNK, query, distances)
            for i in range(CHUNK):
                wrapped |= np.uint64(distances[i]) - threshold
        if np.int64(wrapped) < 0:
            break
        first += CHUNK
    return first


@njit(cache=True, nogil=True)
def next_exact_chunk(planes, first, stop, query, field, limits, distances, differs):
    """Find the first chunk with a row within the limit of its class; return where it starts, else ``stop``."""
    threshold, gap = np.uint64(limits[0] + 1), np.uint64(limits[0] - limits[1])
    while first + CHUNK <= stop:
        wrapped = np.uint64(0)
        if planes.shape[0] == 1:
            words, word = planes[0, first : first + CHUNK], query[0]
            for i in range(CHUNK):
                difference = words[i] ^ word
                penalty = gap if difference & field else np.uint64(0)
                wrapped |= np.uint64(popcount(difference & ~field)) + penalty - threshold
        else:
            fill_chunk(planes, first, CHUNK, query, field, distances, differs)
            for i in range(CHUNK):
                penalty = gap if differs[i] else np.uint64(0)
                wrapped |= np.uint64(distances[i]) + penalty - threshold
        if np.int64(wrapped) < 0:
            break
        first += CHUNK
    return first


@njit(cache=True, nogil=True)
def near_bits(distances, differs, start, stop, limits):
    """Return a word with a bit for each of at most 64 rows, set if it is within the limit of its class."""
    bits, of_class, of_others = np.uint64(0), limits[0], limits[1]
    for i in range(start, stop):
        # An unsigned index cannot count from the end: without that case this is a vector loop.
        most = of_others if differs[np.uint64(i)] else of_class
        bits |= np.uint64(distances[np.uint64(i)] <= most) << np.uint64(i - start)
    return bits


@njit(cache=True, nogil=True)
def candidates(planes, start, stop, queries, field, rule, start_limits, n_bits, mask, few_pass):
    """Return query number, row, distance of the neighbor bits, and whether the class differs, of all candidates.

    ``rule`` is (k, weight, n_first): candidates are all rows that can be among the k nearest, and the n_first nearest
    of the query's class. If k is 0, they are all rows within ``start_limits``, (n_queries, 2), which otherwise only
    have to be large enough. An empty ``mask`` lets every row pass; if ``few_pass``, those that do are gathered first.
    """
    k, weight, n_first = rule
    n_queries, n_planes = queries.shape
    n_hits = 0
    hits = np.empty((1024, 4), np.int64)
    limits = start_limits.copy()
    counts = np.zeros((n_queries, 2, n_bits + 1), np.int64)
    levels, totals = np.full((n_queries, 3), n_bits, np.int64), np.zeros((n_queries, 3), np.int64)
    distances, differs = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    selected = np.empty((n_planes, TILE if few_pass else 0), planes.dtype)
    numbers = np.empty(TILE + 1 if few_pass else 0, np.int64)
    for tile in range(start, stop, TILE):
        source, first_row, last_row = planes, tile, min(tile + TILE, stop)
        if few_pass:
            source, first_row = selected, 0
            last_row = select_rows(planes, tile, min(tile + TILE, stop), mask, selected, numbers)
        for q in range(n_queries):
            query, own = queries[q], limits[q]
            first = next_near_chunk(source, first_row, last_row, query, field, own, distances, differs)
            while first < last_row:
                if n_hits + CHUNK > len(hits):
                    hits = np.concatenate((hits, np.empty_like(hits)))
                n_rows = min(CHUNK, last_row - first)
                for begin in range(0, n_rows, 64):
                    bits = near_bits(distances, differs, begin, min(begin + 64, n_rows), own)
                    while bits:
                        i = begin + lowest_bit(bits)
                        bits &= bits - np.uint64(1)
                        row = numbers[first + i] if few_pass else first + i
                        if distances[i] > own[differs[i]] or (mask.size and not mask[row]):
                            continue
                        hits[n_hits, 0], hits[n_hits, 1] = q, row
                        hits[n_hits, 2], hits[n_hits, 3] = distances[i], differs[i]
                        n_hits += 1
                        if k:
                            count(counts[q], levels[q], totals[q], distances[i], differs[i], k, n_first)
                            narrow(own, levels[q], totals[q], k, weight, n_first)
                first = next_near_chunk(source, first + CHUNK, last_row, query, field, own, distances, differs)
    if not k:
        return hits[:n_hits].copy()
    for q in range(n_queries):
        widen(limits[q], levels[q], totals[q], k, weight, n_first)
    return within_limits(hits[:n_hits], limits)


@njit(cache=True, nogil=True)
def within_limits(hits, limits):
    """Return the hits that are within the limits of their queries and classes."""
    kept = np.empty_like(hits)
    n_kept = 0
    for hit in range(len(hits)):
        if hits[hit, 2] <= limits[hits[hit, 0], hits[hit, 3]]:
            kept[n_kept] = hits[hit]
            n_kept += 1
    return kept[:n_kept].copy()


@njit(cache=True, nogil=True)
def count(counts, levels, totals, distance, differs, k, n_first):
    """Count a candidate; keep the distances of the k-th and n_first-th row of the class and of the k-th other row."""
    counts[differs, distance] += 1
    for which in range(3):
        wanted = n_first if which == 1 else k
        if (which == 2) == (differs == 1) and distance <= levels[which] and wanted > 0:
            totals[which] += 1
            if totals[which] >= wanted:
                levels[which], totals[which] = lower_level(counts[differs], levels[which], totals[which], wanted)


@njit(cache=True, nogil=True)
def narrow(limits, levels, totals, k, weight, n_first):
    """Lower the limits to the largest distances at which a later row still matters.

    A row of the class matters if it can be among the n_first or among the k nearest, another row only in the latter
    case. See :class:`starshl.index.hybrid.ClassRule` for the distance of other rows.
    """
    of_class, first, others = known_levels(levels, totals, k, n_first)
    limits[0] = max(first, min(of_class, max(others + weight, first + 1))) - 1
    limits[1] = min(others, of_class - weight) - 1


@njit(cache=True, nogil=True)
def widen(limits, levels, totals, k, weight, n_first):
    """Raise the limits to the largest distances at which a row that was visited already still matters.

    Unlike a later row, it precedes rows at equal distance, and those of other classes that are moved behind the first
    rows of the class are all at equal distance.
    """
    of_class, first, others = known_levels(levels, totals, k, n_first)
    limits[0] = max(first, min(of_class, max(others + weight, first + 1)))
    limits[1] = min(max(others, first + 1 - weight), of_class - weight)


@njit(cache=True, nogil=True)
def known_levels(levels, totals, k, n_first):
    """Return the distances of the k-th and n_first-th row of the class and of the k-th other row, if there are any."""
    of_class = levels[0] if totals[0] >= k else NOT_YET
    others = levels[2] if totals[2] >= k else NOT_YET
    first = -1
    if n_first:
        first = levels[1] if totals[1] >= n_first else NOT_YET
    return of_class, first, others
