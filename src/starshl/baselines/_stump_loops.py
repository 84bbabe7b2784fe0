"""Compiled scoring of all stumps of a feature by the pairs they separate."""

import numpy as np
from numba import njit

__all__ = ["best_stump", "separated_by_cuts"]


@njit(cache=True, nogil=True)
def separated_by_cuts(ranks, first, second, weights, sums):
    """Fill ``sums[k]`` with the weight of the pairs that a cut just above rank k separates.

    ``ranks`` holds the rank of each row among the distinct values of one feature. O(n_pairs + n_values).
    """
    sums[:] = 0.0
    for p in range(first.shape[0]):
        a, b = ranks[first[p]], ranks[second[p]]
        if a < b:
            sums[a] += weights[p]
            sums[b] -= weights[p]
        elif b < a:
            sums[b] += weights[p]
            sums[a] -= weights[p]
    for k in range(1, sums.shape[0]):
        sums[k] += sums[k - 1]


@njit(cache=True, nogil=True)
def best_stump(ranks, n_values, first, second, weights, start, stop, taken):
    """Return feature, cut and separated weight of the stump that separates the least weight.

    Looks at the features from ``start`` to ``stop``; ``taken`` lists (feature, cut) that are not allowed.
    The first of equals wins; feature -1 means that there is no stump.
    """
    best_feature, best_cut, best_sum = -1, -1, np.inf
    for f in range(start, stop):
        sums = np.empty(n_values[f])
        separated_by_cuts(ranks[f], first, second, weights, sums)
        for k in range(n_values[f] - 1):
            if sums[k] < best_sum:
                allowed = True
                for t in range(taken.shape[0]):
                    if taken[t, 0] == f and taken[t, 1] == k:
                        allowed = False
                        break
                if allowed:
                    best_feature, best_cut, best_sum = f, k, sums[k]
    return best_feature, best_cut, best_sum
