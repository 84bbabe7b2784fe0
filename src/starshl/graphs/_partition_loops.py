"""Compiled loops over rows: k-means in few dimensions, and single rows that move to a cluster of higher modularity."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["k_means_centers", "move_rows", "nearest_centers"]


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
def _spread_centers(points, draws, centers):
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
        centers = centers[: _spread_centers(points, draws[start], centers)]
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
