"""Compiled searches of items in runs: the k best by score and id, and all up to a score.

All items of a run have the same word, whose cost bounds their scores from below. So runs are visited by cost until the
next one costs more than the k-th score. The k best of a query are kept as a heap whose first entry is the worst one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..codes._hamming_loops import CHUNK, TILE, next_near_chunk
from ..codes.score_rule import BEYOND_SATURATION, LEAST_PROBABILITY
from ._probability_loops import entry_probabilities, word_probabilities

# Sums of a few of these are finite in single precision.
FARTHEST = 1e36
LAST_ID = np.iinfo(np.int64).max
# A query visits this part of all items alone before it waits for others.
_ALONE = 8
# Words whose probabilities are computed together: they stay in the fastest cache.
_BLOCK = 512


@njit(cache=True, nogil=True)
def cost_of(probability, weight, least):
    """Return what items of this probability of being of the query's class cost; infinity if it is below ``least``."""
    if probability < least:
        return np.inf
    return weight * (0.0 - np.log(max(probability, LEAST_PROBABILITY)))


@njit(cache=True, nogil=True)
def is_after(score, item, other_score, other):
    """Return whether a score and an id come after others."""
    return score > other_score or (score == other_score and item > other)


@njit(cache=True, nogil=True)
def replace_worst(scores, ids, score, item):
    """Put a score and an id in the place of the worst ones, which are the first of a heap."""
    place, n = 0, len(scores)
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and is_after(scores[child + 1], ids[child + 1], scores[child], ids[child]):
            child += 1
        if not is_after(scores[child], ids[child], score, item):
            break
        scores[place], ids[place] = scores[child], ids[child]
        place = child
    scores[place], ids[place] = score, item


@njit(cache=True, nogil=True)
def with_room(hits, scores, n_hits, n_more):
    """Return both arrays with room for more hits."""
    if n_hits + n_more <= len(hits):
        return hits, scores
    return np.concatenate((hits, np.empty_like(hits))), np.concatenate((scores, np.empty_like(scores)))


@njit(cache=True, nogil=True)
def sink(heap, place, n, costs):
    """Restore the order of a heap of runs, the cheapest first, from this place on."""
    run = heap[place]
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and costs[heap[child + 1]] < costs[heap[child]]:
            child += 1
        if costs[heap[child]] >= costs[run]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = run


@njit(cache=True, nogil=True)
def fill_costs(posterior, entries, n_labels, numbers, weight, least, by_entry, costs):
    """Write the cost of each run, whose words are numbers of a dictionary."""
    if weight == 0.0 and least <= 0.0:
        costs[:] = 0.0
        return
    entry_probabilities(posterior, entries, n_labels, by_entry)
    for w in range(len(by_entry)):
        by_entry[w] = cost_of(by_entry[w], weight, least)
    for r in range(len(costs)):
        costs[r] = by_entry[numbers[r]]


