"""The leading eigenvectors of a neighbor graph: smooth coordinates in which clusters are compact."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from .._threads import single_threaded_blas
from ..linalg import positive_peaks
from .neighbor_graph import NeighborGraph

__all__ = ["leading_eigenpairs"]

_DENSE_UP_TO = 400  # rows; ARPACK needs many more rows than eigenvectors
_TOLERANCE = 1e-6  # relative; the partitions of 1e-3 and of machine precision are nearly the same
_CACHE = "eigenpairs"


def leading_eigenpairs(graph: NeighborGraph, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of S, descending, and their eigenvectors as columns; the graph keeps them.

    At most as many as the graph has rows. The entry of largest magnitude of each vector is positive.
    """
    n_pairs = min(n_pairs, graph.n_rows)
    values, vectors = graph.cache.get(_CACHE, (np.empty(0), None))
    if vectors is None or len(values) < n_pairs:
        values, vectors = _compute(graph, n_pairs)
        graph.cache[_CACHE] = values, vectors
    return values[:n_pairs], vectors[:, :n_pairs]


def _compute(graph: NeighborGraph, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
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
