"""Kernel expansions sum_m theta_m sum_s eta_s k_m(x_s, x) of all bits over new samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..._common.threads import run_all, single_threaded_blas, tiles
from ..._common.validation import Rows
from .distances import DistanceCache, PairTable, squared_distances_from_norms, squared_norms
from .kernel import Kernel, checked_block
from .mixture import FusedKernels, KernelMixture, norm_range
from .vectors import VectorKernel
from .views import ColumnGroup, by_columns, reads_columns

# Tests replace both, so that a few rows take several tiles.
QUERY_TILE = 256  # rows that are encoded together
SUPPORT_TILE = 512  # rows that they meet at a time


class BitExpansion:
    """The functions f_b(x) = sum_m weights[b, m] sum_s coefficients[b, s] k_m(support_s, x), a mixture for each bit.

    What does not depend on x is computed once, in the precision of the samples.
    """

    def __init__(self, kernels: Sequence[Kernel], support: Rows, weights: np.ndarray, coefficients: np.ndarray):
        used = np.flatnonzero(weights.any(axis=0)).tolist()
        self.kernels, self.weights = [kernels[m] for m in used], weights[:, used]
        self.support, self.coefficients = support, coefficients
        self.parts: list[tuple[ColumnGroup, BitExpansion]] = []
        if support.shape[0] and reads_columns(self.kernels):
            for group in by_columns(self.kernels):
                own = self.weights[:, group.positions]
                self.parts.append((group, BitExpansion(group.kernels, group.read(support), own, coefficients)))
        self.norms = squared_norms(support) if FusedKernels.covers(self.kernels) else None
        self.norm_range = norm_range(np.empty(0) if self.norms is None else self.norms)
        self.compiled: dict[np.dtype, _CompiledBits] = {}

    def __call__(self, samples: Rows, n_jobs: int | None = None) -> np.ndarray:
        """Return the values for each sample, (n_samples, n_bits), in the precision of the samples."""
        dtype = np.dtype(np.float32 if samples.dtype == np.float32 else np.float64)
        scores = np.zeros((samples.shape[0], len(self.coefficients)), dtype=dtype)
        if self.support.shape[0] == 0 or not self.kernels:
            return scores  # a user's function need not take an empty block
        if self.parts:
            for group, part in self.parts:
                scores += part(group.read(samples), n_jobs)
            return scores
        fill = self._compiled(samples, scores) or self._plain(samples, scores)
        with single_threaded_blas():
            run_all([partial(fill, rows) for rows in tiles(samples.shape[0], QUERY_TILE)], n_jobs)
        return scores

    def _columns(self, dtype: np.dtype) -> np.ndarray:
        """Return what the values of each kernel are multiplied by, (n_kernels, n_support, n_bits)."""
        return np.array([(own[:, None] * self.coefficients).T for own in self.weights.T], dtype=dtype)

    def _plain(self, samples: Rows, scores: np.ndarray) -> Callable[[slice], None]:
        """Return a function that fills in the scores of some samples, one kernel after the other."""
        columns, support = self._columns(scores.dtype), self.support

        def fill(rows: slice) -> None:
            table = PairTable(samples[rows], support)
            for kernel, column in zip(self.kernels, columns, strict=True):
                if isinstance(kernel, VectorKernel):
                    values = kernel.evaluate(table)
                else:
                    n_rows = rows.stop - rows.start
                    values = checked_block(kernel, kernel(samples[rows], support), n_rows, support.shape[0])
                scores[rows] += values.astype(scores.dtype, copy=False) @ column

        return fill

    def _compiled(self, samples: Rows, scores: np.ndarray) -> Callable[[slice], None] | None:
        """Return a function that does the same by the compiled loops, None if they do not compute all of it exactly."""
        if self.norms is None:
            return None
        is_narrow = np.float32 in (samples.dtype, self.support.dtype)
        if is_narrow and FusedKernels.needs_float64(self.kernels, squared_norms(samples), self.norm_range):
            return None
        dtype = scores.dtype
        if dtype not in self.compiled:  # two threads may both compute it, with the same result
            self.compiled[dtype] = _CompiledBits(self, self.norms, self._columns(dtype))
        return self.compiled[dtype].filling(samples.astype(dtype, copy=False), scores)


class _CompiledBits:
    """The same by compiled loops, in one precision, on tiles that stay in the cache."""

    def __init__(self, expansion: BitExpansion, norms: np.ndarray, columns: np.ndarray):
        self.fused = FusedKernels(expansion.kernels, columns.dtype, expansion.support.shape[0])
        self.support, self.norms = expansion.support.astype(columns.dtype, copy=False), norms
        self.scales = self.fused.scales(self.support, norms)
        self.columns = columns[self.fused.order]

    def filling(self, samples: Rows, scores: np.ndarray) -> Callable[[slice], None]:
        """Return a function that fills in the scores of some samples."""
        cache = DistanceCache.for_samples(samples, self.support, QUERY_TILE, SUPPORT_TILE)
        found = None if cache is None else cache.find(self.support)

        def distances(rows: slice, piece: slice, own_norms: np.ndarray) -> np.ndarray:
            known = None if cache is None or found is None else cache.between(rows, found[piece])
            if known is not None:
                return known
            return squared_distances_from_norms(samples[rows], self.support[piece], (own_norms, self.norms[piece]))

        def fill(rows: slice) -> None:
            fused, n_kernels = self.fused, self.fused.n_kernels
            block = samples[rows]
            own_norms = squared_norms(block)
            own_scales = fused.scales(block, own_norms)
            n_rows = rows.stop - rows.start
            buffer = np.empty(n_kernels * n_rows * SUPPORT_TILE, dtype=scores.dtype)
            for piece in tiles(self.support.shape[0], SUPPORT_TILE):
                squared = distances(rows, piece, own_norms)
                shape = n_kernels, n_rows, piece.stop - piece.start
                values = buffer[: np.prod(shape)].reshape(shape)
                fused.evaluate(squared, own_scales, self.scales.take(piece), values)
                n_nonzero = n_kernels - fused.n_negligible(squared)
                for value, column in zip(values[:n_nonzero], self.columns, strict=False):
                    scores[rows] += value @ column[piece]

        return fill


class MixtureExpansion:
    """The functions f_c(x) = sum_s coefficients[c, s] sum_m weights[m] k_m(support_s, x), one mixture for all of them.

    The kernels are summed first and multiplied once. What does not depend on x is computed once.
    """

    def __init__(self, kernels: Sequence[Kernel], support: Rows, weights: np.ndarray, coefficients: np.ndarray):
        self.coefficients = coefficients
        is_empty = support.shape[0] == 0 or not np.any(weights)  # a user's function need not take an empty block
        self.mixture = None if is_empty else KernelMixture(kernels, weights, support)
        self.columns: dict[np.dtype, np.ndarray] = {}

    def __call__(self, samples: Rows, n_jobs: int | None = None) -> np.ndarray:
        """Return the values for each sample, (n_samples, n_functions), in the precision of the samples."""
        dtype = np.dtype(np.float32 if samples.dtype == np.float32 else np.float64)
        scores = np.zeros((samples.shape[0], len(self.coefficients)), dtype=dtype)
        mixture = self.mixture
        if mixture is None:
            return scores
        if dtype not in self.columns:
            self.columns[dtype] = np.ascontiguousarray(self.coefficients.T, dtype=dtype)
        columns = self.columns[dtype]

        def fill(rows: slice) -> None:
            for piece, values in mixture.pieces(samples[rows]):
                scores[rows] += values @ columns[piece]

        with single_threaded_blas():
            run_all([partial(fill, rows) for rows in tiles(samples.shape[0], QUERY_TILE)], n_jobs)
        return scores


def expand_grams(blocks: np.ndarray, weights: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return what :func:`expand_over_rows` does, given the kernels as ``blocks``, (n_kernels, n_samples, n_support)."""
    scores = np.zeros((blocks.shape[1], len(coefficients)), dtype=blocks.dtype)
    for block, own in zip(blocks, weights.T, strict=True):
        scores += block @ (own[:, None] * coefficients).T.astype(block.dtype)
    return scores


def kernel_values(kernels: Sequence[Kernel], A: Rows, B: Rows) -> np.ndarray:
    """Return every kernel between two blocks of samples, (n_kernels, n_A, n_B); inner products are computed once."""
    values = np.empty((len(kernels), A.shape[0], B.shape[0]))
    for group in by_columns(kernels):
        first, second = group.read(A), group.read(B)
        table = PairTable(first, second)
        for position, kernel in zip(group.positions, group.kernels, strict=True):
            values[position] = kernel.evaluate(table) if isinstance(kernel, VectorKernel) else kernel(first, second)
    return values
