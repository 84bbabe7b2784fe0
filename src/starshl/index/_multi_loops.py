"""Compiled loops of multi-index hashing: tables over pieces of the codes, probed with a few bits flipped."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..codes._hamming_loops import popcount


@njit(cache=True, nogil=True)
def piece_of(planes, row, first_bit, width):
    """Return bits first_bit ... first_bit + width - 1 of a code as one integer."""
    word_bits = 8 * planes.itemsize
    p, shift = first_bit // word_bits, first_bit % word_bits
    piece = np.uint64(planes[p, row]) >> np.uint64(shift)
    if shift + width > word_bits:
        piece |= np.uint64(planes[p + 1, row]) << np.uint64(word_bits - shift)
    return np.int64(piece & np.uint64((1 << width) - 1))


@njit(cache=True, nogil=True)
def fill_table(planes, n_rows, first_bit, width, starts, rows):
    """Sort the rows by one piece of their codes: rows with piece v are rows[starts[v] : starts[v + 1]]."""
    for row in range(n_rows):
        starts[piece_of(planes, row, first_bit, width) + 1] += 1
    for value in range(1 << width):
        starts[value + 1] += starts[value]
    # Filled from the back, with the ends as cursors: each cursor stops at the start of its value, and rows ascend.
    for row in range(n_rows - 1, -1, -1):
        value = piece_of(planes, row, first_bit, width)
        starts[value + 1] -= 1
        rows[starts[value + 1]] = row
    for value in range(1 << width):
        starts[value] = starts[value + 1]
    starts[1 << width] = n_rows


@njit(cache=True, nogil=True)
def seen_before(planes, row, query, table, first_bits, widths, piece_radii):
    """Return whether an earlier table has already proposed this row."""
    for t in range(table):
        if piece_radii[t] < 0:
            continue
        a = piece_of(planes, row, first_bits[t], widths[t])
        b = piece_of(query, 0, first_bits[t], widths[t])
        if np.int64(popcount(np.uint64(a ^ b))) <= piece_radii[t]:
            return True
    return False


@njit(cache=True, nogil=True)
def probe_tables(planes, starts, rows, query, radius, first_bits, widths, piece_radii, flips, mask):
    """Return the rows within ``radius`` of one query (a single column of planes), and their distances.

    ``flips`` lists what to xor with the query's pieces, fewest set bits first. Table t is probed only with flips of at
    most ``piece_radii[t]`` set bits that lie within the piece.
    """
    n_found = 0
    hits = np.empty(64, np.int64)
    distances = np.empty(64, np.int32)
    for t in range(len(widths)):
        value = piece_of(query, 0, first_bits[t], widths[t])
        for flip in flips:
            if np.int64(popcount(np.uint64(flip))) > piece_radii[t]:
                break
            if flip >> widths[t]:
                continue
            probed = value ^ flip
            for place in range(starts[t, probed], starts[t, probed + 1]):
                row = np.int64(rows[t, place])
                distance = 0
                for p in range(planes.shape[0]):
                    distance += np.int64(popcount(planes[p, row] ^ query[p, 0]))
                if distance > radius or (mask.size and not mask[row]):
                    continue
                if seen_before(planes, row, query, t, first_bits, widths, piece_radii):
                    continue
                if n_found == len(hits):
                    hits = np.concatenate((hits, np.empty_like(hits)))
                    distances = np.concatenate((distances, np.empty_like(distances)))
                hits[n_found] = row
                distances[n_found] = distance
                n_found += 1
    return hits[:n_found].copy(), distances[:n_found].copy()
