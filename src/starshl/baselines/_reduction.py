"""Rows centered and, where there are many features, reduced to principal components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from .._threads import single_threaded_blas
from ..linalg import principal_directions, project

__all__ = ["CenteredRows", "centered_rows", "principal_rows"]


@dataclass(frozen=True, slots=True)
class CenteredRows:
    """Training rows as ``axes @ (x - mean)``, in float64."""

    rows: np.ndarray
    axes: np.ndarray
    mean: np.ndarray

    def in_features(
        self, directions: np.ndarray, offsets: np.ndarray | float, dtype: DTypeLike
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return components and intercept that give ``directions @ row + offsets`` from the features themselves."""
        with single_threaded_blas():
            components = directions @ self.axes
            return components.astype(dtype), (offsets - components @ self.mean).astype(dtype)


def centered_rows(X: np.ndarray, n_components: int | None) -> CenteredRows:
    """Center X; if it has more than ``n_components`` features, keep that many principal components."""
    if n_components is not None and X.shape[1] > n_components:
        return principal_rows(X, n_components)
    mean = X.mean(axis=0, dtype=np.float64)
    return CenteredRows(X - mean, np.eye(X.shape[1]), mean)


def principal_rows(X: np.ndarray, n_components: int) -> CenteredRows:
    """Center X and keep its leading principal components, fewer than asked for if the rank is lower."""
    mean = X.mean(axis=0, dtype=np.float64)
    axes, _ = principal_directions(X, n_components)
    with single_threaded_blas():
        intercept = -(axes @ mean)
    return CenteredRows(project(X.astype(np.float64), axes, intercept), axes, mean)
