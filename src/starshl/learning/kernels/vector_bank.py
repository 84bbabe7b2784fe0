"""VectorBank: kernels on vectors, computed when asked for from one table of squared distances.

Storing every kernel takes n_kernels matrices of memory, and reading them back takes longer than computing them anew.
What is stored is half a matrix of distances, in the precision of the rows, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from joblib import effective_n_jobs

from ..._common.threads import run_all, single_threaded_blas, tiles
from ..._common.validation import Rows
from ..scratch import Scratch
from ._fused_loops import add_forms
from .distances import TILE, ClosePairs, DistanceTiles
from .kernel import Kernel
from .mixture import FusedKernels, RowScales

_SPARSE_SHARE = 0.01  # of entries that are not negligible, up to which a Gaussian is stored as a sparse matrix
_SHARE_ROWS = 512  # from which that share is estimated


class VectorBank:
    """Kernels between all training rows, with the methods of :class:`starshl.learning.kernels.banks.GramBank`."""

    def __init__(
        self,
        kernels: Sequence[Kernel],
        rows: Rows,
        n_jobs: int | None = None,
        scratch: Scratch | None = None,
        *,
        stores_distances: bool = True,
    ):
        self.kernels, self.rows = list(kernels), rows
        self.n_kernels, self.n_rows = len(kernels), rows.shape[0]
        self.dtype = rows.dtype
        self.n_jobs = n_jobs
        self.scratch = scratch or Scratch()
        self.distances = DistanceTiles(rows, n_jobs, stored=stores_distances)
        everything = FusedKernels(kernels, rows.dtype, self.n_rows)
        self.narrow = self._narrow_kernels(everything)
        self.wide = [m for m in range(self.n_kernels) if m not in self.narrow]
        self.fused = FusedKernels([kernels[m] for m in self.wide], rows.dtype, self.n_rows)
        self.scales = self.fused.scales(rows)
        rates = everything.rates[[everything.gaussians.index(m) for m in self.narrow]]
        self.close = ClosePairs(self.distances, rates, float(everything.cutoff), n_jobs)

    def _narrow_kernels(self, fused: FusedKernels) -> list[int]:
        """Return the Gaussians that are zero on nearly all pairs of rows."""
        sample = np.unique(np.linspace(0, self.n_rows - 1, min(_SHARE_ROWS, self.n_rows)).astype(np.int64))
        squared = self.distances.between(sample, sample)
        shares = [np.mean(rate * squared < fused.cutoff) - 1.0 / len(sample) for rate in fused.rates]
        return [m for m, share in zip(fused.gaussians, shares, strict=True) if share <= _SPARSE_SHARE]

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over the rows given in rising order.

        All rows are shared out among the threads of the bank; some rows are those of one bit, and so of one thread.
        """
        n_rows = self.n_rows if rows is None else len(rows)
        combined = np.empty((n_rows, n_rows), dtype=self.dtype) if out is None else out
        weighted = self.fused.weighted(weights[self.wide])

        def write(squared: np.ndarray, scales: tuple[RowScales, RowScales], first: slice, second: slice) -> None:
            self.fused.add_up(squared, *scales, weighted, first.start, second.start, combined)

        self._visit_tiles(write, rows)
        self.close.add_to(combined, weights[self.narrow], np.arange(self.n_rows) if rows is None else rows)
        return combined

    def add_to(self, matrix: np.ndarray, weights: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Add what :meth:`combine` returns to a matrix, tile by tile."""
        weighted = self.fused.weighted(weights[self.wide])

        def add(squared: np.ndarray, scales: tuple[RowScales, RowScales], first: slice, second: slice) -> None:
            values = self.fused.sum_between(squared, *scales, weighted)
            matrix[first, second] += values
            if first != second:
                matrix[second, first] += values.T

        self._visit_tiles(add, rows)
        self.close.add_to(matrix, weights[self.narrow], np.arange(self.n_rows) if rows is None else rows)

    def _visit_tiles(
        self, visit: Callable[[np.ndarray, tuple[RowScales, RowScales], slice, slice], None], rows: np.ndarray | None
    ) -> None:
        """Call a function for each tile on and above the diagonal: its distances, scales of rows, and place."""
        n_jobs = self.n_jobs if rows is None else 1
        rows = np.arange(self.n_rows) if rows is None else rows
        pieces = tiles(len(rows), TILE)

        def fill(first: slice, second: slice) -> None:
            above, left = rows[first], rows[second]
            visit(self.distances.between(above, left), (self.scales.take(above), self.scales.take(left)), first, second)

        pairs = [(first, second) for number, first in enumerate(pieces) for second in pieces[number:]]
        with single_threaded_blas():
            run_all([partial(fill, *pair) for pair in pairs], n_jobs)

    def take(self, rows: np.ndarray) -> VectorBank:
        """Return a bank of some of the rows."""
        return VectorBank(self.kernels, self.rows[rows], self.n_jobs, self.scratch)

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' K_m c for every kernel, where c holds one coefficient per row."""
        forms, wide_forms = np.zeros(self.n_kernels), np.zeros(len(self.wide))
        forms[self.narrow] = self.close.quadratic_forms(coefficients)
        buffer = np.empty(len(self.wide) * TILE * TILE, dtype=self.dtype)
        rows = np.flatnonzero(coefficients)
        pieces = tiles(len(rows), TILE)
        for number, piece in enumerate(pieces):
            for other in pieces[number:]:
                first, second = rows[piece], rows[other]
                squared = self.distances.between(first, second)
                values = _shaped(buffer, (len(self.wide), *squared.shape))
                self.fused.evaluate(squared, self.scales.take(first), self.scales.take(second), values)
                twice = 1.0 if piece == other else 2.0
                add_forms(values, twice * coefficients[first], coefficients[second], wide_forms)
        forms[[self.wide[m] for m in self.fused.order]] = wide_forms
        return np.maximum(forms, 0.0)

    def expand(self, coefficients: np.ndarray, accuracy: float = 0.0, part: slice | None = None) -> np.ndarray:
        """Return K_m @ c for every kernel and every row c of coefficients, (n, n_kernels, n_rows), in float64.

        Sums are taken in float32 where that is as exact as ``accuracy``. For ``part`` see :class:`GramBank`.
        """
        part = slice(0, self.n_rows) if part is None else part
        columns = np.ascontiguousarray(np.asarray(coefficients, dtype=np.float64).T)
        expansions = np.empty((self.n_kernels, part.stop - part.start, columns.shape[1]))
        expansions[self.narrow] = self.close.multiply(columns, part)
        expansions[[self.wide[m] for m in self.fused.order]] = self._expand_wide(columns, accuracy, part)
        return expansions.transpose(2, 0, 1)

    def _expand_wide(self, columns: np.ndarray, accuracy: float, part: slice) -> np.ndarray:
        """Return the products of the kernels that are not sparse, in the order of ``fused``."""
        shape = len(self.wide), part.stop - part.start, columns.shape[1]
        sums = np.zeros(shape, dtype=self._precision(columns, accuracy))
        if len(self.wide) == 0:
            return sums
        columns = columns.astype(sums.dtype, copy=False)
        support = np.flatnonzero(columns.any(axis=1))
        # Buffers of the threads, because touching fresh memory for each tile would take longer than the products.
        spare = [_Buffers(self, sums) for _ in range(effective_n_jobs(self.n_jobs))]
        blocks = [rows for rows in self.distances.blocks if part.start <= rows.start < part.stop]
        places = [slice(rows.start - part.start, rows.stop - part.start) for rows in blocks]
        tasks = [
            partial(self._fill, rows, support, columns, sums[:, place], spare)
            for rows, place in zip(blocks, places, strict=True)
        ]
        with single_threaded_blas():
            run_all(tasks, self.n_jobs)
        return sums

    def _fill(
        self, rows: slice, support: np.ndarray, columns: np.ndarray, sums: np.ndarray, spare: list[_Buffers]
    ) -> None:
        """Fill in the sums of one block of rows over the rows whose coefficients are not zero."""
        buffers = spare.pop()
        inside, scales = np.arange(rows.start, rows.stop), self.scales.take(rows)
        for piece in tiles(len(support), TILE):
            others = support[piece]
            values = buffers.evaluate(self.distances.between(inside, others), scales, self.scales.take(others))
            sums += buffers.multiply(values, columns[others])
        spare.append(buffers)

    def _precision(self, columns: np.ndarray, accuracy: float) -> np.dtype:
        """Return the precision in which products are summed: float64 unless rounding to float32 does no harm."""
        largest = np.sqrt(np.max(np.sum(columns**2, axis=0), initial=0.0))
        rounding = 8.0 * float(np.finfo(np.float32).eps) * largest
        return self.dtype if rounding <= accuracy else np.dtype(np.float64)


class _Buffers:
    """Room for the kernels of a tile and their products, used again and again by one thread."""

    def __init__(self, bank: VectorBank, sums: np.ndarray):
        n_kernels, _, n_columns = sums.shape
        self.fused = bank.fused
        self.values = np.empty(n_kernels * TILE * TILE, dtype=bank.dtype)
        self.precise = self.values if sums.dtype == bank.dtype else np.empty(len(self.values), dtype=sums.dtype)
        self.products = np.empty(n_kernels * TILE * n_columns, dtype=sums.dtype)

    def evaluate(self, squared: np.ndarray, rows: RowScales, columns: RowScales) -> np.ndarray:
        shape = self.fused.n_kernels, *squared.shape
        values, precise = _shaped(self.values, shape), _shaped(self.precise, shape)
        self.fused.evaluate(squared, rows, columns, values)
        if self.precise is not self.values:
            precise[:] = values
        return precise

    def multiply(self, values: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.matmul(values, columns, out=_shaped(self.products, (*values.shape[:2], columns.shape[1])))


def _shaped(buffer: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the beginning of a flat buffer as an array."""
    return buffer[: int(np.prod(shape))].reshape(shape)
