"""The items of a lesson: their ids, the rows that they are compared by, and the graph of their neighbors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ..collection import Collection
from ..features import PreparedHasher
from ..graphs import NeighborGraph
from ..graphs.coordinates import principal_coordinates
from ..maps import map_items
from .proposals import prepare_choice

__all__ = ["LessonItems", "Progress"]

#: Called with the name of a stage, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]

_BATCH = 4096
_FEWEST = 2
_MAP = "lesson_map"


@dataclass(frozen=True, slots=True)
class LessonItems:
    """Parameters
    ----------
    ids : int array of shape (n_items,), ascending
    rows : float32 array of shape (n_items, n_features), prepared as the hasher of the collection prepares them
    graph : the neighbor graph of the rows
    """

    ids: np.ndarray
    rows: np.ndarray
    graph: NeighborGraph
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, collection: Collection, n_jobs: int | None, progress: Progress) -> Self:
        """Read the kept vectors of a collection and find the neighbors of each."""
        if collection.keeps is None:
            raise ValueError(
                "This collection keeps no vectors, so nothing is known about how its items resemble each other. "
                "A lesson needs a collection that keeps them. Make one with Collection.create(..., vectors='float16')."
            )
        ids = collection.ids
        if len(ids) < _FEWEST:
            raise ValueError(f"The collection has {len(ids)} items; a lesson needs two or more. Add items first.")
        rows = _prepared_rows(collection, ids, progress)
        progress("finding neighbors", 0, len(ids))
        graph = NeighborGraph.of_rows(rows, n_jobs=n_jobs)
        progress("finding neighbors", len(ids), len(ids))
        prepare_choice(graph)
        return cls(ids, rows, graph)

    def map(self, n_jobs: int | None) -> np.ndarray:
        """Return a place in the unit square for each item, computed once."""
        with self._lock:
            if _MAP not in self.graph.cache:
                start = principal_coordinates(self.rows, 2)
                start = np.pad(start, ((0, 0), (0, 2 - start.shape[1])))
                self.graph.cache[_MAP] = map_items(self.graph, start, n_jobs=n_jobs)
            places: np.ndarray = self.graph.cache[_MAP]
            return places

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Return where these ids stand among the items; refuse unknown ones."""
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        unknown = ids[self.ids[places] != ids]
        if len(unknown):
            raise KeyError(f"The id {unknown[0]} is not among the items of this lesson.")
        return places


def _prepared_rows(collection: Collection, ids: np.ndarray, progress: Progress) -> np.ndarray:
    hasher = collection.hasher
    parts = []
    for start in range(0, len(ids), _BATCH):
        progress("reading vectors", start, len(ids))
        vectors = collection.vectors(ids[start : start + _BATCH])
        prepared = hasher.prepare(vectors) if isinstance(hasher, PreparedHasher) else vectors
        dense = prepared.toarray() if hasattr(prepared, "toarray") else np.asarray(prepared)
        parts.append(dense.astype(np.float32))
    progress("reading vectors", len(ids), len(ids))
    return np.concatenate(parts)
