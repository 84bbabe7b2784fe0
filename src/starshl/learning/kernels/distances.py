"""Squared distances between rows: of two blocks, of all training rows in tiles, cached, and sparse for close pairs.

Equal rows are at distance zero, whatever rounding says; and a distance is the same number wherever it is computed.
"""

from __future__ import annotations

import sys
import time
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import coo_array, csr_array, issparse

from ..._common.result_cache import cache_size, cached, note_saved
from ..._common.threads import run_all, single_threaded_blas, tiles
from ..._common.validation import Rows
from ._distance_loops import (
    add_sparse,
    count_below,
    find_below,
    gather,
    multiply_sparse,
    pick_columns,
    tile_number,
    turn_into_distances,
)

TILE = 384  # rows of a block of DistanceTiles; fixed, because BLAS sums depend on the shape of their blocks
# Below this share of |a|^2 + |b|^2 a squared distance has lost its digits to cancellation.
_CANCELLATION = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}
_PAIRS_AT_ONCE = 256  # pairs of rows that are subtracted; a dense block, if one side is dense
# That NumPy turns into distances before the compiled loop does: compiling it takes as long. Tests replace it.
ENTRIES_BEFORE_LOOP = 40_000_000
_CACHE_SHARE = 0.75  # of the result cache, which distances may take
_NOT_CACHED = -1
_ROWS_PER_TASK = 256  # of a sparse product: enough work to be worth handing out


def as_floats(rows: ArrayLike | Rows) -> Rows:
    """Return rows as float32 if they are, as float64 otherwise."""
    floats: Rows = csr_array(rows) if issparse(rows) else np.asarray(rows)
    return floats if floats.dtype == np.float32 else floats.astype(np.float64, copy=False)


def squared_norms(rows: Rows) -> np.ndarray:
    """Return the squared norms of rows, in float64."""
    if isinstance(rows, np.ndarray):
        return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return np.asarray(rows.astype(np.float64).power(2).sum(axis=1)).ravel()


def inner_products(A: Rows, B: Rows) -> np.ndarray:
    """Return the inner products of all rows of A with all rows of B, a dense C-ordered (n_A, n_B) array."""
    products: Rows = A @ B.T
    return np.ascontiguousarray(products if isinstance(products, np.ndarray) else products.toarray())


