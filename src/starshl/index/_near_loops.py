"""Compiled search among few codes of one word: the buckets at the least distance from each query.

A word is cut into pieces of five bits. For each piece and each of its values a table holds the distances of all
codes to that value. A query looks up and adds where a scan counts bits, in less than a third of the time.
Three pieces differ in at most 15 bits: two codes share a byte of the table, and entries are added by threes before
they are taken apart. The tables of a tile of codes stay in the nearest cache while many queries pass.
"""

import numpy as np
from numba import njit

from ..codes._hamming_loops import lowest_bit, popcount

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
