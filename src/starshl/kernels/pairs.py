"""Inner products and squared distances between two blocks of rows."""

from functools import cached_property

import numpy as np

from .._threads import tiles
from .._types import Rows
from ._distance_loops import turn_into_distances
from .rows import inner_products, squared_norms

__all__ = ["PairTable", "squared_distances"]

# Below this share of |a|^2 + |b|^2 a squared distance has lost its digits to cancellation.
_CANCELLATION = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}
_PAIRS_AT_ONCE = 256  # pairs of rows that are subtracted; a dense block, if one side is dense


class PairTable:
    """Inner products and squared distances between two blocks of rows, each computed at most once."""

    def __init__(self, A: Rows, B: Rows):
        self.A, self.B = A, B

    @cached_property
    def norms(self) -> tuple[np.ndarray, np.ndarray]:
        """Squared norms of the rows of A and of B."""
        return squared_norms(self.A), squared_norms(self.B)

    @cached_property
    def inner(self) -> np.ndarray:
        return inner_products(self.A, self.B)

    @cached_property
    def cosines(self) -> np.ndarray:
        """Cosines of the angles between rows, zero wherever a row is zero."""
        lengths = (np.sqrt(norms) for norms in self.norms)
        scales = (np.divide(1.0, own, out=np.zeros_like(own), where=own > 0) for own in lengths)
        rows, columns = (own.astype(self.inner.dtype) for own in scales)
        return self.inner * rows[:, None] * columns

    @cached_property
    def squared_distances(self) -> np.ndarray:
        return _as_distances(self.inner.copy(), self.A, self.B, self.norms)


def squared_distances(A: Rows, B: Rows, norms: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the squared distances between two blocks of rows whose squared norms are known."""
    return _as_distances(inner_products(A, B), A, B, norms)


def _as_distances(inner: np.ndarray, A: Rows, B: Rows, norms: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    threshold = _CANCELLATION[inner.dtype]
    if isinstance(A, np.ndarray) and isinstance(B, np.ndarray):
        turn_into_distances(inner, *norms, A, B, threshold)
        return inner
    both = norms[0][:, None] + norms[1]
    distances = (both - 2.0 * inner).astype(inner.dtype)
    first, second = np.nonzero(distances <= threshold * both)
    _recompute(distances, first, second, A, B)
    return distances


def _recompute(distances: np.ndarray, first: np.ndarray, second: np.ndarray, A: Rows, B: Rows) -> None:
    """Sum the squared differences of some pairs of rows directly, so that equal rows have distance zero."""
    for piece in tiles(len(first), _PAIRS_AT_ONCE):
        distances[first[piece], second[piece]] = squared_norms(A[first[piece]] - B[second[piece]])