@njit(cache=True, nogil=True)
def cheapest_first(costs, heap):
    """Make a heap of all runs whose cost is finite; return how many there are."""
    n = 0
    for r in range(len(costs)):
        if costs[r] < np.inf:
            heap[n] = r
            n += 1
    for place in range(n // 2 - 1, -1, -1):
        sink(heap, place, n, costs)
    return n


@njit(cache=True, nogil=True)
def take_cheapest(heap, n, costs):
    """Remove the first of n runs from their heap and return it."""
    run = heap[0]
    heap[0] = heap[n - 1]
    sink(heap, 0, n - 1, costs)
    return run


@njit(cache=True, nogil=True)
def limit_of(saturated, cost, worst, ties):
    """Return the largest distance whose score comes before ``worst``, or with ``ties`` is equal to it; -1 for none."""
    low, high = 0, len(saturated)
    while low < high:
        middle = (low + high) // 2
        score = cost + saturated[middle]
        if score < worst or (ties and score == worst):
            low = middle + 1
        else:
            high = middle
    return low - 1


@njit(cache=True, nogil=True)
def scan_bits(planes, ids, first, stop, query, field, cost, saturated, best, best_ids, mask, distances):
    """Put those items of a run, or of a part of it, that are among the best into their heap."""
    # Equal fields leave the neighbor bits alone to differ.
    query[0] = (query[0] & ~field) | (planes[0, first] & field)
    while first < stop:
        # Ids ascend in a run: where they have passed that of the worst, equal scores come too late.
        limit = limit_of(saturated, cost, best[0], ids[first] <= best_ids[0])
        if limit < 0:
            break
        first = next_near_chunk(planes, first, stop, query, limit, distances)
        for i in range(min(CHUNK, stop - first)):
            distance = np.int64(distances[i])
            if distance > limit or (mask.size and not mask[first + i]):
                continue
            score = cost + saturated[distance]
            if is_after(best[0], best_ids[0], score, ids[first + i]):
                replace_worst(best, best_ids, score, ids[first + i])
                limit = limit_of(saturated, cost, best[0], True)
        first += CHUNK


@njit(cache=True, nogil=True)
def nearest_by_bits(planes, ids, starts, numbers, field, rule, entries, posteriors, queries, saturated, k, mask):
    """Return scores and ids of the k best items of each query, unordered; infinite where there are none.

    ``rule`` is (weight, least probability, number of labels), ``field`` the bits of the first plane that hold the word,
    ``saturated`` the part of the score that each number of different neighbor bits is.

    Each query first visits its cheapest runs. If that leaves many, all queries pass through the others together, tile
    by tile, which stay in the cache meanwhile.
    """
    weight, least, n_labels = rule
    n_queries, n_runs = len(queries), len(numbers)
    scores, found = np.full((n_queries, k), np.inf), np.full((n_queries, k), LAST_ID)
    by_entry, costs = np.empty(entries.shape[1]), np.empty((n_queries, n_runs))
    heap, distances = np.empty(n_runs, np.int64), np.empty(CHUNK, np.uint64)
    own, some_left = queries.copy(), False
    for q in range(n_queries):
        best, best_ids = scores[q], found[q]
        fill_costs(posteriors[q], entries, n_labels, numbers, weight, least, by_entry, costs[q])
        n_left, n_visited = cheapest_first(costs[q], heap), 0
        while n_left and costs[q, heap[0]] <= best[0]:
            if n_visited > starts[-1] // _ALONE and n_queries > 1:
                some_left = True
                break
            run = take_cheapest(heap, n_left, costs[q])
            n_left -= 1
            n_visited += starts[run + 1] - starts[run]
            cost, costs[q, run] = costs[q, run], np.inf
            scan_bits(
                *(planes, ids, starts[run], starts[run + 1], own[q], field, cost, saturated),
                *(best, best_ids, mask, distances),
            )
    if some_left:
        for run in range(n_runs):
            for first in range(starts[run], starts[run + 1], TILE):
                stop = min(first + TILE, starts[run + 1])
                for q in range(n_queries):
                    cost = costs[q, run]
                    if cost <= scores[q, 0] and cost < np.inf:
                        scan_bits(
                            *(planes, ids, first, stop, own[q], field, cost, saturated),
                            *(scores[q], found[q], mask, distances),
                        )
    return scores, found


@njit(cache=True, nogil=True)
def within_by_bits(planes, ids, starts, numbers, field, rule, entries, posteriors, queries, saturated, radius, mask):
    """Return query number, score and id of all items up to a score; the arguments are those of nearest_by_bits."""
    weight, least, n_labels = rule
    by_entry, costs = np.empty(entries.shape[1]), np.empty(len(numbers))
    distances = np.empty(CHUNK, np.uint64)
    hits, scores, n_hits = np.empty((1024, 2), np.int64), np.empty(1024), 0
    for q in range(len(queries)):
        fill_costs(posteriors[q], entries, n_labels, numbers, weight, least, by_entry, costs)
        query = queries[q].copy()
        for run in range(len(numbers)):
            first, stop, cost = starts[run], starts[run + 1], costs[run]
            if cost == np.inf:
                continue
            query[0] = (query[0] & ~field) | (planes[0, first] & field)
            limit = limit_of(saturated, cost, radius, True)
            while limit >= 0 and first < stop:
                first = next_near_chunk(planes, first, stop, query, limit, distances)
                hits, scores = with_room(hits, scores, n_hits, CHUNK)
                for i in range(min(CHUNK, stop - first)):
                    distance = np.int64(distances[i])
                    if distance <= limit and (not mask.size or mask[first + i]):
                        hits[n_hits, 0], hits[n_hits, 1] = q, ids[first + i]
                        scores[n_hits] = cost + saturated[distance]
                        n_hits += 1
                first += CHUNK
    return hits[:n_hits, 0].copy(), scores[:n_hits].copy(), hits[:n_hits, 1].copy()


@njit(cache=True, nogil=True)
def probability_of(cost, weight):
    """Return a probability a little below those that cost so much."""
    least = np.exp(-cost / weight) * (1.0 - 1e-9)
    return least if least > LEAST_PROBABILITY else -1.0


@njit(cache=True, nogil=True)
def nearest_by_word(ids, starts, planes, parts, rule, decoder, posteriors, k, mask):
    """Return scores and ids of the k best items of each query, unordered, where words alone count.

    ``parts`` is (columns, norms, nearest) of the runs, ``decoder`` (codewords, decay), ``rule`` (weight, least
    probability).
    """
    weight, least = rule
    n_queries, n_runs = len(posteriors), len(starts) - 1
    scores, found = np.full((n_queries, k), np.inf), np.full((n_queries, k), LAST_ID)
    block = np.empty(_BLOCK)
    for q in range(n_queries):
        best, best_ids = scores[q], found[q]
        for begin in range(0, n_runs, _BLOCK):
            some = block[: min(_BLOCK, n_runs - begin)]
            word_probabilities(posteriors[q], planes, begin, *parts, *decoder, some)
            enough = probability_of(best[0], weight)
            for i in range(len(some)):
                if some[i] < enough:
                    continue
                cost = cost_of(some[i], weight, least)
                if not cost <= best[0] or cost == np.inf:
                    continue
                for position in range(starts[begin + i], starts[begin + i + 1]):
                    if not is_after(best[0], best_ids[0], cost, ids[position]):
                        break  # ids ascend in a run
                    if not mask.size or mask[position]:
                        replace_worst(best, best_ids, cost, ids[position])
                enough = probability_of(best[0], weight)
    return scores, found


@njit(cache=True, nogil=True)
def within_by_word(ids, starts, planes, parts, rule, decoder, posteriors, radius, mask):
    """Return query number, score and id of all items up to a score; the arguments are those of nearest_by_word."""
    weight, least = rule
    n_runs, block = len(starts) - 1, np.empty(_BLOCK)
    hits, scores, n_hits = np.empty((1024, 2), np.int64), np.empty(1024), 0
    for q in range(len(posteriors)):
        for begin in range(0, n_runs, _BLOCK):
            some = block[: min(_BLOCK, n_runs - begin)]
            word_probabilities(posteriors[q], planes, begin, *parts, *decoder, some)
            for i in range(len(some)):
                cost = cost_of(some[i], weight, least)
                if cost > radius or cost == np.inf:
                    continue
                for position in range(starts[begin + i], starts[begin + i + 1]):
                    if mask.size and not mask[position]:
                        continue
                    hits, scores = with_room(hits, scores, n_hits, 1)
                    hits[n_hits, 0], hits[n_hits, 1], scores[n_hits] = q, ids[position], cost
                    n_hits += 1
    return hits[:n_hits, 0].copy(), scores[:n_hits].copy(), hits[:n_hits, 1].copy()


@njit(cache=True, nogil=True)
def nearest_by_vector(
    planes, ids, starts, numbers, norms, rule, entries, words, posteriors, heads, tables, sat, k, mask
):
    """Return scores and ids of the k best items of each query, unordered, by their reconstructed vectors.

    ``words`` are the entries, (n_entries, n_classes); ``heads`` hold for each query its squared norm and its products
    with the centers of classes; ``sat`` is (unit, saturation).
    """
    weight, least, n_labels = rule
    n_queries, n_runs = len(posteriors), len(numbers)
    scores, found = np.full((n_queries, k), np.inf), np.full((n_queries, k), LAST_ID)
    by_entry, costs, heap = np.empty(entries.shape[1]), np.empty(n_runs), np.empty(n_runs, np.int64)
    distances = np.empty(CHUNK, np.float32)
    for q in range(n_queries):
        fill_costs(posteriors[q], entries, n_labels, numbers, weight, least, by_entry, costs)
        n_left = cheapest_first(costs, heap)
        best, best_ids = scores[q], found[q]
        while n_left and costs[heap[0]] <= best[0]:
            run = take_cheapest(heap, n_left, costs)
            n_left -= 1
            cost, head = costs[run], head_of(heads[q], words[numbers[run]])
            for first in range(starts[run], starts[run + 1], CHUNK):
                n_rows = min(CHUNK, starts[run + 1] - first)
                fill_distances(planes, first, n_rows, norms, head, tables[q], distances)
                limit = farthest(cost, best[0], sat)
                if not any_near(distances, n_rows, limit):
                    continue
                for i in range(n_rows):
                    if distances[i] > limit or (mask.size and not mask[first + i]):
                        continue
                    score = cost + saturated(distances[i], sat)
                    if is_after(best[0], best_ids[0], score, ids[first + i]):
                        replace_worst(best, best_ids, score, ids[first + i])
    return scores, found


@njit(cache=True, nogil=True)
def within_by_vector(
    planes, ids, starts, numbers, norms, rule, entries, words, posteriors, heads, tables, sat, radius, mask
):
    """Return query number, score and id of all items up to a score; the arguments are those of nearest_by_vector."""
    weight, least, n_labels = rule
    by_entry, costs = np.empty(entries.shape[1]), np.empty(len(numbers))
    distances = np.empty(CHUNK, np.float32)
    hits, scores, n_hits = np.empty((1024, 2), np.int64), np.empty(1024), 0
    for q in range(len(posteriors)):
        fill_costs(posteriors[q], entries, n_labels, numbers, weight, least, by_entry, costs)
        for run in range(len(numbers)):
            cost, head = costs[run], head_of(heads[q], words[numbers[run]])
            if cost > radius or cost == np.inf:
                continue
            for first in range(starts[run], starts[run + 1], CHUNK):
                n_rows = min(CHUNK, starts[run + 1] - first)
                fill_distances(planes, first, n_rows, norms, head, tables[q], distances)
                hits, scores = with_room(hits, scores, n_hits, CHUNK)
                for i in range(n_rows):
                    score = cost + saturated(distances[i], sat)
                    if score <= radius and (not mask.size or mask[first + i]):
                        hits[n_hits, 0], hits[n_hits, 1], scores[n_hits] = q, ids[first + i], score
                        n_hits += 1
    return hits[:n_hits, 0].copy(), scores[:n_hits].copy(), hits[:n_hits, 1].copy()


@njit(cache=True, nogil=True)
def head_of(head, posterior):
    """Return the squared norm of a query less twice its product with the center of a word."""
    total = 0.0
    for g in range(len(posterior)):
        total += posterior[g] * head[g + 1]
    return np.float32(min(max(head[0] - 2.0 * total, -FARTHEST), FARTHEST))


@njit(cache=True, nogil=True)
def saturated(distance, sat):
    """Return the part of a score that a squared distance is, given in units of ``sat``."""
    unit, saturation = sat
    # Rounding may leave a small negative number where a query is its own item.
    exact = np.float64(max(distance, np.float32(0))) * unit
    return min(exact, saturation) + BEYOND_SATURATION * max(exact - saturation, 0.0)


@njit(cache=True, nogil=True)
def farthest(cost, worst, sat):
    """Return a squared distance a little above those whose score is at most ``worst``."""
    unit, saturation = sat
    room = worst - cost + 1e-12 * worst
    if room > saturation:
        room = saturation + (room - saturation) / BEYOND_SATURATION
    return np.float32((room / unit) * (1.0 + 1e-6) + 1e-30)


@njit(cache=True, nogil=True)
def any_near(distances, n_rows, limit):
    """Return whether a distance is within the limit."""
    near = False
    for i in range(n_rows):
        near |= distances[i] <= limit
    return near


@njit(cache=True, nogil=True)
def fill_distances(planes, first, n_rows, norms, head, tables, distances):
    """Write the squared distances of some rows: their norms, the head of their word, and one entry for each byte."""
    start = norms[first : first + n_rows]
    for i in range(n_rows):
        distances[i] = start[i] + head
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
def byte_tables(parts):
    """Return for each query and byte of a code the sum of its eight parts, added or subtracted as the bits say."""
    n_queries, n_bytes = parts.shape[0], parts.shape[1] // 8
    tables, sums = np.empty((n_queries, n_bytes, 256), np.float32), np.empty(256)
    for q in range(n_queries):
        for b in range(n_bytes):
            own = parts[q, 8 * b : 8 * b + 8]
            sums[0] = 0.0
            for j in range(8):
                sums[0] -= own[j]
            for j in range(8):
                for value in range(1 << j, 2 << j):
                    sums[value] = sums[value - (1 << j)] + 2.0 * own[j]
            for value in range(256):
                tables[q, b, value] = min(max(sums[value], -FARTHEST), FARTHEST)
    return tables


@njit(cache=True, nogil=True)
def reconstruction_norms(planes, numbers, starts, n_class_bits, centers, products, constant):
    """Return centers[w] + 2 sum_j b_j products[w, j] + constant for the word w and the signs b of each row.

    The sum runs in the order of bits, so equal codes have equal norms.
    """
    word_bits = 8 * planes.itemsize
    norms = np.empty(starts[-1], np.float32)
    for run in range(len(numbers)):
        w = numbers[run]
        for row in range(starts[run], starts[run + 1]):
            total = centers[w] + constant
            for j in range(products.shape[1]):
                bit = n_class_bits + j
                word = planes[bit // word_bits, row] >> planes.dtype.type(bit % word_bits)
                total += 2.0 * products[w, j] if word & planes.dtype.type(1) else -2.0 * products[w, j]
            norms[row] = total
    return norms
