"""The nearest neighbors of every row among all others: exact, in blocks, the same for any number of threads."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._threads import run_all, single_threaded_blas, tiles
from ._neighbor_loops import exact_distances, keep_nearest

__all__ = ["nearest_by_kernel", "nearest_neighbors"]

# Fixed, because BLAS sums depend on the shape of their blocks.
_TILE_ROWS, _TILE_COLUMNS = 512, 4096
_SPARE = 9  # candidates beyond the neighbors asked for, so that float32 rarely has to be doubted
_ROUNDINGS = 16  # of a float32 product of 50 entries, in units of its largest term; measured below 4


def nearest_neighbors(coordinates: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances and indices of the nearest other rows, nearest first, (n_rows, n_neighbors) each.

    Candidates come from float32 products and are ranked by float64 differences; a row whose last neighbor is not
    clearly nearer than all rows that are no candidates is done again in float64. Equal distances go to the lower index.
    The coordinates should be centered and of moderate size. O(n_rows^2 n_axes) time, O(n_rows) memory.
    """
    n_rows = len(coordinates)
    n_kept = min(n_neighbors + _SPARE, n_rows - 1)
    coarse = coordinates.astype(np.float32)
    norms = np.einsum("ij,ij->i", coarse, coarse)
    fine_norms = np.einsum("ij,ij->i", coordinates, coordinates)
    doubt = _ROUNDINGS * np.finfo(np.float32).eps * (fine_norms + fine_norms.max())

    def of(tile: slice) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(tile.start, tile.stop)
        values, candidates = _candidates(coarse, norms, rows, n_kept)
        distances, neighbors = _ranked(coordinates, rows, candidates, n_neighbors)
        if n_kept < n_rows - 1:
            doubtful = distances[:, -1] > values[:, -1] + fine_norms[rows] - doubt[rows]
            if doubtful.any():
                _, candidates = _candidates(coordinates, fine_norms, rows[doubtful], n_kept)
                again = _ranked(coordinates, rows[doubtful], candidates, n_neighbors)
                distances[doubtful], neighbors[doubtful] = again
        return distances, neighbors

    with single_threaded_blas():
        return _stacked(run_all([partial(of, tile) for tile in tiles(n_rows, _TILE_ROWS)]))


def nearest_by_kernel(kernel: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for the distance of a kernel, d^2 = K_ii + K_jj - 2 K_ij."""
    diagonal = np.ascontiguousarray(np.diagonal(kernel))

    def of(tile: slice) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(tile.start, tile.stop)
        values = np.full((len(rows), n_neighbors), np.inf)
        neighbors = np.zeros((len(rows), n_neighbors), dtype=np.int64)
        keep_nearest(np.ascontiguousarray(kernel[tile]), diagonal, 0, rows, values, neighbors)
        return np.maximum(values + diagonal[tile, None], 0.0), neighbors

    return _stacked(run_all([partial(of, tile) for tile in tiles(len(kernel), _TILE_ROWS)]))


def _candidates(
    coordinates: np.ndarray, norms: np.ndarray, rows: np.ndarray, n_kept: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``n_kept`` smallest |b|^2 - 2 a'b of each row a, and the rows b that they belong to."""
    own = coordinates[rows]
    values = np.full((len(rows), n_kept), np.inf, dtype=coordinates.dtype)
    columns = np.zeros((len(rows), n_kept), dtype=np.int64)
    for block in tiles(len(coordinates), _TILE_COLUMNS):
        keep_nearest(own @ coordinates[block].T, norms[block], block.start, rows, values, columns)
    return values, columns


def _ranked(
    coordinates: np.ndarray, rows: np.ndarray, candidates: np.ndarray, n_neighbors: int
) -> tuple[np.ndarray, np.ndarray]:
    candidates = np.sort(candidates, axis=1)
    distances = np.empty(candidates.shape)
    exact_distances(coordinates, rows, candidates, distances)
    order = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(candidates, order, axis=1)


def _stacked(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
