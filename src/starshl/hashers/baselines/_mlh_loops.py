"""Compiled inference and stochastic descent of minimal loss hashing."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def infer_codes(u, v, losses, g, h):
    """Find codes g, h that maximize losses[Hamming(g, h)] + g·u + h·v; return the maximum.

    A bit in which the codes agree scores at best |u + v|, one in which they differ |u - v|. So for e
    differing bits the best are those with the largest |u - v| - |u + v|: O(n_bits log n_bits).
    """
    n_bits = u.shape[0]
    gains = np.abs(u - v) - np.abs(u + v)
    order = np.argsort(-gains)
    score = np.abs(u + v).sum()
    best, n_differing = score + losses[0], 0
    for e in range(1, n_bits + 1):
        score += gains[order[e - 1]]
        if score + losses[e] > best:
            best, n_differing = score + losses[e], e
    for place in range(n_bits):
        b = order[place]
        if place < n_differing:
            g[b] = 1.0 if u[b] - v[b] >= 0.0 else -1.0
            h[b] = -g[b]
        else:
            g[b] = 1.0 if u[b] + v[b] >= 0.0 else -1.0
            h[b] = g[b]
    return best


@njit(cache=True, nogil=True)
def descend_once(rows, first, second, losses, kinds, weights, speed, rate, momentum, decay, batch_size):
    """Go over all pairs once in mini-batches, in place; return the mean upper bound on the loss.

    ``losses[kinds[p]]`` is the loss of pair p by Hamming distance; ``weights`` has shape (n_bits,
    n_features). The bound of one pair has the gradient g xᵀ + h zᵀ - sgn(Wx) xᵀ - sgn(Wz) zᵀ.
    """
    n_bits, n_features = weights.shape
    u, v, g, h = np.empty(n_bits), np.empty(n_bits), np.empty(n_bits), np.empty(n_bits)
    gradient = np.zeros_like(weights)
    total = 0.0
    for start in range(0, first.shape[0], batch_size):
        stop = min(start + batch_size, first.shape[0])
        gradient[:] = 0.0
        for p in range(start, stop):
            x, z = rows[first[p]], rows[second[p]]
            u[:] = weights @ x
            v[:] = weights @ z
            total += infer_codes(u, v, losses[kinds[p]], g, h) - np.abs(u).sum() - np.abs(v).sum()
            for b in range(n_bits):
                pull = g[b] - (1.0 if u[b] >= 0.0 else -1.0)
                if pull != 0.0:
                    for j in range(n_features):
                        gradient[b, j] += pull * x[j]
                pull = h[b] - (1.0 if v[b] >= 0.0 else -1.0)
                if pull != 0.0:
                    for j in range(n_features):
                        gradient[b, j] += pull * z[j]
        scale = 1.0 / (stop - start)
        for b in range(n_bits):
            for j in range(n_features):
                slope = scale * gradient[b, j] + decay * weights[b, j]
                speed[b, j] = momentum * speed[b, j] - rate * slope
                weights[b, j] += speed[b, j]
    return total / first.shape[0]
