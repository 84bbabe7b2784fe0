"""One step of a layout, for some of the points: neighbors attract, random points repel."""

import numpy as np
from numba import njit

_FARTHEST = 4.0  # that one repelling point moves another, in one step of size 1


@njit(cache=True, nogil=True)
def move_points(points, values, columns, ends, steepness, power, n_repelling, repulsion, step, draw, first, last, out):
    """Write the places of points ``first`` to ``last`` after one step, from the places of all before it.

    The attraction is taken at the places after the step (as if neighbors stood still), so that no step overshoots.
    """
    n_points = points.shape[0]
    for i in range(first, last):
        x, y = points[i, 0], points[i, 1]
        pull, pull_x, pull_y, degree = 0.0, 0.0, 0.0, 0.0
        for edge in range(ends[i], ends[i + 1]):
            j = columns[edge]
            degree += values[edge]
            squared = (x - points[j, 0]) ** 2 + (y - points[j, 1]) ** 2
            if squared > 0.0:
                strength = values[edge] * 2.0 * steepness * power * squared ** (power - 1.0)
                strength /= 1.0 + steepness * squared**power
                pull += strength
                pull_x += strength * points[j, 0]
                pull_y += strength * points[j, 1]
        push_x, push_y = 0.0, 0.0
        share = repulsion * degree / n_repelling
        for number in range(n_repelling):
            j = _drawn(draw, i * n_repelling + number) % n_points
            away_x, away_y = x - points[j, 0], y - points[j, 1]
            squared = away_x**2 + away_y**2
            if squared > 0.0:
                strength = 2.0 * power / ((0.001 + squared) * (1.0 + steepness * squared**power))
                push_x += share * min(max(strength * away_x, -_FARTHEST), _FARTHEST)
                push_y += share * min(max(strength * away_y, -_FARTHEST), _FARTHEST)
        out[i, 0] = (x + step * (pull_x + push_x)) / (1.0 + step * pull)
        out[i, 1] = (y + step * (pull_y + push_y)) / (1.0 + step * pull)


@njit(nogil=True)
def _drawn(draw, number):
    """Return a random number that depends on its arguments alone (SplitMix64)."""
    mixed = np.uint64(draw) * np.uint64(0xD1342543DE82EF95) + np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1))
