"""Compiled search for the word that stands for a posterior with the least loss."""

from __future__ import annotations

import numpy as np
from numba import njit

# Of the cross-entropy, below which a flip is a matter of rounding.
LEAST_GAIN = np.float32(1e-6)
# Of a class, compared with the likeliest one, below which it does not count.
LEAST_SHARE = np.float32(1e-9)


@njit(cache=True, nogil=True)
def encode(posteriors, codewords, sharpness, keeps_nearest, words):
    """Write the word of each posterior as signs; see :class:`starshl.codes.HammingWords`.

    The relaxed loss is convex in the word, so that flips of single bits end near the optimum. ``change`` is the exact
    change of the loss if a bit flips. It is exactly none where all classes that count agree in the bit.
    """
    n_rows, n_classes = posteriors.shape
    n_bits = codewords.shape[1]
    a = np.float32(sharpness)
    decay, sinh_a = np.float32(np.exp(-sharpness)), np.float32(np.sinh(sharpness))
    word, wanted = np.empty(n_bits, np.float32), np.empty(n_bits, np.float32)
    expected, distances = np.empty(n_bits, np.float32), np.empty(n_classes, np.float32)
    for row in range(n_rows):
        top = 0
        for g in range(1, n_classes):
            top = g if posteriors[row, g] > posteriors[row, top] else top
        for b in range(n_bits):
            # Entry by entry: Numba compiles an assignment of rows for seconds.
            word[b], wanted[b] = codewords[top, b], 0
        whole = np.float32(0)
        for g in range(n_classes):
            if posteriors[row, g] > 0:
                whole += posteriors[row, g]
                for b in range(n_bits):
                    wanted[b] += posteriors[row, g] * codewords[g, b]
        for g in range(n_classes):
            total = np.float32(0)
            for b in range(n_bits):
                total += np.float32(word[b] != codewords[g, b])
            distances[g] = total
        for _ in range(2 * n_bits):
            least = distances[0]
            for g in range(1, n_classes):
                least = min(least, distances[g])
            total = np.float32(0)
            expected[:] = 0
            for g in range(n_classes):
                share = np.exp(-a * (distances[g] - least))
                if share > LEAST_SHARE:
                    total += share
                    for b in range(n_bits):
                        expected[b] += share * codewords[g, b]
            best, gain = -1, -LEAST_GAIN
            for b in range(n_bits):
                # cosh a - w t sinh a, for t the expected bit.
                factor = decay + sinh_a * (np.float32(1) - word[b] * (expected[b] / total))
                change = a * word[b] * (wanted[b] / whole) + np.log(factor)
                if change < gain and (not keeps_nearest or stays_nearest(word, b, codewords, distances, top)):
                    best, gain = b, change
            if best < 0:
                break
            for g in range(n_classes):
                distances[g] += word[best] * codewords[g, best]
            word[best] = -word[best]
        for b in range(n_bits):
            words[row, b] = np.int8(word[b])


@njit(cache=True, nogil=True)
def stays_nearest(word, bit, codewords, distances, top):
    """Return whether the codeword ``top`` is strictly nearer than all others after this bit has flipped."""
    own = distances[top] + word[bit] * codewords[top, bit]
    if own < distances[top]:
        return True
    for g in range(len(distances)):
        if g != top and word[bit] * codewords[g, bit] < 0 and distances[g] - 1 <= own:
            return False
    return True
