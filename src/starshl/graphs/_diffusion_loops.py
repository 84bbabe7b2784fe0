"""Compiled loops: conjugate gradients on the normalized adjacency of a graph, one right-hand side at a time."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def solve_diffusion(values, columns, ends, damping, extra, trivial, target, tolerance, max_iter, solution):
    """Solve (I - damping S + diag(extra)) x = target among x orthogonal to ``trivial``, by conjugate gradients.

    ``solution`` holds the start; start and target are orthogonal to ``trivial``. Return the final length of the
    residual relative to that of the target.
    """
    n_rows = target.shape[0]
    residual, direction, image = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    _apply(values, columns, ends, damping, extra, trivial, solution, image)
    goal, size = 0.0, 0.0
    for i in range(n_rows):
        residual[i] = target[i] - image[i]
        direction[i] = residual[i]
        goal += target[i] * target[i]
        size += residual[i] * residual[i]
    if goal == 0.0:
        solution[:] = 0.0
        return 0.0
    for _ in range(max_iter):
        if size <= tolerance * tolerance * goal:
            break
        _apply(values, columns, ends, damping, extra, trivial, direction, image)
        curvature = 0.0
        for i in range(n_rows):
            curvature += direction[i] * image[i]
        step = size / curvature
        before, size = size, 0.0
        for i in range(n_rows):
            solution[i] += step * direction[i]
            residual[i] -= step * image[i]
            size += residual[i] * residual[i]
        ratio = size / before
        for i in range(n_rows):
            direction[i] = residual[i] + ratio * direction[i]
    return np.sqrt(size / goal)


@njit(nogil=True)
def _apply(values, columns, ends, damping, extra, trivial, vector, out):
    for i in range(vector.shape[0]):
        total = 0.0
        for edge in range(ends[i], ends[i + 1]):
            total += values[edge] * vector[columns[edge]]
        out[i] = (1.0 + extra[i]) * vector[i] - damping * total
    # Without it, rounding along the trivial direction would grow a hundredfold in the solution.
    along = 0.0
    for i in range(vector.shape[0]):
        along += trivial[i] * out[i]
    for i in range(vector.shape[0]):
        out[i] -= along * trivial[i]
