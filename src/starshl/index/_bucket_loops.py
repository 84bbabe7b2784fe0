"""Compiled loops of the bucket index: grouping equal codes, turning buckets back into items, and finding near ones.

A bucket is a row of the planes and a span of ids: ``starts[b]`` to ``starts[b + 1]``, ascending. The buckets nearest to
a query are found with a table of distances, if codes fit into one word of 64 bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..codes._hamming_loops import lowest_bit, popcount

# Two odd numbers with about half of their bits set, so that a product depends on every lower bit.
_FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SECOND_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF_WORD = np.uint64(32)
# The table of distances cuts words into pieces of five bits; two rows share a byte of it.
PIECE_BITS = 5
N_VALUES = 1 << PIECE_BITS
N_PIECES = -(-64 // PIECE_BITS)
HALF = 64
TILE = 2 * HALF
TILE_BYTES = N_PIECES * N_VALUES * HALF
QUERIES_TOGETHER = 256
# Rows that fill up the last tile have this piece everywhere: 5 bits from any value, farther than any code.
_NO_CODE = N_VALUES
_LOW_HALF = np.uint8(15)
_FOUR = np.uint8(4)


@njit(cache=True, nogil=True)
def hash_slot(planes, row, slot_mask):
    """Return where the search for a row's code starts in a table of slot_mask + 1 slots."""
    mixed = np.uint64(0)
    for p in range(planes.shape[0]):
        mixed ^= np.uint64(planes[p, row])
        # A product only carries upward. Folding the upper half down before and after each one lets every bit of the
        # code reach the lowest bits, which choose the slot.
        mixed = (mixed ^ (mixed >> _HALF_WORD)) * _FIRST_FACTOR
        mixed = (mixed ^ (mixed >> _HALF_WORD)) * _SECOND_FACTOR
        mixed ^= mixed >> _HALF_WORD
    return np.int64(mixed & np.uint64(slot_mask))


@njit(cache=True, nogil=True)
def same_code(planes, row, others, other):
    """Return whether two rows hold the same code."""
    different = False
    for p in range(planes.shape[0]):
        different |= planes[p, row] != others[p, other]
    return not different


