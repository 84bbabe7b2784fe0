"""Compiled scans over codes held as planes of machine words: the k nearest, and all within a radius.

``planes`` has shape (n_planes, n_rows): word ``p`` of every code lies in plane ``p``, so that the loop over
rows is one vector loop for any code length. Rows are visited in order and a row only displaces one that is
strictly farther, so ties fall to the lower row number without comparing anything.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import intrinsic

# Rows that one vector loop tests before it branches, and rows that stay in cache while all queries pass.
# Chunks are cut to exactly this length because LLVM vectorizes a constant count three times better.
CHUNK = 128
TILE = 16384


@intrinsic
def popcount(typing_context, word):
    """Count the set bits of an unsigned integer with the machine's own instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return word(word), generate


@njit(cache=True, nogil=True)
def fill_distances(planes, first, n_rows, query, distances):
    """Write the distances of rows first ... first + n_rows - 1 to the query into ``distances``."""
    # The words are read first: as far as the compiler knows, a store to ``distances`` might change them.
    words, word = planes[0, first : first + n_rows], query[0]
    for i in range(len(words)):
        distances[i] = np.uint64(popcount(words[i] ^ word))
    for p in range(1, planes.shape[0]):
        words, word = planes[p, first : first + n_rows], query[p]
        for i in range(len(words)):
            distances[i] += np.uint64(popcount(words[i] ^ word))


@njit(cache=True, nogil=True)
def next_near_chunk(planes, first, stop, query, limit, distances):
    """Find the first chunk from ``first`` on with a distance <= limit; return where it starts, else ``stop``.

    The distances of that chunk are written to ``distances``; its length is min(CHUNK, stop - start).
    """
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
                wrapped |= distances[i] - threshold
        if np.int64(wrapped) < 0:
            break
        first += CHUNK
    if first < stop:
        fill_distances(planes, first, min(CHUNK, stop - first), query, distances)
    return first


@njit(cache=True, nogil=True)
def near_bits(distances, start, stop, limit):
    """Return a word with a bit for each of at most 64 distances, set if it is at most ``limit``."""
    bits, most = np.uint64(0), np.uint64(limit)
    for i in range(start, stop):
        # An unsigned index cannot count from the end: without that case this is a vector loop.
        bits |= np.uint64(distances[np.uint64(i)] <= most) << np.uint64(i - start)
    return bits


@njit(cache=True, nogil=True)
def lowest_bit(bits):
    """Return the number of the lowest set bit."""
    return np.int64(popcount((bits ^ (bits - np.uint64(1))) >> np.uint64(1)))


@njit(cache=True, nogil=True)
def select_rows(planes, first, stop, mask, selected, rows):
    """Copy the rows of a tile whose mask is set, and their numbers; return how many there are."""
    n_selected = 0
    for row in range(first, stop):
        # Always written, and kept by moving on: a branch here would be mispredicted half of the time.
        rows[n_selected] = row
        n_selected += mask[row]
    for p in range(planes.shape[0]):
        for i in range(n_selected):
            selected[p, i] = planes[p, rows[i]]
    return n_selected


@njit(cache=True, nogil=True)
def lower_level(counts, level, total, k):
    """Lower ``level`` while the ``total`` counted at or below it stays at least k without it."""
    while total - counts[level] >= k:
        total -= counts[level]
        level -= 1
    return level, total


@njit(cache=True, nogil=True)
def keep_nearest(rows, distances, n_kept, k, n_bits):
    """Sort candidates by distance, stably, in place; return how many of them are among the first k."""
    starts = np.zeros(n_bits + 2, np.int64)
    for i in range(n_kept):
        starts[distances[i] + 1] += 1
    for d in range(n_bits + 1):
        starts[d + 1] += starts[d]
    sorted_rows = np.empty(n_kept, np.int64)
    sorted_distances = np.empty(n_kept, np.int32)
    for i in range(n_kept):
        place = starts[distances[i]]
        starts[distances[i]] += 1
        sorted_rows[place] = rows[i]
        sorted_distances[place] = distances[i]
    n_first = min(n_kept, k)
    for i in range(n_first):
        rows[i] = sorted_rows[i]
        distances[i] = sorted_distances[i]
    return n_first


@njit(cache=True, nogil=True)
def nearest_rows(planes, start, stop, queries, k, n_bits, item_starts, mask, few_pass):
    """Return rows and distances of the k nearest rows of each query, by distance and row number.

    Row r stands for the items ``item_starts[r]`` to ``item_starts[r + 1]`` (empty: one item per row); rows
    farther than the k-th item are then left out. An empty ``mask`` lets every row pass; if ``few_pass``, those
    that do are gathered first, else the mask is checked last. Missing neighbors have row -1.
    """
    n_queries, n_planes = queries.shape
    room = min(2 * k, max(stop - start, k))
    rows = np.full((n_queries, room), -1, np.int64)
    distances = np.full((n_queries, room), n_bits + 1, np.int32)
    n_kept = np.zeros(n_queries, np.int64)
    # counts[0] counts rows and counts[1] items, by distance; levels are where the k-th of each lies.
    counts = np.zeros((n_queries, 2, n_bits + 1), np.int64)
    levels = np.full((n_queries, 2), n_bits, np.int64)
    totals = np.zeros((n_queries, 2), np.int64)
    limits = np.full(n_queries, n_bits, np.int64)
    chunk_distances = np.empty(CHUNK, np.uint64)
    selected = np.empty((n_planes, TILE if few_pass else 0), planes.dtype)
    numbers = np.empty(TILE + 1 if few_pass else 0, np.int64)

    for tile in range(start, stop, TILE):
        tile_stop = min(tile + TILE, stop)
        source, first_row, last_row = planes, tile, tile_stop
        if few_pass:
            source, first_row = selected, 0
            last_row = select_rows(planes, tile, tile_stop, mask, selected, numbers)
        for q in range(n_queries):
            first = next_near_chunk(source, first_row, last_row, queries[q], limits[q], chunk_distances)
            while first < last_row:
                for i in range(min(CHUNK, last_row - first)):
                    distance = np.int64(chunk_distances[i])
                    row = numbers[first + i] if few_pass else first + i
                    if distance > limits[q] or (mask.size and not mask[row]):
                        continue
                    if n_kept[q] == room:
                        n_kept[q] = keep_nearest(rows[q], distances[q], room, k, n_bits)
                    rows[q, n_kept[q]] = row
                    distances[q, n_kept[q]] = distance
                    n_kept[q] += 1
                    n_items = item_starts[row + 1] - item_starts[row] if item_starts.size else 1
                    limits[q] = count_candidate(counts[q], levels[q], totals[q], distance, n_items, k, n_bits)
                first = next_near_chunk(source, first + CHUNK, last_row, queries[q], limits[q], chunk_distances)
    for q in range(n_queries):
        n_first = keep_nearest(rows[q], distances[q], n_kept[q], k, n_bits)
        for i in range(n_first, k):
            rows[q, i] = -1
            distances[q, i] = n_bits + 1
    return rows[:, :k], distances[:, :k]


