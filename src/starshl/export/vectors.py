"""Projections, distances and Gaussian features of rows as parts of a graph."""

from __future__ import annotations

import numpy as np

from .graph import Value

__all__ = ["gaussian_expansion", "project", "squared_distances", "squared_norms"]


def project(rows: Value, components: np.ndarray, intercept: np.ndarray | float = 0.0) -> Value:
    """Return ``rows @ components.T + intercept``; see :func:`starshl.linalg.project`."""
    products = rows @ np.asarray(components).T
    return products + intercept if np.any(intercept) else products


def squared_norms(rows: Value) -> Value:
    """Return the squared norm of each row, shape (n, 1)."""
    return (rows * rows).sum(axis=1)


def squared_distances(rows: Value, others: np.ndarray) -> Value:
    """Return all squared distances from rows to fixed ones; see :func:`starshl.linalg.squared_distances`."""
    others = np.asarray(others, dtype=np.float64)
    origin = others.mean(axis=0)
    centered, others = rows - origin, others - origin
    distances = centered @ (-2.0 * others.T) + squared_norms(centered) + np.einsum("ij,ij->i", others, others)
    return distances.apply("Max", 0.0)


def gaussian_expansion(
    rows: Value, anchors: np.ndarray, scale: float, coefficients: np.ndarray, intercept: np.ndarray | float
) -> Value:
    r"""Return :math:`\sum_a c_{ba} \exp(-\|x - a\|^2 / scale) + \beta_b`, shape (n, n_bits)."""
    features = (squared_distances(rows, anchors) * (-1.0 / scale)).apply("Exp")
    return project(features, coefficients, intercept)
