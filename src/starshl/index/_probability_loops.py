"""Compiled sums of P(same class) over the classes of a query, one for each word that items have.

Classes are visited in their order and those that a query hardly has are left out, so that the sum of a word depends on
the query and the word alone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..codes._hamming_loops import popcount

# A class of the query below this adds less to a probability than the floor of its logarithm.
LEAST_SHARE = 1e-6


@njit(cache=True, nogil=True)
def entry_probabilities(posterior, entries, n_labels, probabilities):
    """Write the probability of each entry of a dictionary; ``entries`` is (n_classes, n_entries)."""
    probabilities[:] = 0.0
    for g in range(len(posterior)):
        share = np.float64(posterior[g])
        if share >= LEAST_SHARE:
            column = entries[g]
            for w in range(len(probabilities)):
                probabilities[w] += share * column[w]
    for w in range(n_labels):
        probabilities[w] = posterior[w]
    clip(probabilities)


@njit(cache=True, nogil=True)
def word_probabilities(posterior, words, first, columns, norms, nearest, codewords, decay, probabilities):
    """Write the probability of some Hamming words, ``probabilities`` being that of the words from ``first`` on.

    Words with a column stand for that class. ``norms`` are the sums of ``decay`` over the distances of all codewords,
    less that of the nearest one.
    """
    probabilities[:] = 0.0
    n_planes, n_words = words.shape[0], len(probabilities)
    distances = np.empty(n_words, np.int64)
    for g in range(len(posterior)):
        share = np.float64(posterior[g])
        if share >= LEAST_SHARE:
            for p in range(n_planes):
                plane, word = words[p, first : first + n_words], codewords[p, g]
                if p == 0:
                    for i in range(n_words):
                        distances[i] = np.int64(popcount(plane[i] ^ word)) - nearest[first + i]
                else:
                    for i in range(n_words):
                        distances[i] += np.int64(popcount(plane[i] ^ word))
            for i in range(n_words):
                probabilities[i] += share * decay[distances[i]]
    for i in range(n_words):
        column = columns[first + i]
        probabilities[i] = posterior[column] if column >= 0 else probabilities[i] / norms[first + i]
    clip(probabilities)


@njit(cache=True, nogil=True)
def word_norms(words, codewords, decay):
    """Return the distance of the nearest codeword to each word, and the sum of ``decay`` over the others' lead."""
    n_planes, n_words = words.shape
    nearest, norms = np.empty(n_words, np.int16), np.empty(n_words)
    distances = np.empty(codewords.shape[1], np.int64)
    for i in range(n_words):
        least = np.int64(1 << 15)
        for g in range(len(distances)):
            distances[g] = 0
            for p in range(n_planes):
                distances[g] += np.int64(popcount(words[p, i] ^ codewords[p, g]))
            least = min(least, distances[g])
        total = 0.0
        for g in range(len(distances)):
            total += decay[distances[g] - least]
        nearest[i], norms[i] = least, total
    return nearest, norms


@njit(cache=True, nogil=True)
def clip(probabilities):
    """Keep rounding from passing 0 and 1."""
    for i in range(len(probabilities)):
        probabilities[i] = min(max(probabilities[i], 0.0), 1.0)