def distinct_rows(rows: Rows) -> tuple[Rows, np.ndarray]:
    """Return the distinct rows in float64 and, for each row, which of them it equals; dense rows come sorted."""
    if isinstance(rows, np.ndarray):
        _, chosen, number = np.unique(_sortable_bytes(as_floats(rows)), return_index=True, return_inverse=True)
        return rows[chosen].astype(np.float64), number
    rows = rows.astype(np.float64)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    keys = [(rows.indices[start:stop].tobytes(), rows.data[start:stop].tobytes()) for start, stop in ends]
    first: dict[tuple[bytes, bytes], int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    _, number = np.unique([first[key] for key in keys], return_inverse=True)
    return rows[list(first.values())], number


def _sortable_bytes(rows: np.ndarray) -> np.ndarray:
    """Return one string of bytes per row, in the order of the rows; sorting these is ten times faster."""
    if rows.shape[1] == 0:
        return np.zeros(len(rows))
    is_narrow = rows.dtype == np.float32
    unsigned_zeros = np.ascontiguousarray(rows + rows.dtype.type(0))  # -0.0 + 0.0 is 0.0
    bits: np.ndarray = unsigned_zeros.view(np.int32 if is_narrow else np.int64)
    # Floats are ordered as integers but for the negative ones, whose order is reversed.
    sign = 31 if is_narrow else 63
    bits ^= (bits >> sign) | (-1 << sign)
    if sys.byteorder == "little":
        bits.byteswap(inplace=True)
    return bits.view(np.dtype((np.void, rows.shape[1] * bits.itemsize))).ravel()


class PairTable:
    """Inner products and squared distances between two blocks of rows, each computed at most once."""

    def __init__(self, A: Rows, B: Rows):
        self.A, self.B = A, B

    @cached_property
    def norms(self) -> tuple[np.ndarray, np.ndarray]:
        """Squared norms of the rows of A and of B."""
        return squared_norms(self.A), squared_norms(self.B)

    @cached_property
    def inner(self) -> np.ndarray:
        return inner_products(self.A, self.B)

    @cached_property
    def cosines(self) -> np.ndarray:
        """Cosines of the angles between rows, zero wherever a row is zero."""
        lengths = (np.sqrt(norms) for norms in self.norms)
        scales = (np.divide(1.0, own, out=np.zeros_like(own), where=own > 0) for own in lengths)
        rows, columns = (own.astype(self.inner.dtype) for own in scales)
        return self.inner * rows[:, None] * columns

    @cached_property
    def squared_distances(self) -> np.ndarray:
        return _as_distances(self.inner.copy(), self.A, self.B, self.norms)


class _Used:
    """How many entries NumPy has turned into distances in this process."""

    n_entries = 0


def _is_worth_compiling(n_entries: int) -> bool:
    """Tell whether the compiled loop should take these entries; it gives the same bits, but compiles for a while."""
    _Used.n_entries += n_entries
    return _Used.n_entries > ENTRIES_BEFORE_LOOP


def squared_distances_from_norms(A: Rows, B: Rows, norms: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the squared distances between two blocks of rows whose squared norms are known."""
    return _as_distances(inner_products(A, B), A, B, norms)


def _as_distances(inner: np.ndarray, A: Rows, B: Rows, norms: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    threshold = _CANCELLATION[inner.dtype]
    if isinstance(A, np.ndarray) and isinstance(B, np.ndarray) and _is_worth_compiling(inner.size):
        turn_into_distances(inner, *norms, A, B, threshold)
        return inner
    both = norms[0][:, None] + norms[1]
    distances = (both - 2.0 * inner).astype(inner.dtype)
    first, second = np.nonzero(distances <= threshold * both)
    _recompute(distances, first, second, A, B)
    return distances


def _recompute(distances: np.ndarray, first: np.ndarray, second: np.ndarray, A: Rows, B: Rows) -> None:
    """Sum the squared differences of some pairs of rows directly, so that equal rows have distance zero."""
    for piece in tiles(len(first), _PAIRS_AT_ONCE):
        a, b = A[first[piece]], B[second[piece]]
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            gaps = a.astype(np.float64) - b.astype(np.float64)
            # One term after the other, as the compiled loop adds them.
            squared = np.cumsum(gaps * gaps, axis=1)[:, -1] if gaps.shape[1] else 0.0
        else:
            squared = squared_norms(a - b)
        distances[first[piece], second[piece]] = squared


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
            (self.stored,) = cached("distance tiles", rows, lambda: (self._compute_all(n_jobs),), _bytes_of)

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
            return squared_distances_from_norms(first, second, norms)
        # BLAS has special kernels for small products and for a matrix times itself, and these round differently:
        # every product here is of two matrices of TILE rows.
        left, right = _whole_tiles(first, norms[0]), _whole_tiles(second, norms[1])
        distances = np.empty((len(first), len(second)), dtype=self.rows.dtype)
        with single_threaded_blas():
            for across, (above, above_norms) in left:
                for down, (beside, beside_norms) in right:
                    tile = squared_distances_from_norms(above, beside, (above_norms, beside_norms))
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


class DistanceCache:
    """Distances between whole tiles of samples and whole pieces of support rows.

    BLAS rounds the same way wherever a row is in a product of two matrices of the same shapes, so distances from here
    are the same bytes as those of a tile and a piece that are multiplied anew. Products of other shapes, at the end of
    the samples and of the support, may be rounded differently: they are not cached.

    Parameters
    ----------
    samples : array of shape (n_samples, n_features)
    tile, piece : int
        Samples and support rows of one product.
    max_bytes : int
        No more distances are cached than that.
    """

    def __init__(self, samples: np.ndarray, tile: int, piece: int, max_bytes: float):
        n_tiles = len(samples) // tile
        self.samples, self.tile, self.piece = samples, tile, piece
        self.norms = squared_norms(samples)
        self.blocks = [slice(number * tile, (number + 1) * tile) for number in range(n_tiles)]
        self.max_pieces = int(max_bytes // (n_tiles * tile * piece * samples.itemsize))
        self.pieces: list[np.ndarray] = []
        self.seconds_per_row = 0.0
        self._columns: dict[bytes, int] = {}

    @classmethod
    def for_samples(cls, samples: np.ndarray, support: np.ndarray, tile: int, piece: int) -> DistanceCache | None:
        """Return the cache of these samples; None where results are not cached, or if there is nothing to cache."""
        if sparse.issparse(samples) or sparse.issparse(support):
            return None  # rows are found by their bytes, which sparse ones do not have
        max_bytes = _CACHE_SHARE * cache_size()
        whole_bytes = len(samples) // tile * tile * piece * samples.itemsize
        if len(support) < piece or not 0 < whole_bytes <= max_bytes:
            return None
        make = partial(cls, samples, tile, piece, max_bytes)
        return cached("distances", (samples, tile, piece), make, lambda cache: cache.n_bytes, always=True)

    @property
    def n_bytes(self) -> int:
        """The memory that distances take now."""
        return sum(piece.nbytes for piece in self.pieces)

    def find(self, support: np.ndarray) -> np.ndarray:
        """Return the column of each support row, whose distances are computed if need be; -1 where there is no room."""
        keys = [row.tobytes() for row in np.ascontiguousarray(support)]
        unknown = [number for number, key in enumerate(keys) if key not in self._columns]
        room = (self.max_pieces - len(self.pieces)) * self.piece
        note_saved(self.seconds_per_row * (len(keys) - len(unknown)))
        for start in range(0, min(len(unknown), room), self.piece):
            chosen = unknown[start : start + self.piece]
            first = len(self.pieces) * self.piece
            self._add(support[chosen])
            self._columns |= {keys[number]: first + offset for offset, number in enumerate(chosen)}
        return np.array([self._columns.get(key, _NOT_CACHED) for key in keys], dtype=np.int64)

    def _add(self, rows: np.ndarray) -> None:
        """Add one more piece; if there are too few rows, it is filled up with zeros."""
        start = time.perf_counter()
        whole = np.zeros((self.piece, rows.shape[1]), dtype=self.samples.dtype)
        whole[: len(rows)] = rows
        norms = squared_norms(whole)
        distances = np.empty((len(self.blocks), self.tile, self.piece), dtype=self.samples.dtype)

        def fill(number: int) -> None:
            block = self.blocks[number]
            distances[number] = squared_distances_from_norms(self.samples[block], whole, (self.norms[block], norms))

        with single_threaded_blas():
            run_all([partial(fill, number) for number in range(len(self.blocks))])
        self.pieces.append(distances)
        self.seconds_per_row = (time.perf_counter() - start) / self.piece

    def between(self, block: slice, found: np.ndarray) -> np.ndarray | None:
        """Return the distances between a tile of samples and a piece of support rows, given what :meth:`find` returned.

        None if they are not cached.
        """
        is_whole = block.stop - block.start == self.tile and len(found) == self.piece
        if not is_whole or (found == _NOT_CACHED).any():
            return None
        out = np.empty((self.tile, self.piece), dtype=self.samples.dtype)
        numbers, offsets = np.divmod(found, self.piece)
        for number in np.unique(numbers):
            columns = np.flatnonzero(numbers == number)
            pick_columns(self.pieces[number][block.start // self.tile], offsets[columns], columns, out)
        return out


class ClosePairs:
    """Narrow Gaussians as sparse matrices: nearly identities, they are zero but for the few pairs of close rows.

    Gaussians have the given ``rates``, and are zero where rate * squared distance reaches ``cutoff``.
    """

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
