"""Landmarks: a kernel mixture as a finite number of features, for more rows than a kernel matrix can have."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from ..._common.threads import run_all, single_threaded_blas, tiles
from ..._common.validation import Rows
from ..linalg import clear_above_diagonal, factor_in_place, invert_in_place
from .kernel import Kernel
from .mixture import KernelMixture

_TILE = 256  # rows whose features one thread computes at a time
_BAND = 1024  # features that are computed together
# Share of the mean kernel diagonal that is added to the kernel matrix of the landmarks. Directions in which they vary
# less than that carry rounding errors of the kernel values rather than information.
_JITTER = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-11}
_LARGEST_JITTER = 0.1  # which a Mercer kernel never needs


class LandmarkMap:
    r"""The features that a kernel mixture has on landmarks Z (Nystroem's method).

    .. math:: \phi(x) = L^{-1} k_\theta(Z, x), \qquad K_{ZZ} + \epsilon I = L L^\top,

    with a tiny :math:`\epsilon`. Between landmarks, inner products of features are the kernel; elsewhere, that of the
    projections onto what landmarks span. O(m^3) for m landmarks, then O(m^2 + m d) per row of d features.

    Parameters
    ----------
    kernels, weights, landmarks : see :class:`KernelMixture`
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
        self.mixture = KernelMixture(kernels, weights, landmarks)
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


def _gram(mixture: KernelMixture, n_jobs: int | None) -> np.ndarray:
    """Return the mixture between the landmarks in float64."""
    landmarks = mixture.landmarks
    if landmarks.dtype.kind == "f":
        landmarks = landmarks.astype(np.float64, copy=False)
        mixture = KernelMixture(mixture.kernels, mixture.weights, landmarks)
    gram = np.empty((mixture.n_landmarks, mixture.n_landmarks))

    def fill(rows: slice) -> None:
        gram[rows] = mixture(landmarks[rows])

    with single_threaded_blas():
        run_all([partial(fill, rows) for rows in tiles(len(gram), _TILE)], n_jobs)
    return gram


def _inverse_factor(mixture: KernelMixture, jitter: float, n_jobs: int | None) -> np.ndarray:
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
