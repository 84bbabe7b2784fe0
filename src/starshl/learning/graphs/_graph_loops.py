"""Compiled loops of graphs: nearest neighbors, conjugate gradients, k-means, moves between clusters, layouts."""

from __future__ import annotations

import numpy as np
from numba import njit

_BLOCK = 64  # columns that are compared at once
_FARTHEST = 4.0  # that one repelling point of a layout moves another, in one step of size 1


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


@njit(cache=True, nogil=True)
def keep_nearer(products, norms, first_column, rows, values, columns):
    """Keep the columns of smallest norms[j] - 2 products[i, j] seen so far, smallest first.

    Equal values keep the column that came first. ``rows[i]`` is the column of row i itself, which is left out.
    """
    n_kept = values.shape[1]
    n_columns = products.shape[1]
    for i in range(products.shape[0]):
        row = products[i]
        worst = values[i, n_kept - 1]
        for start in range(0, n_columns, _BLOCK):
            # Nearly all blocks hold nothing that is nearer, and comparisons without a branch are vectorized.
            if start + _BLOCK <= n_columns:
                is_any_nearer = False
                for place in range(_BLOCK):
                    is_any_nearer |= norms[start + place] - (row[start + place] + row[start + place]) < worst
                if not is_any_nearer:
                    continue
            for j in range(start, min(start + _BLOCK, n_columns)):
                value = norms[j] - (row[j] + row[j])
                if value < worst and first_column + j != rows[i]:
                    place = n_kept - 1
                    while place > 0 and values[i, place - 1] > value:
                        values[i, place] = values[i, place - 1]
                        columns[i, place] = columns[i, place - 1]
                        place -= 1
                    values[i, place] = value
                    columns[i, place] = first_column + j
                    worst = values[i, n_kept - 1]


@njit(cache=True, nogil=True)
def exact_distances(coordinates, rows, columns, out):
    """out[i, j] = the squared distance between row rows[i] and row columns[i, j], summed in float64."""
    for i in range(rows.shape[0]):
        for j in range(columns.shape[1]):
            total = 0.0
            for axis in range(coordinates.shape[1]):
                difference = coordinates[rows[i], axis] - coordinates[columns[i, j], axis]
                total += difference * difference
            out[i, j] = total


@njit(cache=True, nogil=True)
def nearest_centers(points, centers, labels):
    """Write the nearest center of each point into ``labels``; return the sum of squared distances."""
    n_centers, n_features = centers.shape
    by_feature = np.ascontiguousarray(centers.T)
    distances = np.empty(n_centers)
    total = 0.0
    for i in range(len(points)):
        distances[:] = 0.0
        for j in range(n_features):
            value = points[i, j]
            for c in range(n_centers):  # innermost, because only sums side by side are vectorized
                difference = value - by_feature[j, c]
                distances[c] += difference * difference
        nearest = 0
        for c in range(1, n_centers):
            if distances[c] < distances[nearest]:
                nearest = c
        labels[i] = nearest
        total += distances[nearest]
    return total


@njit(cache=True, nogil=True)
def _first_centers(points, draws, centers):
    """Choose points as centers by greedy k-means++: of several draws, the one that leaves the least scatter.

    Return how many were found: fewer than asked for if there are fewer distinct points.
    """
    n_points, n_features = points.shape
    n_clusters, n_trials = draws.shape
    centers[0] = points[min(int(draws[0, 0] * n_points), n_points - 1)]
    distances = np.full(n_points, np.inf)
    trial = np.empty(n_points)
    best = np.empty(n_points)
    for i in range(n_points):
        distances[i] = np.sum((points[i] - centers[0]) ** 2)
    for c in range(1, n_clusters):
        total = np.sum(distances)
        if total <= 0.0:
            return c
        least = np.inf
        for t in range(n_trials):
            target, chosen, passed = draws[c, t] * total, -1, 0.0
            for i in range(n_points):
                passed += distances[i]
                if distances[i] > 0.0:
                    chosen = i
                    if passed > target:
                        break
            scatter = 0.0
            for i in range(n_points):
                distance = 0.0
                for j in range(n_features):
                    difference = points[i, j] - points[chosen, j]
                    distance += difference * difference
                trial[i] = min(distance, distances[i])
                scatter += trial[i]
            if scatter < least:
                least = scatter
                best[:] = trial
                centers[c] = points[chosen]
        distances[:] = best
    return n_clusters


