"""Which items of a lesson are neighbors, and the smooth functions over their graph; computed once and kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..graphs import NeighborGraph
from ..graphs.coordinates import principal_coordinates
from ..graphs.smooth_basis import restore_smooth_basis, smooth_basis
from .kept import KeptArrays
from .proposals import N_VECTORS

__all__ = ["N_COORDINATES", "N_NEIGHBORS", "Neighborhood"]

N_COORDINATES = 50  # as in docs/few_labels.md
N_NEIGHBORS = 7  # as in docs/few_labels.md
_NAME = "graph"


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """Principal coordinates of items, and the graph of neighbors in them, which holds its smooth basis."""

    coordinates: np.ndarray
    graph: NeighborGraph

    @classmethod
    def of_rows(cls, rows: np.ndarray, n_jobs: int | None) -> Self:
        """Find the neighbors of all rows, which takes time that grows with the square of their number."""
        coordinates = principal_coordinates(rows, N_COORDINATES)
        graph = NeighborGraph.of_rows(coordinates, N_NEIGHBORS, n_jobs=n_jobs)
        smooth_basis(graph, N_VECTORS)
        return cls(coordinates, graph)

    @classmethod
    def read(cls, kept: KeptArrays, n_rows: int) -> Self | None:
        """Return what an earlier lesson about the same rows has found; None if nothing usable is there."""
        arrays = kept.read(_NAME)
        if arrays is None:
            return None
        coordinates = arrays.pop("coordinates", np.empty(0))
        variances, vectors = arrays.pop("variances", np.empty(0)), arrays.pop("vectors", np.empty(0))
        graph = NeighborGraph.of_arrays(arrays, N_NEIGHBORS)
        if graph is None or graph.n_rows != n_rows:
            return None
        if coordinates.ndim != 2 or len(coordinates) != n_rows or coordinates.dtype != np.float64:
            return None
        if not np.isfinite(coordinates).all():
            return None
        return cls(coordinates, graph) if restore_smooth_basis(graph, N_VECTORS, variances, vectors) else None

    def keep(self, kept: KeptArrays) -> None:
        """Store all of it for the next lesson about the same rows."""
        variances, vectors = smooth_basis(self.graph, N_VECTORS)
        about = {"coordinates": self.coordinates, "variances": variances, "vectors": vectors}
        kept.write(_NAME, self.graph.arrays() | about)
