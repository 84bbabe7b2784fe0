"""Compiled loops of BRE: move one weight of one bit to where the distances of all pairs fit best.

A pair graph lists for row i the partners ``partners[starts[i]:starts[i + 1]]``, each pair at both of its
rows; ``mirrors`` gives the position of the other listing of the pair. ``targets`` are the distances to reach and
``counts`` the numbers of differing bits, both aligned with partners.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def objective(targets, counts, n_bits):
    """Return the sum over pairs of (target - count / n_bits)^2; the graph lists each pair twice."""
    total = 0.0
    for k in range(targets.shape[0]):
        error = targets[k] - counts[k] / n_bits
        total += error * error
    return total / 2


@njit(cache=True, nogil=True)
def flip_costs(code, starts, partners, targets, counts, n_bits):
    """Return what each pair adds to the objective when it differs in this bit rather than agrees."""
    costs = np.empty(partners.shape[0])
    per_bit = 1 / n_bits
    for i in range(code.shape[0]):
        for k in range(starts[i], starts[i + 1]):
            without = counts[k] - (code[i] != code[partners[k]])
            costs[k] = (2 * (without * per_bit - targets[k]) + per_bit) * per_bit
    return costs


@njit(cache=True, nogil=True)
def flip(i, code, starts, partners, costs):
    """Flip the bit of row i in place; return the change of the objective."""
    change = 0.0
    for k in range(starts[i], starts[i + 1]):
        if code[partners[k]] == code[i]:
            change += costs[k]
        else:
            change -= costs[k]
    code[i] = -code[i]
    return change


@njit(cache=True, nogil=True)
def best_weight(weight, column, scores, starts, partners, costs):
    """Return the weight of one kernel column that makes the objective least.

    ``scores`` hold the weighted sum with the present weight. As the weight grows past
    ``weight - score / column``, the bit of that row flips; between two such thresholds nothing changes, so
    one walk through their sorted list meets every code there is. Rows at equal thresholds flip together.
    O(n log n + pairs).
    """
    n_rows = column.shape[0]
    thresholds = np.empty(n_rows)
    movable = np.empty(n_rows, dtype=np.int64)
    code = np.empty(n_rows, dtype=np.int8)
    n_movable = 0
    for i in range(n_rows):
        # The sign rule of the codes: zero counts as +1.
        code[i] = 1 if scores[i] >= 0 else -1
        threshold = weight - scores[i] / column[i] if column[i] != 0 else np.inf
        if np.isfinite(threshold):
            code[i] = -1 if column[i] > 0 else 1
            thresholds[n_movable] = threshold
            movable[n_movable] = i
            n_movable += 1
    if n_movable == 0:
        return weight
    order = np.argsort(thresholds[:n_movable])
    lowest, highest = thresholds[order[0]], thresholds[order[-1]]
    best = lowest - 1e-6 * (1 + abs(lowest))
    cost = best_cost = 0.0
    place = 0
    while place < n_movable:
        threshold = thresholds[order[place]]
        while place < n_movable and thresholds[order[place]] == threshold:
            cost += flip(movable[order[place]], code, starts, partners, costs)
            place += 1
        if cost < best_cost:
            best_cost = cost
            if place < n_movable:
                best = threshold + (thresholds[order[place]] - threshold) / 2
            else:
                best = highest + 1e-6 * (1 + abs(highest))
    return best


@njit(cache=True, nogil=True)
def sweep(K, subsets, weights, chosen, scores, codes, starts, partners, mirrors, targets, counts):
    """Improve one weight of every bit in place; return the objective after each bit.

    Shapes: K (n, n); subsets, weights (n_bits, n_support); chosen (n_bits,), the weight to move;
    scores, codes (n_bits, n). A move that rounding would turn into a loss is not made.
    """
    n_bits, n_rows = codes.shape
    history = np.empty(n_bits)
    value = objective(targets, counts, n_bits)
    for b in range(n_bits):
        costs = flip_costs(codes[b], starts, partners, targets, counts, n_bits)
        j = chosen[b]
        column = K[subsets[b, j]]
        new_weight = best_weight(weights[b, j], column, scores[b], starts, partners, costs)
        new_scores = scores[b] + (new_weight - weights[b, j]) * column
        code = codes[b].copy()
        change = 0.0
        for i in range(n_rows):
            if (new_scores[i] >= 0) != (code[i] > 0):
                change += flip(i, code, starts, partners, costs)
        if change < 0:
            _recount(codes[b], code, starts, partners, mirrors, counts)
            weights[b, j] = new_weight
            scores[b] = new_scores
            codes[b] = code
            value += change
        history[b] = value
    return history


@njit(cache=True, nogil=True)
def _recount(old, new, starts, partners, mirrors, counts):
    """Update the numbers of differing bits after one bit changed from old to new."""
    for i in range(old.shape[0]):
        if old[i] == new[i]:
            continue
        for k in range(starts[i], starts[i + 1]):
            p = partners[k]
            if old[p] != new[p]:
                continue  # both flipped: the pair differs as before
            step = 1 if new[p] != new[i] else -1
            counts[k] += step
            counts[mirrors[k]] += step