@njit(cache=True, nogil=True)
def k_means_centers(points, draws, max_iter):
    """Return the centers of least scatter that Lloyd's algorithm finds from several starts.

    ``draws`` holds uniform numbers, shape (n_starts, n_clusters, n_trials), that decide the starts.
    """
    n_starts, n_clusters = draws.shape[:2]
    n_points, n_features = points.shape
    labels = np.empty(n_points, dtype=np.int64)
    previous = np.empty(n_points, dtype=np.int64)
    best = np.empty((0, n_features))
    least = np.inf
    for start in range(n_starts):
        centers = np.empty((n_clusters, n_features))
        centers = centers[: _first_centers(points, draws[start], centers)]
        previous[:] = -1
        scatter = np.inf
        for _ in range(max_iter):
            scatter = nearest_centers(points, centers, labels)
            if np.array_equal(labels, previous):
                break
            previous[:] = labels
            sizes = np.zeros(len(centers))
            sums = np.zeros_like(centers)
            for i in range(n_points):
                sizes[labels[i]] += 1.0
                for j in range(n_features):
                    sums[labels[i], j] += points[i, j]
            for c in range(len(centers)):
                if sizes[c] > 0.0:  # an empty cluster keeps its center
                    centers[c] = sums[c] / sizes[c]
        if scatter < least:
            least = scatter
            best = centers.copy()
    return best


@njit(cache=True, nogil=True)
def move_rows(ends, columns, weights, degrees, labels, n_clusters, max_passes):
    """Move single rows, in place, as long as that raises the modularity; return the number of moves.

    Moving row i to cluster g changes it by (w_ig - d_i d_g / 2m) / m, with w_ig the weight of its edges into g and d_g
    the degrees of the other rows of g. The last row of a cluster stays.
    """
    n_rows = len(degrees)
    total = np.sum(degrees)
    if total <= 0.0:
        return 0
    volumes = np.zeros(n_clusters)
    sizes = np.zeros(n_clusters, dtype=np.int64)
    for i in range(n_rows):
        volumes[labels[i]] += degrees[i]
        sizes[labels[i]] += 1
    into = np.zeros(n_clusters)
    n_moves = 0
    for _ in range(max_passes):
        n_before = n_moves
        for i in range(n_rows):
            here = labels[i]
            if sizes[here] <= 1 or ends[i] == ends[i + 1]:
                continue
            into[:] = 0.0
            for edge in range(ends[i], ends[i + 1]):
                into[labels[columns[edge]]] += weights[edge]
            volumes[here] -= degrees[i]
            best, gain = here, into[here] - degrees[i] * volumes[here] / total
            for g in range(n_clusters):
                other = into[g] - degrees[i] * volumes[g] / total
                if other > gain + 1e-12 * degrees[i]:
                    best, gain = g, other
            volumes[best] += degrees[i]
            if best != here:
                labels[i] = best
                sizes[here] -= 1
                sizes[best] += 1
                n_moves += 1
        if n_moves == n_before:
            break
    return n_moves


@njit(cache=True, nogil=True)
def place_points(points, values, columns, ends, steepness, n_repelling, repulsion, step, draw, first, last, out):
    """Write the places of points ``first`` to ``last`` after one step, from the places of all before it.

    The attraction is taken at the places after the step (as if neighbors stood still), so that no step overshoots. With
    the power b = 7/8 of the curve, squared^b is squared / root with the eighth root: three square roots, which are the
    same on every machine and take a seventh of the time of a power.
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
                root = np.sqrt(np.sqrt(np.sqrt(squared)))
                strength = values[edge] * 1.75 * steepness / (root + steepness * squared)
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
                root = np.sqrt(np.sqrt(np.sqrt(squared)))
                strength = 1.75 * root / ((0.001 + squared) * (root + steepness * squared))
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
