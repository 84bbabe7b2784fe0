"""Exact nearest neighbors among the rows of one matrix, the same for any number of threads."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._threads import run_all, single_threaded_blas, tiles

__all__ = ["nearest_rows"]

_TILE_ROWS = 512


def nearest_rows(
    X: np.ndarray, n_neighbors: int, *, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest other rows of each row and their squared Euclidean distances.

    Both arrays have shape (n_samples, min(n_neighbors, n_samples - 1)), nearest first; of equally distant
    rows the one that stands first in X comes first. O(n_samples² n_features) time, O(n_samples) memory.
    """
    n_neighbors = min(n_neighbors, len(X) - 1)
    squared_norms = np.einsum("ij,ij->i", X, X)
    search = partial(_nearest_to_tile, X, squared_norms, n_neighbors)
    with single_threaded_blas():
        found = run_all([partial(search, tile) for tile in tiles(len(X), _TILE_ROWS)], n_jobs)
    return np.vstack([rows for rows, _ in found]), np.vstack([distances for _, distances in found])


def _nearest_to_tile(X, squared_norms, n_neighbors, tile):
    distances = squared_norms[tile, None] + squared_norms - 2.0 * (X[tile] @ X.T)
    np.maximum(distances, 0.0, out=distances)
    in_tile = np.arange(len(distances))
    distances[in_tile, tile.start + in_tile] = np.inf
    farthest = np.partition(distances, n_neighbors - 1, axis=1)[:, n_neighbors - 1, None]
    rows = np.empty((len(distances), n_neighbors), dtype=np.int64)
    for i in in_tile:
        near = np.flatnonzero(distances[i] <= farthest[i])
        rows[i] = near[np.argsort(distances[i, near], kind="stable")[:n_neighbors]]
    return rows, np.take_along_axis(distances, rows, axis=1)
