"""Landmarks: a kernel mixture as a finite number of features, for more rows than a kernel matrix can have."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from .._threads import run_all, single_threaded_blas, tiles
from .._types import Rows
from ..triangles import clear_above_diagonal, factor_in_place, invert_in_place
from .bank import checked_block
from .base import Kernel
from .mix import KernelMix
from .pairs import PairTable, squared_distances
from .rows import squared_norms
from .vectors import VectorKernel

__all__ = ["LandmarkMap", "MixtureTo"]

_TILE = 256  # rows whose features one thread computes at a time
_PIECE = 512  # landmarks that they meet in one pass of the compiled loops
_BAND = 1024  # features that are computed together
# Share of the mean kernel diagonal that is added to the kernel matrix of the landmarks. Directions in which they vary
# less than that carry rounding errors of the kernel values rather than information.
_JITTER = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-11}
_LARGEST_JITTER = 0.1  # which a Mercer kernel never needs


class MixtureTo:
    r"""The kernel mixture :math:`k_\theta(x, z) = \sum_m \theta_m k_m(x, z)` between any rows and fixed ones.

    Parameters
    ----------
    kernels : fitted kernels
    weights : array of shape (n_kernels,); kernels of weight zero are not evaluated
    landmarks : the fixed rows z, or samples of any type that the kernels take
    """

    def __init__(self, kernels: Sequence[Kernel], weights: np.ndarray, landmarks: Rows):
        used = np.flatnonzero(weights).tolist()
        self.kernels = [kernels[m] for m in used]
        self.weights = np.asarray(weights, dtype=np.float64)[used]
        self.landmarks = landmarks
        self.n_landmarks = landmarks.shape[0]
        self._compiled: dict[np.dtype, _CompiledMixture] = {}

    def __call__(self, rows: Rows) -> np.ndarray:
        """Return the mixture, shape (n_rows, n_landmarks), in the precision of the rows."""
        dtype = np.dtype(rows.dtype if rows.dtype == np.float32 else np.float64)
        if KernelMix.covers(self.kernels, rows, self.landmarks):
            return self._in_precision(dtype)(rows)
        total = np.zeros((rows.shape[0], self.n_landmarks), dtype=dtype)
        table = PairTable(rows, self.landmarks)
        for kernel, weight in zip(self.kernels, self.weights, strict=True):
            if isinstance(kernel, VectorKernel):
                values = kernel.evaluate(table)
            else:
                values = checked_block(kernel, kernel(rows, self.landmarks), *total.shape)
            total += dtype.type(weight) * values.astype(dtype, copy=False)
        return total

    def _in_precision(self, dtype: np.dtype) -> _CompiledMixture:
        if dtype not in self._compiled:  # two threads may both compute it, with the same result
            self._compiled[dtype] = _CompiledMixture(
                self.kernels, self.weights, self.landmarks.astype(dtype, copy=False)
            )
        return self._compiled[dtype]


class _CompiledMixture:
    """The same by compiled loops; what they need to know of the landmarks is computed once."""

    def __init__(self, kernels: Sequence[Kernel], weights: np.ndarray, landmarks: Rows):
        self.landmarks = landmarks
        self.mix = KernelMix(kernels, landmarks.dtype)
        self.weighted = self.mix.weighted(weights)
        self.scales, self.norms = self.mix.scales(landmarks), squared_norms(landmarks)

    def __call__(self, rows: Rows) -> np.ndarray:
        total = np.empty((rows.shape[0], self.landmarks.shape[0]), dtype=self.mix.dtype)
        scales, norms = self.mix.scales(rows), squared_norms(rows)
        for piece in tiles(self.landmarks.shape[0], _PIECE):
            squared = squared_distances(rows, self.landmarks[piece], (norms, self.norms[piece]))
            total[:, piece] = self.mix.sum_between(squared, scales, self.scales.take(piece), self.weighted)
        return total


class LandmarkMap:
    r"""The features that a kernel mixture has on landmarks Z (Nystroem's method).

    .. math:: \phi(x) = L^{-1} k_\theta(Z, x), \qquad K_{ZZ} + \epsilon I = L L^\top,

    with a tiny :math:`\epsilon`. Between landmarks, inner products of features are the kernel; elsewhere, that of the
    projections onto what landmarks span. O(m^3) for m landmarks, then O(m^2 + m d) per row of d features.

    Parameters
    ----------
    kernels, weights, landmarks : see :class:`MixtureTo`
    precision : float32 or float64, that of the features; kernels are evaluated in that of the rows
    n_jobs : number of threads
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        weights: np.ndarray,
        landmarks: Rows,
        *,
        precision: DTypeLike = np.float32,
        n_jobs: int | None = None,
    ):
        self.mixture = MixtureTo(kernels, weights, landmarks)
        self.n_features = self.mixture.n_landmarks
        self.precision = np.dtype(precision)
        self.n_jobs = n_jobs
        self._set(_inverse_factor(self.mixture, _JITTER[self.precision], n_jobs))

    def _set(self, whitening: np.ndarray) -> None:
        self.whitening = whitening
        self._factor = whitening.astype(self.precision, copy=False)

    def features(self, rows: Rows) -> np.ndarray:
        """Return the features of rows, shape (n_rows, n_landmarks)."""
        features = np.empty((rows.shape[0], self.n_features), dtype=self.precision)

        def fill(tile: slice) -> None:
            kernel = self.mixture(rows[tile]).astype(self.precision, copy=False)
            for band in tiles(self.n_features, _BAND):
                features[tile, band] = kernel[:, : band.stop] @ self._factor[band, : band.stop].T

        with single_threaded_blas():
            run_all([partial(fill, tile) for tile in tiles(rows.shape[0], _TILE)], self.n_jobs)
        return features

    def transformed(self, lower: np.ndarray) -> LandmarkMap:
        r"""Return the map :math:`x \mapsto T \phi(x)` for a lower triangular T; it costs no more than this one."""
        other = copy(self)
        with single_threaded_blas():
            other._set(_product_of_lower(lower, self.whitening, self.n_jobs))
        return other

    def fold(self, coefficients: np.ndarray) -> np.ndarray:
        """Return what functions that are linear in the features, (n_features, n), have as coefficients of landmarks."""
        with single_threaded_blas():
            return self.whitening.T @ coefficients


