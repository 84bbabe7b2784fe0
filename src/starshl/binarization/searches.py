"""Ways to search the same rows: by vectors, by codes, and by distances estimated from codes and a float query."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._threads import tiles
from ..base import BaseHasher
from ..baselines.rabitq import RaBitQ, Sketch
from ..catalog import pack_inner
from ..codes import BinaryCodes
from ..index import ResidualIndex, make_index

__all__ = ["ByCodes", "ByEstimates", "ByVectors", "Search"]

# A block of distances stays below 100 MB for 100,000 items.
_QUERIES_PER_BLOCK = 100


class Search(Protocol):
    """Something that finds the nearest of the rows it was made of."""

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the k nearest rows, or of those ``among`` them, shape (n_queries, k)."""
        ...


class ByVectors:
    """Exact search by Euclidean distance, the reference of all others."""

    def __init__(self, X: np.ndarray) -> None:
        self._X = X
        self._all = NearestNeighbors(algorithm="brute").fit(X)

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        if among is None:
            return self._all.kneighbors(X, n_neighbors=k, return_distance=False)
        some = NearestNeighbors(algorithm="brute").fit(self._X[among])
        return among[some.kneighbors(X, n_neighbors=k, return_distance=False)]


class ByCodes:
    """Search of codes by the index of their hasher; equal distances are ordered by the scores of the query."""

    def __init__(self, hasher: BaseHasher, codes: BinaryCodes) -> None:
        self.hasher, self.codes = hasher, codes
        self.index = make_index(codes, hasher=hasher)

    @property
    def model_bytes(self) -> int:
        """Bytes of the arrays in the model file, which encodes queries."""
        return sum(array.nbytes for array in pack_inner(self.hasher, "")[1].values())

    @property
    def takes_vectors(self) -> bool:
        """Whether queries keep their full precision."""
        return isinstance(self.index, ResidualIndex)

    def queries(self, X: np.ndarray) -> Any:
        """Return rows as the index wants them: as codes, unless the hasher makes other queries."""
        encode = getattr(self.hasher, "encode_queries", self.hasher.encode)
        return encode(X)

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        queries = self.queries(X)
        scores = None if self.takes_vectors else self.hasher.decision_function(X)
        return self.index.search(queries, k, among=among, scores=scores).ids


class ByEstimates:
    """RaBitQ's estimates of the distances from float queries."""

    #: Two float16 numbers beside each code: its scale and its squared norm.
    EXTRA_BYTES = 4

    def __init__(self, X: np.ndarray, n_bits: int) -> None:
        # Squared norms near 1 fit into float16, and the order of distances does not depend on the unit.
        self._unit = max(float(np.sqrt(np.mean((X - X.mean(axis=0)) ** 2) * X.shape[1])), np.finfo(np.float32).tiny)
        rows = X / self._unit
        self._hasher = RaBitQ(n_bits, random_state=0).fit(rows)
        sketch = self._hasher.sketch(rows)
        self._items = Sketch(sketch.codes, _as_stored(sketch.scales), _as_stored(sketch.squared_norms))

    @property
    def model_bytes(self) -> int:
        """Bytes of the rotation and the center."""
        return int(self._hasher.components_.nbytes + self._hasher.mean_.nbytes)

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        among = np.arange(len(self._items)) if among is None else among
        found = np.empty((len(X), k), np.int64)
        for rows in tiles(len(X), _QUERIES_PER_BLOCK):
            distances = self._hasher.asymmetric_distances(X[rows] / self._unit, self._items)[:, among]
            first = np.argpartition(distances, k - 1, axis=1)[:, :k]
            order = np.take_along_axis(distances, first, axis=1).argsort(axis=1, kind="stable")
            found[rows] = among[np.take_along_axis(first, order, axis=1)]
        return found


def _as_stored(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.float16).astype(numbers.dtype)
