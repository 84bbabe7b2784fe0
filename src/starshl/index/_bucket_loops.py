"""Compiled loops of the bucket index: grouping equal codes, and turning buckets back into items.

A bucket is a row of the planes and a span of ids: ``starts[b]`` to ``starts[b + 1]``, ascending.
"""

import numpy as np
from numba import njit

# Two odd numbers with about half of their bits set, so that a product depends on every lower bit.
_FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SECOND_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF_WORD = np.uint64(32)


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
