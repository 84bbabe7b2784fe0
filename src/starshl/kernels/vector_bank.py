"""VectorBank: kernels on vectors, computed when asked for from one stored table of squared distances.

Storing every kernel takes n_kernels matrices of memory, and reading them back takes longer than computing them anew.
Stored is one matrix, in the precision of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from .._threads import run_all, single_threaded_blas, tiles
from ._fused_loops import add_sparse_products, combine_symmetric, count_beyond, evaluate_each
from .base import Kernel
from .pairs import PairTable
from .vectors import Gaussian, NormalizedLinear, NormalizedPolynomial

__all__ = ["KernelMix", "VectorBank"]

_TILE = 512  # rows; fixed, because BLAS sums depend on the shape of their blocks
_FEW_ROWS = 64  # where every kernel of a tile is kept
_SQUARINGS = 4  # in a row
_NORM_RANGE = 100.0  # of float32 rows
_SPARSE = 0.02  # share of entries below which products skip the zeros
# A Gaussian of e^-cutoff or less is no different from zero beside a diagonal of one.
_CUTOFF = {np.dtype(np.float32): 23.0, np.dtype(np.float64): 46.0}


class KernelMix:
    """A list of kernels, and weighted sums of them, in the form that the compiled loops want."""

    def __init__(self, kernels: Sequence[Kernel], dtype: np.dtype):
        self.n_kernels = len(kernels)
        self.dtype = np.dtype(dtype)
        self.dots = [m for m, kernel in enumerate(kernels) if not isinstance(kernel, Gaussian)]
        self.biases = np.array([getattr(kernels[m], "bias", 0.0) for m in self.dots], dtype=self.dtype)
        self.degrees = np.array([getattr(kernels[m], "degree", 1) for m in self.dots], dtype=np.int64)
        largest = float(np.finfo(self.dtype).max)
        rates = {
            m: min(0.5 / kernel.sigma / kernel.sigma, largest)
            for m, kernel in enumerate(kernels)
            if isinstance(kernel, Gaussian)
        }
        self.gaussians = sorted(rates, key=rates.get)
        self.rates = np.array([rates[m] for m in self.gaussians], dtype=self.dtype)
        self.squarings = _squarings([rates[m] for m in self.gaussians])
        self.cutoff = self.dtype.type(_CUTOFF[self.dtype])

    @staticmethod
    def covers(kernels: Sequence[Kernel], *blocks: np.ndarray) -> bool:
        """Tell whether the compiled loops know all these kernels and compute them exactly enough on these rows.

        Dot products are recovered from distances, which costs digits where norms differ widely; float32 has few.
        """
        if not all(type(kernel) in (Gaussian, NormalizedLinear, NormalizedPolynomial) for kernel in kernels):
            return False
        is_narrow = any(block.dtype == np.float32 for block in blocks)
        if not is_narrow or all(isinstance(kernel, Gaussian) for kernel in kernels):
            return True
        norms = np.concatenate([np.einsum("ij,ij->i", block, block, dtype=np.float64) for block in blocks])
        positive = norms[norms > 0]
        return len(positive) == 0 or positive.max() <= _NORM_RANGE**2 * positive.min()

    def scales(self, norms: np.ndarray) -> np.ndarray:
        """Return what normalizes each dot-product kernel, shape (n_dots, n_rows)."""
        shifted = norms + self.biases[:, None].astype(np.float64)
        scales = np.divide(1.0, np.sqrt(shifted), out=np.zeros_like(shifted), where=shifted > 0)
        return scales.astype(self.dtype)

    @property
    def order(self) -> list[int]:
        """The positions of the kernels in the order of :meth:`evaluate`."""
        return [*self.dots, *self.gaussians]

    def evaluate(self, squared, row_norms, column_norms, column_scales) -> np.ndarray:
        """Return every kernel over a block of squared distances, (n_kernels, n_rows, n_columns), in ``order``."""
        values = np.empty((self.n_kernels, *squared.shape), dtype=self.dtype)
        row_norms, column_norms = row_norms.astype(self.dtype), column_norms.astype(self.dtype)
        evaluate_each(
            squared,
            row_norms,
            column_norms,
            self.scales(row_norms.astype(np.float64)),
            column_scales,
            *self.weighted(np.ones(self.n_kernels)),
            values,
        )
        return values

    def weighted(self, weights: np.ndarray) -> tuple:
        """Return the arguments of the compiled loops that say which sum is asked for."""
        weights = np.asarray(weights, dtype=self.dtype)
        dots = (self.biases, self.degrees, weights[self.dots])
        return dots, (self.rates, self.squarings, weights[self.gaussians]), self.cutoff


def _squarings(rates: list[float]) -> np.ndarray:
    """Return for each rate how often the Gaussian before it must be squared to give its own, or -1.

    Squaring doubles the relative error, so after a few squarings an exponential is computed anew.
    """
    steps = np.full(len(rates), -1, dtype=np.int64)
    n_squared = 0
    for m in range(1, len(rates)):
        power = np.log2(rates[m] / rates[m - 1])
        if abs(power - round(power)) < 1e-9 and n_squared + power <= _SQUARINGS:
            steps[m] = round(power)
        n_squared = n_squared + steps[m] if steps[m] >= 0 else 0
    return steps


class VectorBank:
    """The kernels between all training rows; see :class:`starshl.kernels.bank.GramBank` for what solvers ask of it."""

    def __init__(self, kernels: Sequence[Kernel], rows: np.ndarray, n_jobs: int | None = None):
        self.mix = KernelMix(kernels, rows.dtype)
        self.n_kernels, self.n_rows = len(kernels), len(rows)
        self.n_jobs = n_jobs
        norms = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        self.norms, self.scales = norms.astype(rows.dtype), self.mix.scales(norms)
        self.squared = self._squared_distances(rows)

    def _squared_distances(self, rows: np.ndarray) -> np.ndarray:
        squared = np.empty((self.n_rows, self.n_rows), dtype=rows.dtype)
        blocks = tiles(self.n_rows, _TILE)

        def fill(first: slice, second: slice) -> None:
            block = PairTable(rows[first], rows[second]).squared_distances
            squared[first, second] = block
            if first != second:
                squared[second, first] = block.T

        pairs = [(first, second) for n, first in enumerate(blocks) for second in blocks[n:]]
        with single_threaded_blas():
            run_all([partial(fill, *pair) for pair in pairs], self.n_jobs)
        return squared

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over the rows given."""
        squared, norms, scales = self.squared, self.norms, self.scales
        if rows is not None:
            squared, norms = squared[np.ix_(rows, rows)], norms[rows]
            scales = np.ascontiguousarray(scales[:, rows])
        combined = np.empty_like(squared)
        combine_symmetric(squared, norms, scales, *self.mix.weighted(weights), combined)
        return combined

    def expand(self, coefficients: np.ndarray) -> np.ndarray:
        """Return K_m @ c for every kernel and every row c of coefficients, (n, n_kernels, n_rows), in float64."""
        columns = np.ascontiguousarray(np.asarray(coefficients, dtype=np.float64).T)
        expansions = np.zeros((self.n_kernels, self.n_rows, columns.shape[1]))
        threshold = np.exp(-float(self.mix.cutoff))

        def fill(rows: slice) -> None:
            blocks = self.mix.evaluate(self.squared[rows], self.norms[rows], self.norms, self.scales)
            for m, values in zip(self.mix.order, blocks, strict=True):
                if m in self.mix.gaussians and count_beyond(values, threshold) < _SPARSE * values.size:
                    add_sparse_products(values, columns, threshold, expansions[m, rows])
                else:
                    expansions[m, rows] = values.astype(np.float64) @ columns

        with single_threaded_blas():
            run_all([partial(fill, rows) for rows in tiles(self.n_rows, _FEW_ROWS)], self.n_jobs)
        return expansions.transpose(2, 0, 1)
