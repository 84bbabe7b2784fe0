"""A Gaussian kernel bent by the neighbor graph of all training rows, labeled or not.

Unlabeled rows help through the kernel: functions that change quickly along the graph become expensive
(Sindhwani, Niyogi and Belkin 2005, "Beyond the point cloud").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, diags_array

from ..._common.lazy import library
from ..._common.validation import check_integer, check_number
from .distances import as_floats
from .kernel import Kernel, KernelSamples, MedianKernel
from .vectors import Gaussian, median_distance, merge_equal_rows

sklearn_neighbors = library("sklearn.neighbors")


@dataclass(frozen=True)
class GraphGaussian(MedianKernel):
    r"""A graph-deformed Gaussian, :math:`\tilde k(x, z) = k(x, z) - k_x^T (I + g L K)^{-1} g L k_z`.

    K is the Gaussian kernel between all distinct training rows, L the normalized Laplacian of their
    nearest-neighbor graph and g the ``strength``; :math:`k_x` holds the kernel between x and the training
    rows, so the same formula extends the kernel to new rows. :math:`\tilde k` is the kernel of the norm
    :math:`\|f\|^2 + g f^T L f`. It is divided by its mean diagonal over the training rows, because a strong
    graph shrinks it and an SVM's C would have to grow in step. Fitting takes O(n_rows^3) time and O(n_rows^2) memory.

    Parameters
    ----------
    factor : float, default=0.5
        Bandwidth of the Gaussian in median distances between training rows.
    n_neighbors : int, default=7
        Neighbors of a row in the graph; an edge weighs exp(-d^2 / (2 s^2)) with s the median of the
        distances to the farthest of them.
    strength : float, default=100.0
        How much more a function costs that is not smooth on the graph.
    """

    factor: float = 0.5
    n_neighbors: int = 7
    strength: float = 100.0

    def __post_init__(self) -> None:
        check_number(self.factor, "factor", low=0, strict=True)
        check_integer(self.n_neighbors, "n_neighbors", low=1)
        check_number(self.strength, "strength", low=0)

    def fit(
        self, samples: KernelSamples, sample_weight: np.ndarray | None = None, median: float | None = None
    ) -> FittedGraphGaussian:
        rows, weights = merge_equal_rows(samples, sample_weight)
        laplacian = _laplacian(rows, weights, self.n_neighbors)
        return FittedGraphGaussian(
            sigma=self.factor * (median or median_distance(samples, sample_weight)),
            strength=self.strength,
            rows=rows,
            row_weights=weights,
            edge_values=laplacian.data,
            edge_columns=laplacian.indices.astype(np.int64),
            edge_ends=laplacian.indptr.astype(np.int64),
        )

    def __call__(self, A: KernelSamples, B: KernelSamples) -> np.ndarray:
        raise TypeError("A GraphGaussian has no graph before fit; evaluate the kernel that fit returns.")


@dataclass(frozen=True)
class FittedGraphGaussian(Kernel):
    """The kernel that :meth:`GraphGaussian.fit` returns: distinct rows, sparse Laplacian and bandwidth."""

    sigma: float
    strength: float
    rows: np.ndarray
    row_weights: np.ndarray
    edge_values: np.ndarray
    edge_columns: np.ndarray
    edge_ends: np.ndarray

    def __post_init__(self) -> None:
        check_number(self.sigma, "sigma", low=0, strict=True)
        check_number(self.strength, "strength", low=0)
        if self.rows.ndim != 2 or self.row_weights.shape != (len(self.rows),):
            raise ValueError(f"rows has shape {self.rows.shape} and row_weights {self.row_weights.shape}.")
        if not all(np.isfinite(values).all() for values in (self.rows, self.row_weights, self.edge_values)):
            raise ValueError("rows, row_weights and edge_values must be finite numbers.")
        # Compiled sparse products trust the indices, so those of a damaged file must not reach them.
        self._sparse_laplacian.check_format(full_check=True)

    @property
    def largest_diagonal(self) -> float:  # type: ignore[override]  # depends on what was learned
        return self.scale  # a Gaussian has diagonal 1, and what is subtracted is positive semi-definite

    def __call__(self, A: KernelSamples, B: KernelSamples) -> np.ndarray:
        same = B is A
        A, B = as_floats(A), as_floats(B)
        dtype = np.result_type(A, B)
        A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
        gaussian = Gaussian(self.sigma)
        to_rows = gaussian(A, self.rows)
        from_rows = to_rows.T if same else gaussian(self.rows, B)
        # The correction has a row and a column for every training row: it meets the shorter side.
        if len(A) < len(B):
            subtracted = (to_rows @ self.correction) @ from_rows
        else:
            subtracted = to_rows @ (self.correction @ from_rows)
        return (self.scale * (gaussian(A, B) - subtracted)).astype(dtype)

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        return self.scale * self._unscaled_diagonal(np.asarray(samples, dtype=np.float64))

    def _unscaled_diagonal(self, samples: np.ndarray) -> np.ndarray:
        to_rows = Gaussian(self.sigma)(samples, self.rows)
        return 1.0 - np.einsum("ij,ij->i", to_rows @ self.correction, to_rows)

    @cached_property
    def scale(self) -> float:
        """The factor that makes the diagonal of the kernel 1 on average over the rows."""
        return 1.0 / float(np.average(self._unscaled_diagonal(self.rows), weights=self.row_weights))

    @property
    def _sparse_laplacian(self) -> csr_array:
        n_rows = len(self.rows)
        return csr_array((self.edge_values, self.edge_columns, self.edge_ends), shape=(n_rows, n_rows))

    @cached_property
    def correction(self) -> np.ndarray:
        """The symmetric matrix (I + g L K)^-1 g L."""
        n_rows = len(self.rows)
        laplacian = self.strength * self._sparse_laplacian
        system = laplacian @ Gaussian(self.sigma)(self.rows, self.rows)
        system[np.diag_indices(n_rows)] += 1.0
        correction = np.linalg.solve(system, laplacian.toarray())
        return (correction + correction.T) / 2


def _laplacian(rows: np.ndarray, weights: np.ndarray, n_neighbors: int) -> csr_array:
    """Return the symmetric normalized Laplacian; an edge counts as often as its rows' weights say."""
    n_rows = len(rows)
    n_neighbors = min(n_neighbors, n_rows - 1)
    if n_neighbors < 1:
        return csr_array((n_rows, n_rows))
    distances, neighbors = sklearn_neighbors.NearestNeighbors(n_neighbors=n_neighbors).fit(rows).kneighbors()
    width = float(np.median(distances[:, -1])) or 1.0
    values = np.exp(-0.5 * (distances / width) ** 2).ravel()
    first = np.repeat(np.arange(n_rows), n_neighbors)
    second = neighbors.ravel()
    edges = csr_array((values * weights[first] * weights[second], (first, second)), shape=(n_rows, n_rows))
    edges = edges.maximum(edges.T)
    degrees = edges.sum(axis=1)
    scale = np.divide(1.0, np.sqrt(degrees), out=np.zeros(n_rows), where=degrees > 0)
    normalized = -csr_array(edges.multiply(scale[:, None]).multiply(scale[None, :]))
    return csr_array(normalized + diags_array((degrees > 0).astype(np.float64)))
