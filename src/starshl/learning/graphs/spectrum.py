"""Functions that vary slowly over a neighbor graph: its leading eigenvectors, and a basis that is nearly as good."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from ..._common.threads import run_all, single_threaded_blas, tiles
from ..linalg import positive_peaks
from .diffusion import DAMPING, trivial_direction
from .neighbor_graph import NeighborGraph

_DENSE_UP_TO = 400  # rows; ARPACK needs many more rows than eigenvectors
_TOLERANCE = 1e-6  # relative; the partitions of 1e-3 and of machine precision are nearly the same
_CACHE = "eigenpairs"
_DEGREE = 48  # of the polynomial: with 32, the last vectors are half as smooth; with 64, hardly smoother
_BASIS_TILE = 32  # vectors that are diffused together
_ORTHONORMAL_TILE = 2048  # rows
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
    but for the trivial one; the others are mixtures of further ones, and nearly as smooth. A Chebyshev polynomial of S
    stands for K^2, so that all vectors are diffused in the same few products with S. The start is fixed, and the graph
    keeps the result.
    """
    n_vectors = min(n_vectors, graph.n_rows - 1)
    cached: tuple[np.ndarray, np.ndarray] | None = graph.cache.get(_BASIS_CACHE)
    if cached is None or cached[1].shape[1] != n_vectors:
        cached = _compute_basis(graph, n_vectors)
        graph.cache[_BASIS_CACHE] = cached
    return cached


def _compute_basis(graph: NeighborGraph, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    trivial = trivial_direction(graph)[:, None]
    start = np.random.RandomState(0).standard_normal((graph.n_rows, n_vectors)).astype(np.float32)
    start -= trivial.astype(np.float32) @ (trivial.T @ start).astype(np.float32)
    matrix = graph.normalized.astype(np.float32)
    with single_threaded_blas():
        pieces = [np.ascontiguousarray(start[:, piece]) for piece in tiles(n_vectors, _BASIS_TILE)]
        vectors = np.concatenate(run_all([partial(_diffused_twice, matrix, piece) for piece in pieces]), axis=1)
        vectors = vectors.astype(np.float64)
        vectors -= trivial @ (trivial.T @ vectors)
        vectors = _orthonormal(vectors)
        small = vectors.T @ (graph.normalized @ vectors)
        values, turned = np.linalg.eigh((small + small.T) / 2)
        basis = positive_peaks((vectors @ turned[:, ::-1]).T).T
    return 1.0 / (1.0 - DAMPING * np.minimum(values[::-1], 1.0)), np.ascontiguousarray(basis, dtype=np.float32)


def _diffused_twice(matrix: csr_array, start: np.ndarray) -> np.ndarray:
    """Return the polynomial of the matrix that is nearest to (I - .99 S)^-2, times some vectors."""
    # The types of NumPy say that the function returns a number; it gets and returns an array.
    coefficients = chebinterpolate(lambda theta: (1.0 - DAMPING * theta) ** -2, _DEGREE)  # type: ignore[type-var]
    factors = np.asarray(coefficients, dtype=np.float32)
    before, now = start, matrix @ start
    total: np.ndarray = factors[0] * before + factors[1] * now
    for factor in factors[2:]:
        after = matrix @ now
        after *= np.float32(2)
        after -= before
        before, now = now, after
        total += factor * now
    return total


def _orthonormal(vectors: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of tall columns: rows in tiles first, which a cache can hold."""
    rows = tiles(len(vectors), _ORTHONORMAL_TILE)
    pieces = run_all([partial(np.linalg.qr, vectors[tile]) for tile in rows])
    ends = np.cumsum([len(triangle) for _, triangle in pieces])[:-1]
    turned = np.split(np.linalg.qr(np.concatenate([triangle for _, triangle in pieces]))[0], ends)
    return np.concatenate([own @ turn for (own, _), turn in zip(pieces, turned, strict=True)])


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
