"""Squared distances between all training rows, in square tiles on and above the diagonal."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._shared_work import shared
from .._threads import run_all, single_threaded_blas, tiles
from .._types import Rows
from ._tile_loops import gather, tile_number
from .pairs import squared_distances
from .rows import squared_norms

__all__ = ["TILE", "DistanceTiles"]

TILE = 384  # rows; fixed, because BLAS sums depend on the shape of their blocks


class DistanceTiles:
    """A symmetric table of squared distances, half of it stored, or none: then tiles are computed when asked for.

    Stored, a table of n rows takes n^2 / 2 numbers. Blocks of rows are numbered from 0 to ``n_blocks - 1``.
    """

    def __init__(self, rows: Rows, n_jobs: int | None = None, *, stored: bool = True):
        self.rows = rows
        self.norms = squared_norms(rows)
        self.n_rows = rows.shape[0]
        self.blocks = tiles(self.n_rows, TILE)
        self.n_blocks = len(self.blocks)
        self.stored: np.ndarray | None = None
        if stored:
            # In a tuple, because loops would be compiled once more for an array that may not be written to.
            (self.stored,) = shared("distance tiles", rows, lambda: (self._compute_all(n_jobs),), _bytes_of)

    @staticmethod
    def stored_bytes(n_rows: int, itemsize: int) -> int:
        """Return the memory that a stored table takes."""
        n_blocks = -(-n_rows // TILE)
        return n_blocks * (n_blocks + 1) // 2 * TILE * TILE * itemsize

    def _compute_all(self, n_jobs: int | None) -> np.ndarray:
        """Return all tiles on and above the diagonal."""
        pairs = [(first, second) for first in range(self.n_blocks) for second in range(first, self.n_blocks)]
        stored = np.empty((len(pairs), TILE, TILE), dtype=self.rows.dtype)

        def fill(number: int, first: int, second: int) -> None:
            tile = self.tile(first, second)
            stored[number, : tile.shape[0], : tile.shape[1]] = tile

        with single_threaded_blas():
            run_all([partial(fill, number, *pair) for number, pair in enumerate(pairs)], n_jobs)
        return stored

    def tile(self, first: int, second: int) -> np.ndarray:
        """Return the squared distances between the rows of two blocks, first <= second."""
        rows, columns = self.blocks[first], self.blocks[second]
        if self.stored is None:
            return self._compute(rows, columns)
        tile = self.stored[tile_number(first, second, self.n_blocks)]
        return np.ascontiguousarray(tile[: rows.stop - rows.start, : columns.stop - columns.start])

    def _compute(self, rows: slice | np.ndarray, columns: slice | np.ndarray) -> np.ndarray:
        """Return distances; each is the same number whatever else is asked for in the same call."""
        first, second, norms = self.rows[rows], self.rows[columns], (self.norms[rows], self.norms[columns])
        if not isinstance(first, np.ndarray):
            return squared_distances(first, second, norms)
        # BLAS has special kernels for small products and for a matrix times itself, and these round differently:
        # every product here is of two matrices of TILE rows.
        left, right = _whole_tiles(first, norms[0]), _whole_tiles(second, norms[1])
        distances = np.empty((len(first), len(second)), dtype=self.rows.dtype)
        with single_threaded_blas():
            for across, (above, above_norms) in left:
                for down, (beside, beside_norms) in right:
                    tile = squared_distances(above, beside, (above_norms, beside_norms))
                    distances[across, down] = tile[: across.stop - across.start, : down.stop - down.start]
        return distances

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the squared distances between rows given by their indices, in rising order."""
        first, second = rows[0] // TILE, columns[0] // TILE
        if first <= second and _is_block(rows, self.blocks[first]) and _is_block(columns, self.blocks[second]):
            return self.tile(first, second)
        if self.stored is None:
            return self._compute(rows, columns)
        out = np.empty((len(rows), len(columns)), dtype=self.rows.dtype)
        gather(self.stored, self.n_blocks, rows, columns, out)
        return out


def _bytes_of(stored: tuple[np.ndarray]) -> int:
    return stored[0].nbytes


def _whole_tiles(rows: np.ndarray, norms: np.ndarray) -> list[tuple[slice, tuple[np.ndarray, np.ndarray]]]:
    """Return copies of pieces of the rows and their norms, the last piece filled up with zeros, and their places."""
    return [(piece, (_filled_up(rows[piece]), _filled_up(norms[piece]))) for piece in tiles(len(rows), TILE)]


def _filled_up(array: np.ndarray) -> np.ndarray:
    filled = np.zeros((TILE, *array.shape[1:]), dtype=array.dtype)
    filled[: len(array)] = array
    return filled


def _is_block(rows: np.ndarray, block: slice) -> bool:
    """Tell whether the rows, in rising order, are just those of a block."""
    return len(rows) == block.stop - block.start and rows[0] == block.start and rows[-1] == block.stop - 1
