"""Narrow Gaussians as sparse matrices: nearly identities, they are zero but for the few pairs of close rows."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import coo_array, csr_array

from .._threads import run_all, tiles
from ._tile_loops import add_sparse, count_below, find_below, multiply_sparse
from .distances import DistanceTiles

__all__ = ["ClosePairs"]

_ROWS_PER_TASK = 256  # enough work to be worth handing out


class ClosePairs:
    """Gaussians of the given rates, each cut off where rate * squared distance reaches ``cutoff``."""

    def __init__(self, distances: DistanceTiles, rates: np.ndarray, cutoff: float, n_jobs: int | None = None):
        self.n_jobs = n_jobs
        n_rows, dtype = distances.n_rows, distances.rows.dtype
        if len(rates) == 0:
            self.starts, self.columns = np.zeros(n_rows + 1, np.int64), np.zeros(0, np.int64)
            self.values = np.zeros((0, 0), dtype=dtype)
            return
        squared = _sparse_distances(distances, cutoff / rates.min(), n_jobs)
        self.starts, self.columns = squared.indptr.astype(np.int64), squared.indices.astype(np.int64)
        exponents = np.asarray(rates, dtype=np.float64)[:, None] * squared.data[None, :].astype(np.float64)
        self.values = np.where(exponents < cutoff, np.exp(-exponents), 0.0).astype(dtype)

    def add_to(self, matrix: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> None:
        """Add the weighted sum of the Gaussians between some rows to a matrix over these rows."""
        if not np.any(weights):
            return
        positions = np.full(len(self.starts) - 1, -1)
        positions[rows] = np.arange(len(rows))
        total = weights.astype(self.values.dtype) @ self.values
        add_sparse(self.starts, self.columns, total, rows, positions, matrix)

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' G c for each Gaussian, where c holds one coefficient per row."""
        n_rows = len(coefficients)
        products = np.zeros((len(self.values), n_rows, 1))
        multiply_sparse(self.starts, self.columns, self.values, 0, n_rows, coefficients.reshape(-1, 1), products)
        return products[:, :, 0] @ coefficients

    def multiply(self, coefficients: np.ndarray, part: slice) -> np.ndarray:
        """Return some rows of each Gaussian times the columns of ``coefficients``, (n_gaussians, n_rows, n_columns)."""
        starts = self.starts[part.start : part.stop + 1]
        out = np.zeros((len(self.values), len(starts) - 1, coefficients.shape[1]))
        pieces = tiles(len(starts) - 1, _ROWS_PER_TASK) if len(self.values) else []
        arguments = (starts, self.columns, self.values)
        run_all(
            [partial(multiply_sparse, *arguments, piece.start, piece.stop, coefficients, out) for piece in pieces],
            self.n_jobs,
        )
        return out


def _sparse_distances(distances: DistanceTiles, limit: float, n_jobs: int | None) -> csr_array:
    """Return the squared distances below a limit as a symmetric sparse matrix; zeros are entries too."""

    def find(first: int, second: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        tile = distances.tile(first, second)
        rows, columns, values = find_below(tile, limit, count_below(tile, limit))
        return rows + distances.blocks[first].start, columns + distances.blocks[second].start, values

    n_blocks = distances.n_blocks
    upper = [(first, second) for first in range(n_blocks) for second in range(first, n_blocks)]
    entries = run_all([partial(find, *pair) for pair in upper], n_jobs)
    # Tiles on the diagonal are complete; each of the others stands for its mirror image too.
    mirrored = [(c, r, v) for (r, c, v), (first, second) in zip(entries, upper, strict=True) if first != second]
    rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, *mirrored, strict=True))
    n_rows = distances.n_rows
    sparse = coo_array((values, (rows, columns)), shape=(n_rows, n_rows)).tocsr()
    sparse.sort_indices()
    return sparse
