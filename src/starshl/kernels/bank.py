"""GramBank: every kernel between all training rows, and kernel expansions over new rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from .._threads import run_all, single_threaded_blas, tiles
from ._bank_loops import accumulate_rows
from .base import Kernel
from .vectors import PairTable, VectorKernel

__all__ = ["GramBank", "compute_grams", "expand_over_rows"]

_TILE = 512  # rows; fixed, because BLAS sums depend on the shape of their blocks


class GramBank:
    """The Gram matrices of all kernels, shape (n_kernels, n_rows, n_rows), stored.

    Solvers need two things of it: the weighted sum of the matrices for one bit, and the product of every
    matrix with one vector of dual coefficients.
    """

    def __init__(self, grams: np.ndarray):
        self.grams = grams
        self.n_kernels, self.n_rows = grams.shape[:2]

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over the rows given."""
        weights = weights.astype(self.grams.dtype)
        if rows is None:
            flat = self.grams.reshape(self.n_kernels, -1)
            return (weights @ flat).reshape(self.n_rows, self.n_rows)
        combined = np.zeros((len(rows), len(rows)), dtype=self.grams.dtype)
        for weight, gram in zip(weights, self.grams, strict=True):
            if weight:
                combined += weight * gram[np.ix_(rows, rows)]
        return combined

    def expand(self, coefficients: np.ndarray) -> np.ndarray:
        """Return K_m @ coefficients for every kernel, shape (n_kernels, n_rows), summed in float64."""
        support = np.flatnonzero(coefficients)
        expansions = np.zeros((self.n_kernels, self.n_rows))
        for gram, expansion in zip(self.grams, expansions, strict=True):
            accumulate_rows(gram, support, coefficients[support], expansion)
        return expansions


def compute_grams(kernels: Sequence[Kernel], samples, n_jobs: int | None = None) -> np.ndarray:
    """Return the Gram matrices of all kernels, shape (n_kernels, n, n), in the precision of the samples."""
    n_samples = len(samples)
    dtype = samples.dtype if samples.dtype == np.float32 else np.float64
    grams = np.empty((len(kernels), n_samples, n_samples), dtype=dtype)

    def fill(rows: slice) -> None:
        table = PairTable(samples[rows], samples)
        for gram, kernel in zip(grams, kernels, strict=True):
            if isinstance(kernel, VectorKernel):
                gram[rows] = kernel.evaluate(table)

    with single_threaded_blas():
        if any(isinstance(kernel, VectorKernel) for kernel in kernels):
            run_all([partial(fill, rows) for rows in tiles(n_samples, _TILE)], n_jobs)
        for gram, kernel in zip(grams, kernels, strict=True):
            if not isinstance(kernel, VectorKernel):
                gram[:] = checked_block(kernel, kernel.gram(samples), n_samples, n_samples)
    return grams


def expand_over_rows(
    kernels: Sequence[Kernel],
    samples,
    support,
    weights: np.ndarray,
    coefficients: np.ndarray,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return sum_m weights[b, m] sum_s coefficients[b, s] k_m(support_s, x) for each sample x and bit b.

    Shape (n_samples, n_bits), in the precision of the samples.
    """
    dtype = samples.dtype if samples.dtype == np.float32 else np.float64
    columns = [(weights[:, m, None] * coefficients).T.astype(dtype) for m in range(len(kernels))]
    scores = np.zeros((len(samples), len(coefficients)), dtype=dtype)

    def fill(rows: slice) -> None:
        block = samples[rows]
        table = PairTable(block, support)
        for kernel, column in zip(kernels, columns, strict=True):
            if not np.any(column):
                continue
            if isinstance(kernel, VectorKernel):
                values = kernel.evaluate(table)
            else:
                values = checked_block(kernel, kernel(block, support), len(block), len(support))
            scores[rows] += values.astype(dtype, copy=False) @ column

    with single_threaded_blas():
        run_all([partial(fill, rows) for rows in tiles(len(samples), _TILE)], n_jobs)
    return scores


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