@njit(cache=True, nogil=True)
def make_table(planes, rows, n_rows, slots_per_row=2):
    """Return a hash table of the first ``n_rows`` rows, all different: slots hold row numbers, -1 where empty."""
    n_slots = 16
    while n_slots < slots_per_row * n_rows:
        n_slots *= 2
    table = np.full(n_slots, -1, np.int32)
    for number in range(n_rows):
        slot = hash_slot(planes, rows[number], n_slots - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (n_slots - 1)
        table[slot] = number
    return table


@njit(cache=True, nogil=True)
def group_rows(planes):
    """Return the group of each row, groups numbered by first appearance, and each group's first row."""
    n_rows = planes.shape[1]
    groups = np.empty(n_rows, np.int64)
    firsts = np.empty(16, np.int64)
    table = make_table(planes, firsts, 0)
    n_groups = 0
    for row in range(n_rows):
        slot = hash_slot(planes, row, len(table) - 1)
        while table[slot] >= 0 and not same_code(planes, row, planes, firsts[table[slot]]):
            slot = (slot + 1) & (len(table) - 1)
        if table[slot] < 0:
            if n_groups == len(firsts):
                firsts = np.concatenate((firsts, np.empty_like(firsts)))
            firsts[n_groups] = row
            table[slot] = n_groups
            n_groups += 1
            if 2 * n_groups > len(table):
                groups[row] = n_groups - 1
                table = make_table(planes, firsts, n_groups)
                continue
        groups[row] = table[slot]
    return groups, firsts[:n_groups].copy()


@njit(cache=True, nogil=True)
def count_groups(planes, most):
    """Count the different codes; stop at ``most`` + 1 as soon as there are more than ``most``."""
    seen = np.empty(most + 1, np.int64)
    table = make_table(planes, seen, 0)
    n_groups = 0
    for row in range(planes.shape[1]):
        slot = hash_slot(planes, row, len(table) - 1)
        while table[slot] >= 0 and not same_code(planes, row, planes, seen[table[slot]]):
            slot = (slot + 1) & (len(table) - 1)
        if table[slot] < 0:
            if n_groups == most:
                return most + 1
            seen[n_groups] = row
            table[slot] = n_groups
            n_groups += 1
            if 2 * n_groups > len(table):
                table = make_table(planes, seen, n_groups)
    return n_groups


@njit(cache=True, nogil=True)
def look_up(planes, table, queries):
    """Return the bucket whose code equals each query's, -1 where there is none."""
    matches = np.full(queries.shape[1], -1, np.int64)
    for q in range(queries.shape[1]):
        slot = hash_slot(queries, q, len(table) - 1)
        while table[slot] >= 0:
            if same_code(queries, q, planes, table[slot]):
                matches[q] = table[slot]
                break
            slot = (slot + 1) & (len(table) - 1)
    return matches


@njit(cache=True, nogil=True)
def pool_spans(starts, ids, groups, n_groups):
    """Join the spans that fall in the same group; return the new starts and ids, ascending in each."""
    new_starts = np.zeros(n_groups + 1, np.int64)
    for span in range(len(starts) - 1):
        new_starts[groups[span] + 1] += starts[span + 1] - starts[span]
    for g in range(n_groups):
        new_starts[g + 1] += new_starts[g]
    places = new_starts[:-1].copy()
    pooled = np.empty_like(ids)
    for span in range(len(starts) - 1):
        g = groups[span]
        for i in range(starts[span], starts[span + 1]):
            pooled[places[g]] = ids[i]
            places[g] += 1
    for g in range(n_groups):
        for i in range(new_starts[g] + 1, new_starts[g + 1]):
            if pooled[i] < pooled[i - 1]:
                pooled[new_starts[g] : new_starts[g + 1]].sort()
                break
    return new_starts, pooled


@njit(cache=True, nogil=True)
def select_members(starts, mask):
    """Return the positions whose mask is set, and how many of each bucket they are."""
    kept = np.empty(len(mask) + 1, np.int64)
    sizes = np.zeros(len(starts) - 1, np.int64)
    n_kept = 0
    for b in range(len(sizes)):
        before = n_kept
        for position in range(starts[b], starts[b + 1]):
            # Always written, and kept by moving on: there is no branch to mispredict.
            kept[n_kept] = position
            n_kept += mask[position]
        sizes[b] = n_kept - before
    return kept[:n_kept].copy(), sizes


@njit(cache=True, nogil=True)
def gather_level(starts, ids, buckets, most, positions):
    """Write to ``positions`` the lowest ``most`` ids of some buckets, ascending; return how many."""
    if len(buckets) == 1:
        first = starts[buckets[0]]
        n_taken = min(most, starts[buckets[0] + 1] - first)
        for i in range(n_taken):
            positions[i] = first + i
        return n_taken
    n_gathered = 0
    for b in buckets:
        n_gathered += min(most, starts[b + 1] - starts[b])
    gathered = np.empty(n_gathered, np.int64)
    place = 0
    for b in buckets:
        for position in range(starts[b], min(starts[b] + most, starts[b + 1])):
            gathered[place] = position
            place += 1
    order = np.argsort(ids[gathered])
    n_taken = min(most, n_gathered)
    for i in range(n_taken):
        positions[i] = gathered[order[i]]
    return n_taken


@njit(cache=True, nogil=True)
def nearest_members(starts, ids, buckets, distances, positions, member_distances):
    """Fill (n_queries, k) positions and distances from the nearest buckets of each query."""
    n_queries, k = positions.shape
    for q in range(n_queries):
        n_filled, first = 0, 0
        while n_filled < k:
            last = first + 1
            while last < buckets.shape[1] and distances[q, last] == distances[q, first]:
                last += 1
            level = buckets[q, first:last]
            taken = gather_level(starts, ids, level, k - n_filled, positions[q, n_filled:])
            for i in range(n_filled, n_filled + taken):
                member_distances[q, i] = distances[q, first]
            n_filled += taken
            first = last


@njit(cache=True, nogil=True)
def members_within(starts, ids, hit_starts, buckets, distances):
    """Return starts, positions and distances of all items of the buckets hit, by distance and id."""
    n_queries = len(hit_starts) - 1
    member_starts = np.zeros(n_queries + 1, np.int64)
    for q in range(n_queries):
        member_starts[q + 1] = member_starts[q]
        for hit in range(hit_starts[q], hit_starts[q + 1]):
            member_starts[q + 1] += starts[buckets[hit] + 1] - starts[buckets[hit]]
    positions = np.empty(member_starts[-1], np.int64)
    member_distances = np.empty(member_starts[-1], np.int32)
    for q in range(n_queries):
        first, place = hit_starts[q], member_starts[q]
        while first < hit_starts[q + 1]:
            last = first + 1
            while last < hit_starts[q + 1] and distances[last] == distances[first]:
                last += 1
            taken = gather_level(starts, ids, buckets[first:last], len(ids), positions[place:])
            for i in range(place, place + taken):
                member_distances[i] = distances[first]
            place += taken
            first = last
    return member_starts, positions, member_distances


def table_size(n_words: int) -> int:
    """Return how many bytes the table of ``n_words`` words takes."""
    return -(-n_words // TILE) * TILE_BYTES


@njit(cache=True, nogil=True)
def piece_of(word, piece):
    """Return five bits of a word."""
    return np.int64((word >> np.uint64(PIECE_BITS * piece)) & np.uint64(N_VALUES - 1))


@njit(cache=True, nogil=True)
def distance_table(words):
    """Return the distances of all words by tile, piece, value and row; row r + HALF is the upper half of r's byte."""
    apart = np.full((N_VALUES + 1, N_VALUES), PIECE_BITS, np.uint8)
    for a in range(N_VALUES):
        for b in range(N_VALUES):
            apart[a, b] = popcount(np.uint64(a ^ b))
    n_tiles = -(-len(words) // TILE)
    table = np.empty((n_tiles, N_PIECES, N_VALUES, HALF), np.uint8)
    pieces = np.empty(TILE, np.int64)
    for tile in range(n_tiles):
        for piece in range(N_PIECES):
            for i in range(TILE):
                row = tile * TILE + i
                pieces[i] = piece_of(words[row], piece) if row < len(words) else _NO_CODE
            for value in range(N_VALUES):
                for i in range(HALF):
                    table[tile, piece, value, i] = apart[pieces[i], value] | (apart[pieces[i + HALF], value] << _FOUR)
    return table.reshape(-1)


@njit(cache=True, nogil=True)
def least_distances(tables, entries):
    """Return the least distance in the lower and in the upper half of a tile; entries say where to look."""
    least_low, least_high = np.uint8(255), np.uint8(255)
    for i in range(HALF):
        # There is nothing to store, so LLVM unrolls the loops over pieces and makes this a vector loop.
        low, high = np.uint8(0), np.uint8(0)
        for first in range(0, N_PIECES, 3):
            both = np.uint8(0)
            for piece in range(first, min(first + 3, N_PIECES)):
                both = np.uint8(both + tables[np.uint64(entries[piece]) + np.uint64(i)])
            low = np.uint8(low + (both & _LOW_HALF))
            high = np.uint8(high + (both >> _FOUR))
        least_low = min(least_low, low)
        least_high = min(least_high, high)
    return least_low, least_high


@njit(cache=True, nogil=True)
def rows_at(words, first, word, distance, rows, n_rows):
    """Append the rows at this distance among the HALF rows from ``first`` on; return the new number of rows."""
    bits, wanted = np.uint64(0), np.uint64(distance)
    for row in range(first, min(first + HALF, len(words))):
        # An unsigned index cannot count from the end: without that case this is a vector loop.
        bits |= np.uint64(popcount(words[np.uint64(row)] ^ word) == wanted) << np.uint64(row - first)
    while bits:
        rows[n_rows] = first + lowest_bit(bits)
        n_rows += 1
        bits &= bits - np.uint64(1)
    return n_rows


@njit(cache=True, nogil=True)
def first_members(starts, bucket, mask, positions, line):
    """Fill a line of positions with the first members of a bucket that pass the mask; return how many there are."""
    first, stop = np.int64(starts[bucket]), np.int64(starts[bucket + 1])
    n_found, most = 0, positions.shape[1]
    if mask.size == 0:
        n_found = min(most, stop - first)
        for i in range(n_found):
            positions[line, i] = first + i
        return n_found
    while first < stop and n_found < most:
        # Always written, and kept by moving on: there is no branch to mispredict.
        positions[line, n_found] = first
        n_found += mask[first]
        first += 1
    return n_found


# Passing this many arrays costs as much as merging ten members, so the function is inlined.
@njit(cache=True, nogil=True, inline="always")
def merge_members(ids, positions, line, n_found, room, n_more):
    """Merge n_more positions in line 0 of room into a line of positions, the lowest ids first; return their number."""
    for i in range(n_found):
        room[1, i] = positions[line, i]
    i, j, n_merged = 0, 0, min(n_found + n_more, positions.shape[1])
    while i + j < n_merged and i < n_found and j < n_more:
        # Arithmetic instead of a branch, which would be mispredicted half of the time.
        ours, theirs = room[1, np.uint64(i)], room[0, np.uint64(j)]
        later = np.int64(ids[np.uint64(theirs)] < ids[np.uint64(ours)])
        positions[line, i + j] = ours + later * (theirs - ours)
        j += later
        i += 1 - later
    for place in range(i + j, n_merged):
        positions[line, place] = room[1, place - j] if i < n_found else room[0, place - i]
    return n_merged


@njit(cache=True, nogil=True)
def lowest_members(starts, ids, buckets, n_buckets, mask, positions, line, room):
    """Fill a line of positions with the lowest ids of some buckets that pass; return whether there are enough."""
    n_found = first_members(starts, buckets[0], mask, positions, line)
    for b in range(1, n_buckets):
        n_more = first_members(starts, buckets[b], mask, room, 0)
        n_found = merge_members(ids, positions, line, n_found, room, n_more)
    return n_found == positions.shape[1]


@njit(cache=True, nogil=True)
def members_of_nearest(table, words, starts, ids, mask, matches, queries, positions, distances, done):
    """Fill positions and distances of the queries whose nearest buckets alone hold k members; mark them done.

    ``matches`` names the bucket whose code equals the query's, or is -1. With an empty table, only queries with a
    match are answered. An empty mask lets every item pass.
    """
    n_tiles = len(table) // TILE_BYTES
    entries = np.empty((QUERIES_TOGETHER, N_PIECES), np.uint16)
    least = np.empty((QUERIES_TOGETHER, 2 * n_tiles), np.uint8)
    asked = np.empty(QUERIES_TOGETHER, np.int64)
    nearest = np.empty(len(words), np.int64)
    room = np.empty((2, positions.shape[1]), np.int64)
    for start in range(0, len(matches), QUERIES_TOGETHER):
        n_asked = 0
        for q in range(start, min(start + QUERIES_TOGETHER, len(matches))):
            if matches[q] >= 0:
                nearest[0] = matches[q]
                done[q] = lowest_members(starts, ids, nearest, 1, mask, positions, q, room)
                for place in range(distances.shape[1]):
                    distances[q, place] = 0
            elif n_tiles:
                for piece in range(N_PIECES):
                    entries[n_asked, piece] = (N_VALUES * piece + piece_of(queries[q], piece)) * HALF
                asked[n_asked] = q
                n_asked += 1
        for tile in range(n_tiles):
            tables = table[tile * TILE_BYTES : (tile + 1) * TILE_BYTES]
            for i in range(n_asked):
                least[i, 2 * tile], least[i, 2 * tile + 1] = least_distances(tables, entries[i])
        for i in range(n_asked):
            q, n_nearest, distance = asked[i], 0, np.uint8(255)
            for half in range(2 * n_tiles):
                distance = min(distance, least[i, half])
            for half in range(2 * n_tiles):
                if least[i, half] == distance:
                    n_nearest = rows_at(words, half * HALF, queries[q], distance, nearest, n_nearest)
            done[q] = lowest_members(starts, ids, nearest, n_nearest, mask, positions, q, room)
            for place in range(distances.shape[1]):
                distances[q, place] = distance