@njit(cache=True, nogil=True)
def count_candidate(counts, levels, totals, distance, n_items, k, n_bits):
    """Count a new candidate; return the largest distance at which a later row can still matter."""
    limit = n_bits
    for what, amount in ((0, 1), (1, n_items)):
        counts[what, distance] += amount
        if distance <= levels[what]:
            totals[what] += amount
            levels[what], totals[what] = lower_level(counts[what], levels[what], totals[what], k)
        if totals[what] >= k:
            # k earlier rows at this level beat a later row; k items may not, because their ids may be higher.
            limit = min(limit, levels[what] - 1 if what == 0 else levels[what])
    return limit


@njit(cache=True, nogil=True)
def rows_within(planes, start, stop, queries, radii, mask, few_pass):
    """Return query number, row and distance of every row within its query's radius, tile by tile."""
    n_queries, n_planes = queries.shape
    n_hits = 0
    hits = np.empty((256, 2), np.int64)
    hit_distances = np.empty(256, np.int32)
    chunk_distances = np.empty(CHUNK, np.uint64)
    selected = np.empty((n_planes, TILE if few_pass else 0), planes.dtype)
    numbers = np.empty(TILE + 1 if few_pass else 0, np.int64)
    for tile in range(start, stop, TILE):
        tile_stop = min(tile + TILE, stop)
        source, first_row, last_row = planes, tile, tile_stop
        if few_pass:
            source, first_row = selected, 0
            last_row = select_rows(planes, tile, tile_stop, mask, selected, numbers)
        for q in range(n_queries):
            first = next_near_chunk(source, first_row, last_row, queries[q], radii[q], chunk_distances)
            while first < last_row:
                n_rows = min(CHUNK, last_row - first)
                if n_hits + n_rows > len(hits):
                    hits = np.concatenate((hits, np.empty_like(hits)))
                    hit_distances = np.concatenate((hit_distances, np.empty_like(hit_distances)))
                for half in range(0, n_rows, 64):
                    near = near_bits(chunk_distances, half, min(half + 64, n_rows), radii[q])
                    while near:
                        i = half + lowest_bit(near)
                        near &= near - np.uint64(1)
                        row = numbers[first + i] if few_pass else first + i
                        # Always written, and kept by moving on: a filter is as hard to predict as a coin.
                        hits[n_hits, 0] = q
                        hits[n_hits, 1] = row
                        hit_distances[n_hits] = chunk_distances[i]
                        n_hits += 1 if mask.size == 0 else np.int64(mask[row])
                first = next_near_chunk(source, first + CHUNK, last_row, queries[q], radii[q], chunk_distances)
    return hits[:n_hits, 0].copy(), hits[:n_hits, 1].copy(), hit_distances[:n_hits].copy()


@njit(cache=True, nogil=True)
def group_hits(query_numbers, rows, distances, n_queries, n_bits):
    """Sort hits by query and distance, stably; return the start of each query's hits, rows and distances."""
    starts = np.zeros(n_queries * (n_bits + 1) + 1, np.int64)
    for i in range(len(rows)):
        starts[query_numbers[i] * (n_bits + 1) + distances[i] + 1] += 1
    for cell in range(len(starts) - 1):
        starts[cell + 1] += starts[cell]
    query_starts = starts[:: n_bits + 1].copy()
    sorted_rows = np.empty_like(rows)
    sorted_distances = np.empty_like(distances)
    for i in range(len(rows)):
        cell = query_numbers[i] * (n_bits + 1) + distances[i]
        sorted_rows[starts[cell]] = rows[i]
        sorted_distances[starts[cell]] = distances[i]
        starts[cell] += 1
    return query_starts, sorted_rows, sorted_distances


@njit(cache=True, nogil=True)
def score_penalties(planes, rows, query, weights):
    """Return for each row the sum of the weights of the bits in which it differs from the query."""
    word_bits = 8 * planes.itemsize
    penalties = np.zeros(len(rows))
    for i in range(len(rows)):
        for bit in range(len(weights)):
            p, shift = bit // word_bits, bit % word_bits
            if (planes[p, rows[i]] ^ query[p]) >> planes.dtype.type(shift) & planes.dtype.type(1):
                penalties[i] += weights[bit]
    return penalties
