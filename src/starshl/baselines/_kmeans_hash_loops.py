"""Compiled loop of K-means hashing: one sweep over the centers of a subspace."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def move_centers(centers, means, shares, targets, weight):
    """Move each center, in place, to the minimizer of a majorizer of the objective; return the largest move.

    (|c - c_i| - t)^2 lies below |c - c_i - t u_i|^2, with u_i the unit vector from c_i to the present c, and
    touches it there. So the minimizer is a weighted mean of the rows' mean and the points c_i + t u_i. Where
    two centers coincide u_i = 0 majorizes, too.
    """
    n_centers, n_dimensions = centers.shape
    goal = np.empty(n_dimensions)
    largest = 0.0
    for j in range(n_centers):
        if shares[j] == 0.0:
            continue
        total = 1.0
        goal[:] = means[j]
        for i in range(n_centers):
            if i == j or shares[i] == 0.0:
                continue
            squared = 0.0
            for d in range(n_dimensions):
                squared += (centers[j, d] - centers[i, d]) ** 2
            stretch = targets[j, i] / np.sqrt(squared) if squared > 0.0 else 0.0
            pull = 2.0 * weight * shares[i]
            total += pull
            for d in range(n_dimensions):
                goal[d] += pull * (centers[i, d] + stretch * (centers[j, d] - centers[i, d]))
        for d in range(n_dimensions):
            moved = goal[d] / total
            largest = max(largest, abs(moved - centers[j, d]))
            centers[j, d] = moved
    return largest