def _gram(mixture: MixtureTo, n_jobs: int | None) -> np.ndarray:
    """Return the mixture between the landmarks in float64."""
    landmarks = mixture.landmarks
    if landmarks.dtype.kind == "f":
        landmarks = landmarks.astype(np.float64, copy=False)
        mixture = MixtureTo(mixture.kernels, mixture.weights, landmarks)
    gram = np.empty((mixture.n_landmarks, mixture.n_landmarks))

    def fill(rows: slice) -> None:
        gram[rows] = mixture(landmarks[rows])

    with single_threaded_blas():
        run_all([partial(fill, rows) for rows in tiles(len(gram), _TILE)], n_jobs)
    return gram


def _inverse_factor(mixture: MixtureTo, jitter: float, n_jobs: int | None) -> np.ndarray:
    """Return L^-1, with zeros above its diagonal, of the Cholesky factor L of the landmarks' kernel matrix."""
    while jitter < _LARGEST_JITTER:
        factor = _gram(mixture, n_jobs)
        factor.flat[:: len(factor) + 1] += jitter * (float(np.mean(factor.diagonal())) or 1.0)
        with single_threaded_blas():
            if factor_in_place(factor, n_jobs):
                invert_in_place(factor, n_jobs)
                clear_above_diagonal(factor)
                return factor
        jitter *= 10.0
    raise np.linalg.LinAlgError(
        f"The kernel matrix of {mixture.n_landmarks} landmarks is not positive semidefinite, even with "
        f"{_LARGEST_JITTER:g} of its diagonal added. Use Mercer kernels."
    )


def _product_of_lower(A: np.ndarray, B: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the product of two lower triangular matrices."""
    product = np.zeros_like(A)

    def fill(rows: slice, columns: slice) -> None:
        between = slice(columns.start, rows.stop)
        product[rows, columns] = A[rows, between] @ B[between, columns]

    pieces = tiles(len(A), _BAND)
    run_all(
        [partial(fill, rows, columns) for rows in pieces for columns in pieces if columns.start <= rows.start], n_jobs
    )
    return product
