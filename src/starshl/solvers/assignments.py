"""The assignment step (paper Eq. 3): unlabeled rows join the nearest codeword."""

from __future__ import annotations

import numpy as np

from .objective import hamming_distances, hinge_distances

__all__ = ["nearest_codewords", "reassign"]

_IMPROVEMENT_TOL = 1e-12  # a smaller gain is rounding


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
