"""Inner products and squared distances between two blocks of rows."""

from functools import cached_property

import numpy as np

from ._distance_loops import turn_into_distances

__all__ = ["PairTable", "squared_distances", "squared_norms"]

# Below this share of |a|^2 + |b|^2 a squared distance has lost its digits to cancellation.
_CANCELLATION = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


def squared_norms(rows: np.ndarray) -> np.ndarray:
    """Return the squared norms of rows, in float64."""
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


class PairTable:
    """Inner products and squared distances between two blocks of rows, each computed at most once."""

    def __init__(self, A: np.ndarray, B: np.ndarray):
        self.A, self.B = A, B

    @cached_property
    def norms(self) -> tuple[np.ndarray, np.ndarray]:
        """Squared norms of the rows of A and of B."""
        return squared_norms(self.A), squared_norms(self.B)

    @cached_property
    def inner(self) -> np.ndarray:
        return self.A @ self.B.T

    @cached_property
    def squared_distances(self) -> np.ndarray:
        return _as_distances(self.inner.copy(), self.A, self.B, self.norms)


def squared_distances(A: np.ndarray, B: np.ndarray, norms: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the squared distances between two blocks of rows whose squared norms are known."""
    return _as_distances(A @ B.T, A, B, norms)


def _as_distances(inner: np.ndarray, A: np.ndarray, B: np.ndarray, norms: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    turn_into_distances(inner, *norms, A, B, _CANCELLATION[inner.dtype])
    return inner
