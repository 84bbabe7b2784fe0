"""Kernel expansions sum_m theta_m sum_s eta_s k_m(x_s, x) of all bits over new samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..._common.threads import run_all, single_threaded_blas, tiles
from ..._common.validation import Rows
from .distances import DistanceCache, PairTable, squared_distances_from_norms, squared_norms
from .kernel import Kernel, checked_block
from .mixture import FusedKernels, KernelMixture
from .vectors import VectorKernel
from .views import by_columns, reads_columns

# Tests replace both, so that a few rows take several tiles.
QUERY_TILE = 256  # rows that are encoded together
SUPPORT_TILE = 512  # rows that they meet at a time


def expand_over_rows(
    kernels: Sequence[Kernel],
    samples: np.ndarray,
    support: np.ndarray,
    weights: np.ndarray,
    coefficients: np.ndarray,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return sum_m weights[b, m] sum_s coefficients[b, s] k_m(support_s, x) for each sample x and bit b.

    Shape (n_samples, n_bits), in the precision of the samples.
    """
    dtype = samples.dtype if samples.dtype == np.float32 else np.float64
    used = np.flatnonzero(weights.any(axis=0)).tolist()
    kernels = [kernels[m] for m in used]
    columns = np.array([(weights[:, m, None] * coefficients).T for m in used], dtype=dtype)
    n_samples, n_support = samples.shape[0], support.shape[0]
    scores = np.zeros((n_samples, len(coefficients)), dtype=dtype)
    if n_support == 0 or len(used) == 0:
        return scores  # a user's function need not take an empty block
    if reads_columns(kernels):
        for group in by_columns(kernels):
            own = weights[:, [used[position] for position in group.positions]]
            rows = group.read(samples), group.read(support)
            scores += expand_over_rows(group.kernels, *rows, own, coefficients, n_jobs)
        return scores
    if FusedKernels.covers(kernels, samples, support):
        fill = _fused_expansion(kernels, samples, support, columns, scores)
    else:
        fill = _plain_expansion(kernels, samples, support, columns, scores)
    with single_threaded_blas():
        run_all([partial(fill, rows) for rows in tiles(n_samples, QUERY_TILE)], n_jobs)
    return scores


def _plain_expansion(
    kernels: Sequence[Kernel], samples: np.ndarray, support: np.ndarray, columns: np.ndarray, scores: np.ndarray
) -> Callable[[slice], None]:
    """Return a function that fills in the scores of some samples, one kernel after the other."""

    def fill(rows: slice) -> None:
        table = PairTable(samples[rows], support)
        for kernel, column in zip(kernels, columns, strict=True):
            if isinstance(kernel, VectorKernel):
                values = kernel.evaluate(table)
            else:
                values = checked_block(kernel, kernel(samples[rows], support), rows.stop - rows.start, len(support))
            scores[rows] += values.astype(scores.dtype, copy=False) @ column

    return fill


def _fused_expansion(
    kernels: Sequence[Kernel], samples: np.ndarray, support: np.ndarray, columns: np.ndarray, scores: np.ndarray
) -> Callable[[slice], None]:
    """Return a function that does the same by the compiled loops, on tiles that stay in the cache."""
    dtype = scores.dtype
    fused = FusedKernels(kernels, dtype)
    samples, support = samples.astype(dtype, copy=False), support.astype(dtype, copy=False)
    norms = squared_norms(support)
    scales = fused.scales(support, norms)
    columns = columns[fused.order]
    cache = DistanceCache.for_samples(samples, support, QUERY_TILE, SUPPORT_TILE)
    found = None if cache is None else cache.find(support)

    def distances(rows: slice, piece: slice, own_norms: np.ndarray) -> np.ndarray:
        known = None if cache is None or found is None else cache.between(rows, found[piece])
        if known is not None:
            return known
        return squared_distances_from_norms(samples[rows], support[piece], (own_norms, norms[piece]))

    def fill(rows: slice) -> None:
        block = samples[rows]
        own_norms = squared_norms(block)
        own_scales = fused.scales(block, own_norms)
        n_rows = rows.stop - rows.start
        buffer = np.empty(len(kernels) * n_rows * SUPPORT_TILE, dtype=dtype)
        for piece in tiles(support.shape[0], SUPPORT_TILE):
            squared = distances(rows, piece, own_norms)
            shape = len(kernels), n_rows, piece.stop - piece.start
            values = buffer[: np.prod(shape)].reshape(shape)
            fused.evaluate(squared, own_scales, scales.take(piece), values)
            n_nonzero = len(kernels) - fused.n_negligible(squared)
            for value, column in zip(values[:n_nonzero], columns, strict=False):
                scores[rows] += value @ column[piece]

    return fill


def expand_mixture(
    kernels: Sequence[Kernel],
    samples: Rows,
    support: Rows,
    weights: np.ndarray,
    coefficients: np.ndarray,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return sum_s coefficients[c, s] sum_m weights[m] k_m(support_s, x) for each sample x and column c.

    All columns share the weights, so the kernels are summed first and multiplied once. Shape
    (n_samples, n_columns), in the precision of the samples.
    """
    dtype = samples.dtype if samples.dtype == np.float32 else np.float64
    columns = np.ascontiguousarray(np.asarray(coefficients, dtype=dtype).T)
    scores = np.zeros((samples.shape[0], columns.shape[1]), dtype=dtype)
    if support.shape[0] == 0 or not np.any(weights):
        return scores  # a user's function need not take an empty block
    mixture = KernelMixture(kernels, weights, support)

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
