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
# Codes of this many words are read in blocks: a processor does not read ahead of so many places in memory at once.
# With fewer words than four, there is nothing to read four at a time.
LONG = 4
_BLOCK = 2048
# A hit within a radius is one number: its row within a tile, and above these bits its distance.
OFFSET_BITS = 14
_OFFSET = (1 << OFFSET_BITS) - 1
# Where k is large, a sample of rows that holds about this many of the k nearest says how far away they are.
_SAMPLED_NEIGHBORS = 16
_MIN_ROWS_FOR_SAMPLE = 4 * TILE


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
def fill_block(planes, first, n_rows, query, distances):
    """Do what :func:`fill_distances` does for codes of at least four words, four words at a time."""
    n_planes = planes.shape[0]
    for p in range(0, n_planes - 3, 4):
        a, b = planes[p, first : first + n_rows], planes[p + 1, first : first + n_rows]
        c, d = planes[p + 2, first : first + n_rows], planes[p + 3, first : first + n_rows]
        word_a, word_b, word_c, word_d = query[p], query[p + 1], query[p + 2], query[p + 3]
        if p == 0:
            for i in range(n_rows):
                half = np.uint64(popcount(a[i] ^ word_a)) + np.uint64(popcount(b[i] ^ word_b))
                distances[i] = half + np.uint64(popcount(c[i] ^ word_c)) + np.uint64(popcount(d[i] ^ word_d))
        else:
            for i in range(n_rows):
                half = np.uint64(popcount(a[i] ^ word_a)) + np.uint64(popcount(b[i] ^ word_b))
                distances[i] += half + np.uint64(popcount(c[i] ^ word_c)) + np.uint64(popcount(d[i] ^ word_d))
    for p in range(n_planes - n_planes % 4, n_planes):
        words, word = planes[p, first : first + n_rows], query[p]
        for i in range(n_rows):
            distances[i] += np.uint64(popcount(words[i] ^ word))


@njit(cache=True, nogil=True)
def next_near(planes, base, first, stop, query, limit, distances):
    """Find the next chunk with a distance <= limit: return where it starts, else ``stop``, and its place.

    Chunks are counted from row ``base``, and each call goes on where the last one ended. The distances of a chunk begin
    at its place in ``distances``.
    """
    if planes.shape[0] < LONG:
        return next_near_chunk(planes, first, stop, query, limit, distances), 0
    threshold = np.uint64(limit + 1)
    while first < stop:
        place = (first - base) % _BLOCK
        if place == 0:
            fill_block(planes, first, min(_BLOCK, stop - first), query, distances)
        if first + CHUNK > stop:
            return first, place
        wrapped = np.uint64(0)
        for i in range(place, place + CHUNK):
            wrapped |= distances[np.uint64(i)] - threshold
        if np.int64(wrapped) < 0:
            return first, place
        first += CHUNK
    return first, 0


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
    n_queries = len(queries)
    room = min(2 * k, max(stop - start, k))
    rows = np.empty((n_queries, room), np.int64)
    distances = np.empty((n_queries, room), np.int32)
    limits = np.full(n_queries, n_bits, np.int64)
    if item_starts.size == 0 and not few_pass and stop - start >= _MIN_ROWS_FOR_SAMPLE and k * k >= stop - start:
        for q in range(n_queries):
            limits[q] = sampled_limit(planes, start, stop, queries[q], k, n_bits, mask)
    n_found = scan_nearest(
        planes, start, stop, queries, k, n_bits, item_starts, mask, few_pass, limits, rows, distances
    )
    for q in range(n_queries):
        if n_found[q] < k and limits[q] < n_bits:
            # The sample was nearer than the rest: look again at everything.
            limits[q] = n_bits
            # Not the whole result at once: Numba compiles an assignment of arrays for seconds.
            n_found[q] = scan_nearest(
                planes,
                start,
                stop,
                queries[q : q + 1],
                k,
                n_bits,
                item_starts,
                mask,
                few_pass,
                limits[q : q + 1],
                rows[q : q + 1],
                distances[q : q + 1],
            )[0]
        for i in range(n_found[q], k):
            rows[q, i] = -1
            distances[q, i] = n_bits + 1
    return rows[:, :k], distances[:, :k]


