"""Inner products and squared distances between two blocks of rows."""

from functools import cached_property

import numpy as np

from ._distance_loops import squared_distances

__all__ = ["PairTable"]

# Below this share of |a|^2 + |b|^2 a squared distance has lost its digits to cancellation.
_CANCELLATION = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


class PairTable:
    """Inner products and squared distances between two blocks of rows, each computed at most once."""

    def __init__(self, A: np.ndarray, B: np.ndarray):
        self.A, self.B = A, B

    @cached_property
    def norms(self) -> tuple[np.ndarray, np.ndarray]:
        """Squared norms of the rows of A and of B, in float64."""
        return tuple(np.einsum("ij,ij->i", rows, rows, dtype=np.float64) for rows in (self.A, self.B))

    @cached_property
    def inner(self) -> np.ndarray:
        return self.A @ self.B.T

    @cached_property
    def squared_distances(self) -> np.ndarray:
        distances = self.inner.copy()
        squared_distances(distances, *self.norms, self.A, self.B, _CANCELLATION[distances.dtype])
        return distances
