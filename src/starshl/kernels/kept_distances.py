"""KeptDistances: squared distances between fixed samples and support rows, kept for the next functions.

Hashers of several lengths on the same training rows have most of their support rows in common, and the same queries
meet all of them. With many features, distances are most of the work of encoding.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from scipy import sparse

from .._shared_work import note_saved, room_to_share, shared
from .._threads import run_all, single_threaded_blas
from ._tile_loops import pick_columns
from .pairs import squared_distances
from .rows import squared_norms

__all__ = ["KeptDistances"]

_LARGEST_SHARE = 0.75  # of the memory for shared work
_NOT_KEPT = -1


class KeptDistances:
    """Distances between whole tiles of samples and whole pieces of support rows.

    BLAS rounds the same way wherever a row is in a product of two matrices of the same shapes, so distances from here
    are the same bytes as those of a tile and a piece that are multiplied anew. Products of other shapes, at the end of
    the samples and of the support, may be rounded differently: they are not kept.

    Parameters
    ----------
    samples : array of shape (n_samples, n_features)
    tile, piece : int
        Samples and support rows of one product.
    max_bytes : int
        No more distances are kept than that.
    """

    def __init__(self, samples: np.ndarray, tile: int, piece: int, max_bytes: float):
        n_tiles = len(samples) // tile
        self.samples, self.tile, self.piece = samples, tile, piece
        self.norms = squared_norms(samples)
        self.blocks = [slice(number * tile, (number + 1) * tile) for number in range(n_tiles)]
        self.max_pieces = int(max_bytes // (n_tiles * tile * piece * samples.itemsize))
        self.pieces: list[np.ndarray] = []
        self.seconds_per_row = 0.0
        self._places: dict[bytes, int] = {}

    @classmethod
    def shared_for(cls, samples: np.ndarray, support: np.ndarray, tile: int, piece: int) -> KeptDistances | None:
        """Return what is shared for these samples; None outside of shared work, or if there is nothing to be kept."""
        if sparse.issparse(samples) or sparse.issparse(support):
            return None  # rows are found by their bytes, which sparse ones do not have
        max_bytes = _LARGEST_SHARE * room_to_share()
        whole_bytes = len(samples) // tile * tile * piece * samples.itemsize
        if len(support) < piece or not 0 < whole_bytes <= max_bytes:
            return None
        make = partial(cls, samples, tile, piece, max_bytes)
        return shared("kept distances", (samples, tile, piece), make, lambda kept: kept.n_bytes, always=True)

    @property
    def n_bytes(self) -> int:
        """The memory that distances take now."""
        return sum(piece.nbytes for piece in self.pieces)

    def find(self, support: np.ndarray) -> np.ndarray:
        """Return where the distances to each support row are kept, computed if they are not; -1 without room."""
        keys = [row.tobytes() for row in np.ascontiguousarray(support)]
        unknown = [number for number, key in enumerate(keys) if key not in self._places]
        room = (self.max_pieces - len(self.pieces)) * self.piece
        note_saved(self.seconds_per_row * (len(keys) - len(unknown)))
        for start in range(0, min(len(unknown), room), self.piece):
            chosen = unknown[start : start + self.piece]
            first = len(self.pieces) * self.piece
            self._add(support[chosen])
            self._places |= {keys[number]: first + offset for offset, number in enumerate(chosen)}
        return np.array([self._places.get(key, _NOT_KEPT) for key in keys], dtype=np.int64)

    def _add(self, rows: np.ndarray) -> None:
        """Keep one more piece; if there are too few rows, it is filled up with zeros."""
        start = time.perf_counter()
        whole = np.zeros((self.piece, rows.shape[1]), dtype=self.samples.dtype)
        whole[: len(rows)] = rows
        norms = squared_norms(whole)
        kept = np.empty((len(self.blocks), self.tile, self.piece), dtype=self.samples.dtype)

        def fill(number: int) -> None:
            block = self.blocks[number]
            kept[number] = squared_distances(self.samples[block], whole, (self.norms[block], norms))

        with single_threaded_blas():
            run_all([partial(fill, number) for number in range(len(self.blocks))])
        self.pieces.append(kept)
        self.seconds_per_row = (time.perf_counter() - start) / self.piece

    def between(self, block: slice, places: np.ndarray) -> np.ndarray | None:
        """Return the distances between a tile of samples and a piece of support rows; None if they are not kept."""
        is_whole = block.stop - block.start == self.tile and len(places) == self.piece
        if not is_whole or (places == _NOT_KEPT).any():
            return None
        out = np.empty((self.tile, self.piece), dtype=self.samples.dtype)
        numbers, offsets = np.divmod(places, self.piece)
        for number in np.unique(numbers):
            columns = np.flatnonzero(numbers == number)
            pick_columns(self.pieces[number][block.start // self.tile], offsets[columns], columns, out)
        return out