@njit(cache=True, nogil=True)
def sampled_limit(planes, start, stop, query, k, n_bits, mask):
    """Return a distance within which there are probably k rows that pass the mask, from a sample of chunks."""
    n_chunks = (stop - start) // CHUNK
    n_sampled = min(max(_SAMPLED_NEIGHBORS * n_chunks // k, 8), n_chunks)
    distances = np.empty(CHUNK, np.uint64)
    counts = np.zeros(n_bits + 1, np.int64)
    for sample in range(n_sampled):
        first = start + CHUNK * (sample * n_chunks // n_sampled)
        fill_distances(planes, first, CHUNK, query, distances)
        for i in range(CHUNK):
            counts[distances[i]] += 1 if mask.size == 0 else np.int64(mask[first + i])
    expected = k * n_sampled / n_chunks
    wanted, n_within = expected + 4 * np.sqrt(expected) + 1, 0
    for distance in range(n_bits + 1):
        n_within += counts[distance]
        if n_within >= wanted:
            return distance
    return n_bits


@njit(cache=True, nogil=True)
def scan_nearest(planes, start, stop, queries, k, n_bits, item_starts, mask, few_pass, limits, rows, distances):
    """Write the k nearest rows of each query within its limit, and their distances; return how many there are."""
    n_queries, n_planes = queries.shape
    room = rows.shape[1]
    n_kept = np.zeros(n_queries, np.int64)
    # counts[0] counts rows and counts[1] items, by distance; levels are where the k-th of each lies.
    counts = np.zeros((n_queries, 2, n_bits + 1), np.int64)
    levels = np.full((n_queries, 2), n_bits, np.int64)
    totals = np.zeros((n_queries, 2), np.int64)
    near_limits = limits.copy()
    chunk_distances = np.empty(_BLOCK, np.uint64)
    selected = np.empty((n_planes, TILE if few_pass else 0), planes.dtype)
    numbers = np.empty(TILE + 1 if few_pass else 0, np.int64)

    for tile in range(start, stop, TILE):
        tile_stop = min(tile + TILE, stop)
        source, base, last = planes, tile, tile_stop
        if few_pass:
            source, base = selected, 0
            last = select_rows(planes, tile, tile_stop, mask, selected, numbers)
        for q in range(n_queries):
            limit = near_limits[q]
            first, place = next_near(source, base, base, last, queries[q], limit, chunk_distances)
            while first < last:
                n_rows = min(CHUNK, last - first)
                for half in range(0, n_rows, 64):
                    near = near_bits(chunk_distances, place + half, place + min(half + 64, n_rows), limit)
                    while near:
                        i = half + lowest_bit(near)
                        near &= near - np.uint64(1)
                        distance = np.int64(chunk_distances[place + i])
                        row = numbers[first + i] if few_pass else first + i
                        if distance > limit or (mask.size and not mask[row]):
                            continue
                        if n_kept[q] == room:
                            n_kept[q] = keep_nearest(rows[q], distances[q], room, k, n_bits)
                        rows[q, n_kept[q]] = row
                        distances[q, n_kept[q]] = distance
                        n_kept[q] += 1
                        found = count_candidate(counts[q, 0], levels[q], totals[q], 0, distance, 1, k)
                        # k earlier rows at this level beat a later row; k items may not: their ids may be higher.
                        limit = min(limit, found - 1)
                        if item_starts.size:
                            n_items = item_starts[row + 1] - item_starts[row]
                            found = count_candidate(counts[q, 1], levels[q], totals[q], 1, distance, n_items, k)
                            limit = min(limit, found)
                first, place = next_near(source, base, first + CHUNK, last, queries[q], limit, chunk_distances)
            near_limits[q] = limit
    for q in range(n_queries):
        n_kept[q] = keep_nearest(rows[q], distances[q], n_kept[q], k, n_bits)
    return n_kept


@njit(cache=True, nogil=True)
def count_candidate(counts, levels, totals, what, distance, amount, k):
    """Count a candidate; return the distance of the k-th, or the greatest number if there are fewer."""
    counts[distance] += amount
    if distance <= levels[what]:
        totals[what] += amount
        while totals[what] - counts[levels[what]] >= k:
            totals[what] -= counts[levels[what]]
            levels[what] -= 1
    return levels[what] if totals[what] >= k else np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def rows_within(planes, start, stop, queries, radii, n_bits, mask, few_pass, hits):
    """Find every row within its query's radius, tile by tile.

    Hits are written to ``hits``, or to a larger copy: the row within the tile, and the distance above OFFSET_BITS.
    Return the hits, where those of each tile and query end, and how many there are of each query and distance.
    """
    n_queries, n_planes = queries.shape
    n_tiles = -((start - stop) // TILE)
    ends = np.zeros((n_tiles, n_queries), np.int64)
    counts = np.zeros((n_queries, n_bits + 1), np.int64)
    n_hits = 0
    chunk_distances = np.empty(_BLOCK, np.uint64)
    selected = np.empty((n_planes, TILE if few_pass else 0), planes.dtype)
    numbers = np.empty(TILE + 1 if few_pass else 0, np.int64)
    for t in range(n_tiles):
        tile = start + t * TILE
        source, base, last = planes, tile, min(tile + TILE, stop)
        if few_pass:
            source, base = selected, 0
            last = select_rows(planes, tile, min(tile + TILE, stop), mask, selected, numbers)
        for q in range(n_queries):
            before = n_hits
            first, place = next_near(source, base, base, last, queries[q], radii[q], chunk_distances)
            while first < last:
                n_rows = min(CHUNK, last - first)
                if n_hits + n_rows > len(hits):
                    # As many as there will be if the rest is like what was seen, within reason.
                    expected = n_hits // (t * n_queries + q + 1) * n_tiles * n_queries
                    more = min(max(len(hits), expected - len(hits) + expected // 16), 15 * len(hits)) + CHUNK
                    hits = np.concatenate((hits, np.empty(more, hits.dtype)))
                for half in range(0, n_rows, 64):
                    near = near_bits(chunk_distances, place + half, place + min(half + 64, n_rows), radii[q])
                    while near:
                        i = half + lowest_bit(near)
                        near &= near - np.uint64(1)
                        offset = (numbers[first + i] if few_pass else first + i) - tile
                        # Always written, and kept by moving on: a filter is as hard to predict as a coin.
                        distance = chunk_distances[np.uint64(place + i)]
                        hits[n_hits] = distance << np.uint64(OFFSET_BITS) | np.uint64(offset)
                        n_hits += 1 if mask.size == 0 else np.int64(mask[tile + offset])
                first, place = next_near(source, base, first + CHUNK, last, queries[q], radii[q], chunk_distances)
            for hit in range(before, n_hits):
                counts[q, hits[hit] >> OFFSET_BITS] += 1
            ends[t, q] = n_hits
    return hits, ends, counts


@njit(cache=True, nogil=True)
def place_hits(hits, ends, start, places, rows):
    """Write the rows of the hits from :func:`rows_within`, each to the next place of its query and distance."""
    hit = 0
    for t in range(ends.shape[0]):
        tile = start + t * TILE
        for q in range(ends.shape[1]):
            while hit < ends[t, q]:
                distance = hits[hit] >> OFFSET_BITS
                rows[places[q, distance]] = tile + np.int64(hits[hit] & _OFFSET)
                places[q, distance] += 1
                hit += 1


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
