"""k-means in the feature space of a kernel, for samples that are not vectors."""

from __future__ import annotations

import numpy as np

_MAX_ITERATIONS = 100  # if clusters never rest; not tuned


def kernel_k_means(
    K: np.ndarray, weights: np.ndarray, n_clusters: int, n_starts: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return cluster labels that minimize the weighted scatter in feature space; the best of several starts.

    A row's squared distance to the mean of cluster c is K_nn - 2 sum_i w_i K_ni / W_c + s_c, the sum running
    over the rows of c, W_c their total weight and s_c the squared norm of the mean. Starts are drawn by
    k-means++ (Arthur and Vassilvitskii 2007).
    """
    first = _first_equal_sample(K)
    # Merging equal samples makes a weight of two and two equal samples the same problem.
    distinct, owner = np.unique(first, return_inverse=True)
    K = np.asarray(K[np.ix_(distinct, distinct)], dtype=np.float64)
    weights = np.bincount(owner, weights, minlength=len(distinct))
    n_clusters = min(n_clusters, len(K))
    best, best_scatter = np.zeros(len(K), dtype=np.int64), np.inf
    for _ in range(n_starts):
        labels = _plus_plus_start(K, weights, n_clusters, rng)
        for _ in range(_MAX_ITERATIONS):
            distances = _distances_to_means(K, weights, labels, n_clusters)
            previous, labels = labels, distances.argmin(axis=1)
            if np.array_equal(labels, previous):
                break
        scatter = float(weights @ _distances_to_means(K, weights, labels, n_clusters).min(axis=1))
        if scatter < best_scatter:
            best, best_scatter = labels, scatter
    return best[owner]


def _first_equal_sample(K: np.ndarray) -> np.ndarray:
    """Return for each sample the first one at distance zero in feature space, itself if there is none before it."""
    diagonal = np.diag(K)
    size = diagonal[:, None] + diagonal
    rounding = 8 * np.finfo(K.dtype).eps
    return np.argmax(size - 2.0 * K <= rounding * size, axis=1)


def _plus_plus_start(K: np.ndarray, weights: np.ndarray, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    diagonal = np.diag(K)
    centers = [int(rng.choice(len(K), p=weights / weights.sum()))]
    distances = _squared_distances(K, diagonal, centers[0])[:, None]
    while len(centers) < n_clusters:
        chances = weights * distances.min(axis=1)
        if chances.sum() <= 0:
            break
        centers.append(int(rng.choice(len(K), p=chances / chances.sum())))
        distances = np.column_stack([distances, _squared_distances(K, diagonal, centers[-1])])
    return distances.argmin(axis=1)


def _squared_distances(K: np.ndarray, diagonal: np.ndarray, center: int) -> np.ndarray:
    return np.maximum(0.0, diagonal + diagonal[center] - 2.0 * K[:, center])


def _distances_to_means(K: np.ndarray, weights: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    membership = np.zeros((len(K), n_clusters))
    membership[np.arange(len(K)), labels] = weights
    totals = membership.sum(axis=0)
    occupied = totals > 0
    membership[:, occupied] /= totals[occupied]
    to_means = K @ membership
    mean_norms = np.einsum("nc,nc->c", membership, to_means)
    distances = np.diag(K)[:, None] - 2.0 * to_means + mean_norms
    distances[:, ~occupied] = np.inf
    return distances
