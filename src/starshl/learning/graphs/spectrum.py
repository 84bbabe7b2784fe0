"""Functions that vary slowly over a neighbor graph: its leading eigenvectors, and a basis that is nearly as good."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from ..._common.threads import run_all, single_threaded_blas
from ..linalg import positive_peaks
from .diffusion import DAMPING, diffuse
from .neighbor_graph import NeighborGraph

_DENSE_UP_TO = 400  # rows; ARPACK needs many more rows than eigenvectors
_TOLERANCE = 1e-6  # relative; the partitions of 1e-3 and of machine precision are nearly the same
_CACHE = "eigenpairs"
_N_PASSES = 2  # of diffusion: two linear systems per vector; one would leave more of what is not smooth
_BASIS_TOLERANCE = 0.03  # any smooth functions will do
_BASIS_CACHE = "smooth_basis"


def leading_eigenpairs(graph: NeighborGraph, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of S, descending, and their eigenvectors as columns; the graph keeps them.

    At most as many as the graph has rows. The entry of largest magnitude of each vector is positive.
    """
    n_pairs = min(n_pairs, graph.n_rows)
    values, vectors = graph.cache.get(_CACHE, (np.empty(0), None))
    if vectors is None or len(values) < n_pairs:
        values, vectors = _compute_eigenpairs(graph, n_pairs)
        graph.cache[_CACHE] = values, vectors
    return values[:n_pairs], vectors[:, :n_pairs]


def _compute_eigenpairs(graph: NeighborGraph, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    with single_threaded_blas():
        if graph.n_rows <= max(_DENSE_UP_TO, 2 * n_pairs):
            values, vectors = np.linalg.eigh(graph.normalized.toarray())
        else:
            values, vectors = _sparse_eigenpairs(graph, n_pairs)
    order = np.argsort(-values, kind="stable")[:n_pairs]
    return values[order], np.ascontiguousarray(positive_peaks(vectors[:, order].T).T)


def _sparse_eigenpairs(graph: NeighborGraph, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    # Any fixed start will do, except the root of the degrees: that is an eigenvector, and the search would end there.
    start = np.random.RandomState(0).standard_normal(graph.n_rows)
    try:
        return eigsh(graph.normalized, k=n_pairs, which="LA", v0=start, tol=_TOLERANCE)
    except ArpackNoConvergence as stopped:
        if len(stopped.eigenvalues) == 0:
            raise
        return stopped.eigenvalues, stopped.eigenvectors


def smooth_basis(graph: NeighborGraph, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return :math:`1 / (1 - .99 \theta)`, descending, and orthonormal vectors as columns, shape (n_rows, n_vectors).

    Random vectors are diffused over the graph twice, :math:`Q = \mathrm{orth}(K^2 \Omega)`, and S is diagonalized on
    their span: :math:`Q^T S Q = U \theta U^T`, vectors QU (Halko et al. 2011). Their first ones are eigenvectors of S
    but for the trivial one; the others are mixtures of further ones, and as smooth. Two linear systems per vector: at
    50,000 rows a tenth of the time of as many eigenvectors. The start is fixed, and the graph keeps the result.
    """
    n_vectors = min(n_vectors, graph.n_rows - 1)
    cached: tuple[np.ndarray, np.ndarray] | None = graph.cache.get(_BASIS_CACHE)
    if cached is None or cached[1].shape[1] != n_vectors:
        cached = _compute_basis(graph, n_vectors)
        graph.cache[_BASIS_CACHE] = cached
    return cached


def _compute_basis(graph: NeighborGraph, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    vectors = np.random.RandomState(0).standard_normal((graph.n_rows, n_vectors))
    with single_threaded_blas():
        for _ in range(_N_PASSES):
            columns = [np.ascontiguousarray(column) for column in vectors.T]
            vectors = np.stack(
                run_all([partial(diffuse, graph, column, _BASIS_TOLERANCE) for column in columns]), axis=1
            )
            vectors = np.linalg.qr(vectors)[0]
        small = vectors.T @ (graph.normalized @ vectors)
        values, turned = np.linalg.eigh((small + small.T) / 2)
        basis = positive_peaks((vectors @ turned[:, ::-1]).T).T
    return 1.0 / (1.0 - DAMPING * np.minimum(values[::-1], 1.0)), np.ascontiguousarray(basis, dtype=np.float32)


def restore_smooth_basis(graph: NeighborGraph, n_vectors: int, values: np.ndarray, vectors: np.ndarray) -> bool:
    """Let a graph keep a basis that was stored; False if these arrays cannot be its basis."""
    n_vectors = min(n_vectors, graph.n_rows - 1)
    fits = values.shape == (n_vectors,) and vectors.shape == (graph.n_rows, n_vectors)
    if not fits or values.dtype != np.float64 or vectors.dtype != np.float32:
        return False
    if not (np.isfinite(values).all() and np.isfinite(vectors).all()):
        return False
    graph.cache[_BASIS_CACHE] = values, vectors
    return True
