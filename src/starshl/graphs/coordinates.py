"""Coordinates in which rows are neighbors: centered, reduced to the leading principal directions."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse

from .._threads import single_threaded_blas
from .._types import Rows
from ..linalg import column_means, positive_peaks, principal_directions, project

__all__ = ["principal_coordinates"]

_LARGEST_COVARIANCE = 2048  # features; sparse rows with more of them take subspace iteration
_SPARE_DIRECTIONS = 14  # beyond those asked for, so that the last of them converge too
_N_ITERATIONS = 12  # of subspace iteration, each with a pass over the rows


def principal_coordinates(X: Rows, n_components: int) -> np.ndarray:
    """Return centered rows in float64, reduced to at most ``n_components`` principal directions, longest row 1.

    Rows with no more features than that are only centered. Sparse rows are never made dense. Weights of a neighbor
    graph do not depend on the unit, so the length 1 only keeps numbers in range.
    """
    largest = float(abs(X).max()) if X.shape[1] else 0.0
    if largest > 0 and not 1e-12 < largest < 1e12:  # squares of such entries could leave the range of their type
        X = X / X.dtype.type(largest)
    if X.shape[1] > n_components:
        directions = _directions(X, n_components)
        coordinates = project(X, directions, -(directions @ column_means(X))).astype(np.float64)
    else:
        coordinates = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
    coordinates = coordinates - coordinates.mean(axis=0)
    longest = float(np.sqrt(np.einsum("ij,ij->i", coordinates, coordinates).max(initial=0.0)))
    return np.ascontiguousarray(coordinates / (longest or 1.0))


def _directions(X: Rows, n_components: int) -> np.ndarray:
    if issparse(X) and X.shape[1] > _LARGEST_COVARIANCE:
        return _sparse_directions(X, n_components)
    directions = principal_directions(X, n_components)[0]
    # Equal rows differ in no direction; along any one, they stay at the same place.
    return directions if len(directions) else np.eye(1, X.shape[1])


def _sparse_directions(X: csr_array, n_components: int) -> np.ndarray:
    """Return the leading eigenvectors of the covariance of sparse rows as rows, by subspace iteration.

    The start is a fixed random subspace of the features, so that the order of the rows does not matter.
    """
    rows, means = X.astype(np.float64), column_means(X)
    n_tried = min(n_components + _SPARE_DIRECTIONS, *X.shape)
    basis = np.random.RandomState(0).standard_normal((X.shape[1], n_tried))
    with single_threaded_blas():
        for _ in range(_N_ITERATIONS):
            basis = np.linalg.qr(_times_scatter(rows, means, basis))[0]
        small = basis.T @ _times_scatter(rows, means, basis)
        _, vectors = np.linalg.eigh((small + small.T) / 2)
        return positive_peaks((basis @ vectors[:, ::-1][:, :n_components]).T)


def _times_scatter(rows: csr_array, means: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return (X - 1 m')' (X - 1 m') times the basis."""
    projected = rows @ basis - means @ basis
    return rows.T @ projected - np.outer(means, projected.sum(axis=0))
