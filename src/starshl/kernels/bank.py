"""GramBank: every kernel between all training rows, stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from .._memory import Scratch
from .._threads import run_all, single_threaded_blas, tiles
from .base import Kernel
from .columns import by_columns, reads_columns
from .pairs import PairTable
from .vectors import VectorKernel

__all__ = ["GramBank", "checked_block", "compute_grams"]

_TILE_ROWS = 512  # fixed, because BLAS sums depend on the shape of their blocks


class GramBank:
    """The Gram matrices of all kernels, shape (n_kernels, n_rows, n_rows), stored.

    Solvers need two things of it: the weighted sum of the matrices for one bit, and the product of every
    matrix with the dual coefficients of several bits.
    """

    def __init__(self, grams: np.ndarray, n_jobs: int | None = None, scratch: Scratch | None = None):
        self.grams = grams
        self.dtype = grams.dtype
        self.n_jobs = n_jobs
        self.scratch = scratch or Scratch()
        self.n_kernels, self.n_rows = grams.shape[:2]

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over the rows given, in ``out`` if it is given."""
        weights = weights.astype(self.dtype)
        rows = np.arange(self.n_rows) if rows is None else rows
        combined = np.empty((len(rows), len(rows)), dtype=self.dtype) if out is None else out
        if len(rows) == self.n_rows:
            with single_threaded_blas():
                np.matmul(weights, self.grams.reshape(self.n_kernels, -1), out=combined.reshape(-1))
            return combined
        combined[:] = 0
        for weight, gram in zip(weights, self.grams, strict=True):
            if weight:
                combined += weight * gram[np.ix_(rows, rows)]
        return combined

    def add_to(self, matrix: np.ndarray, weights: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Add sum_m weights[m] K_m over all rows, or over the rows given, to a matrix."""
        for weight, gram in zip(weights, self.grams, strict=True):
            for tile in tiles(len(matrix), _TILE_ROWS) if weight else []:
                part = gram[tile] if rows is None else gram[np.ix_(rows[tile], rows)]
                matrix[tile] += weight.astype(matrix.dtype) * part

    def take(self, rows: np.ndarray) -> GramBank:
        """Return a bank of some of the rows."""
        return GramBank(self.grams[:, rows[:, None], rows], self.n_jobs, self.scratch)

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' K_m c for every kernel, where c holds one coefficient per row."""
        used = np.flatnonzero(coefficients)
        return np.array([max(0.0, coefficients[used] @ gram[used] @ coefficients) for gram in self.grams])

    def expand(self, coefficients: np.ndarray, accuracy: float = 0.0, part: slice | None = None) -> np.ndarray:
        """Return K_m @ c for every kernel and every row c of coefficients, (n, n_kernels, n_rows), in float64.

        ``accuracy`` is for banks that can be faster where less will do. ``part`` asks for some of the rows: it begins
        and, unless at the last row, ends at a multiple of :data:`starshl.kernels.PART_ROWS`.
        """
        begin, end = (0, self.n_rows) if part is None else (part.start, part.stop)
        columns = np.ascontiguousarray(np.asarray(coefficients, dtype=np.float64).T)
        expansions = np.empty((self.n_kernels, end - begin, columns.shape[1]))

        def fill(rows: slice) -> None:
            for gram, expansion in zip(self.grams, expansions, strict=True):
                # In float64, because BLAS would sum a float32 matrix in float32.
                expansion[rows] = gram[begin + rows.start : begin + rows.stop].astype(np.float64) @ columns

        with single_threaded_blas():
            run_all([partial(fill, rows) for rows in tiles(end - begin, _TILE_ROWS)], self.n_jobs)
        return expansions.transpose(2, 0, 1)


def compute_grams(kernels: Sequence[Kernel], samples: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Return the Gram matrices of all kernels, shape (n_kernels, n, n), in the precision of the samples."""
    n_samples = samples.shape[0]
    dtype = samples.dtype if samples.dtype == np.float32 else np.float64
    grams = np.empty((len(kernels), n_samples, n_samples), dtype=dtype)
    if reads_columns(kernels):
        for group in by_columns(kernels):
            grams[group.positions] = compute_grams(group.kernels, group.read(samples), n_jobs)
        return grams

    def fill(rows: slice) -> None:
        table = PairTable(samples[rows], samples)
        for gram, kernel in zip(grams, kernels, strict=True):
            if isinstance(kernel, VectorKernel):
                gram[rows] = kernel.evaluate(table)

    with single_threaded_blas():
        if any(isinstance(kernel, VectorKernel) for kernel in kernels):
            run_all([partial(fill, rows) for rows in tiles(n_samples, _TILE_ROWS)], n_jobs)
        for gram, kernel in zip(grams, kernels, strict=True):
            if not isinstance(kernel, VectorKernel):
                gram[:] = checked_block(kernel, kernel.gram(samples), n_samples, n_samples)
    return grams


def checked_block(kernel: Kernel, block: np.ndarray, n_rows: int, n_columns: int) -> np.ndarray:
    """Return kernel values, or say what is wrong with them."""
    block = np.asarray(block)
    if block.shape != (n_rows, n_columns):
        raise ValueError(
            f"{_name(kernel)} returned shape {block.shape} for {n_rows} and {n_columns} samples; "
            f"it must return ({n_rows}, {n_columns})."
        )
    if not np.isfinite(block).all():
        raise ValueError(f"{_name(kernel)} returned NaN or infinity; kernel values must be finite numbers.")
    return block


def _name(kernel: Kernel) -> str:
    function = getattr(kernel, "function", None)
    return f"The kernel {getattr(function, '__name__', type(kernel).__name__)!r}"
