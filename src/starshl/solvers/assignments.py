"""Distances to codewords, and the assignment step: unlabeled rows join the nearest codeword (paper Eq. 3)."""

from __future__ import annotations

import numpy as np

__all__ = ["hamming_distances", "hinge_distances", "nearest_codewords", "reassign"]

_IMPROVEMENT_TOL = 1e-12


def hinge_distances(scores: np.ndarray, codewords: np.ndarray) -> np.ndarray:
    """Return sum_b max(0, 1 - codewords[g, b] scores[n, b]) for all rows and codewords, shape (n, G)."""
    scores = np.asarray(scores, dtype=np.float64)
    is_plus = (codewords > 0).astype(np.float64)
    return np.maximum(0.0, 1.0 - scores) @ is_plus.T + np.maximum(0.0, 1.0 + scores) @ (1.0 - is_plus).T


def hamming_distances(scores: np.ndarray, codewords: np.ndarray) -> np.ndarray:
    """Return the number of bits in which the sign of the scores differs from each codeword, shape (n, G)."""
    signs = np.where(scores >= 0, 1.0, -1.0)
    return ((codewords.shape[1] - signs @ codewords.T.astype(np.float64)) / 2).astype(np.int64)


def nearest_codewords(scores: np.ndarray, codewords: np.ndarray) -> np.ndarray:
    """Return the index of each row's nearest codeword: by Hamming distance, ties by hinge, then by index."""
    hamming = hamming_distances(scores, codewords)
    tied = hamming == hamming.min(axis=1, keepdims=True)
    return np.where(tied, hinge_distances(scores, codewords), np.inf).argmin(axis=1)


def reassign(
    scores: np.ndarray,
    codewords: np.ndarray,
    assignments: np.ndarray,
    free: np.ndarray,
    protected: np.ndarray,
) -> int:
    """Move free rows to the codeword of smallest hinge distance, in place; return how many moved.

    Parameters
    ----------
    scores : (n, n_bits) decision values of all bits
    codewords : (G, n_bits) signs
    assignments : (n,) index of each row's codeword, changed in place
    free : indices of the rows that may move; all others count as members that stay
    protected : (G,) bool, codewords that must keep at least one row

    A row moves only if that lowers its distance strictly and does not empty a protected codeword; rows are
    taken by decreasing gain. Without protection the step is the exact minimizer over the assignments.
    """
    distances = hinge_distances(scores[free], codewords)
    here = assignments[free]
    best = distances.argmin(axis=1)
    gains = distances[np.arange(len(free)), here] - distances.min(axis=1)
    movers = np.flatnonzero(gains > _IMPROVEMENT_TOL)
    if len(movers) == 0:
        return 0
    sizes = np.bincount(assignments, minlength=len(codewords))
    leaving = np.bincount(here[movers], minlength=len(codewords))
    if np.all((sizes - leaving > 0) | ~protected):
        assignments[free[movers]] = best[movers]
        return len(movers)
    n_moved = 0
    for mover in movers[np.argsort(-gains[movers], kind="stable")]:
        source = here[mover]
        if sizes[source] > 1 or not protected[source]:
            sizes[source] -= 1
            sizes[best[mover]] += 1
            assignments[free[mover]] = best[mover]
            n_moved += 1
    return n_moved
