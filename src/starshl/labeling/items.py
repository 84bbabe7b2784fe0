"""The items of a lesson: their ids, the rows that they are compared by, and the graph of their neighbors."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from .._common.bundle import read_bundle, write_bundle
from .._common.files import array_digest
from .._version import __version__
from ..collection.collection import Collection
from ..data.features.step import Step
from ..exceptions import BundleFormatError, MissingExtraError, UnknownIdError
from ..learning.graphs.layout import map_items
from ..learning.graphs.neighbor_graph import NeighborGraph, principal_coordinates
from ..learning.graphs.spectrum import restore_smooth_basis, smooth_basis
from .outliers import draw_in_outliers

N_COORDINATES = 50  # as in docs/few_labels.md
N_NEIGHBORS = 7  # as in docs/few_labels.md
#: Smooth functions over the graph, of which choices know its covariance. More would tell smaller groups apart, and
#: every proposal would take longer.
N_VECTORS = 128
_BATCH = 4096  # items read at a time
_FEWEST = 2
# What kinds of picture features count in distances, where all others count 1: neighbors by shapes share a class more
# often than neighbors by pixels. No measurement of these two values is on record.
_VIEW_WEIGHTS = {"pixels": 0.3, "color": 0.5}
# Raise it whenever neighbors or maps are computed in another way: those in caches are then computed again.
_METHOD = 3
_GRAPH, _MAP = "graph", "map"  # names in the cache
_log = logging.getLogger(__name__)

#: Called with the name of a stage, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


def cache_key(ids: np.ndarray, rows: np.ndarray, settings: Mapping[str, object]) -> str:
    """Return a digest of everything that neighbors and maps are computed from."""
    about = json.dumps({"version": __version__, **settings}, sort_keys=True)
    return array_digest({"ids": ids, "rows": rows}, head=about)


class ArrayCache:
    """What a lesson computes of its items once: files in the folder of the collection, all of the same rows."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key

    def read(self, name: str) -> dict[str, np.ndarray] | None:
        """Return the arrays of a file; None if there is none, or not of these rows."""
        try:
            header, arrays = read_bundle(self._path(name))
        except (OSError, BundleFormatError):
            return None
        return arrays if header.get("origin") == self._key else None

    def write(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Write arrays to a file that is complete or absent; a folder without room or right is no error."""
        path = self._path(name)
        try:
            for left in self._folder.glob(f".{path.name}.*.partial"):  # by a process that was killed
                left.unlink(missing_ok=True)
            write_bundle(path, {"kind": "lesson", "origin": self._key}, arrays)
        except OSError as error:
            _log.warning("%s could not be kept: it is computed again at the next start", path, exc_info=error)

    def _path(self, name: str) -> Path:
        return self._folder / f".lesson-{name}.star"


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
    def read(cls, cache: ArrayCache, n_rows: int) -> Self | None:
        """Return what an earlier lesson about the same rows has found; None if nothing usable is there."""
        arrays = cache.read(_GRAPH)
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

    def store(self, cache: ArrayCache) -> None:
        """Store all of it for the next lesson about the same rows."""
        variances, vectors = smooth_basis(self.graph, N_VECTORS)
        about = {"coordinates": self.coordinates, "variances": variances, "vectors": vectors}
        cache.write(_GRAPH, self.graph.arrays() | about)


@dataclass(frozen=True, slots=True)
class LessonItems:
    """What a lesson knows of the items of a collection.

    Parameters
    ----------
    ids : int array of shape (n_items,), ascending
    rows : float32 array of shape (n_items, n_features), prepared as the hasher of the collection prepares them, with
        outliers drawn in
    coordinates : array of shape (n_items, n_axes), the principal components in which items are neighbors
    graph : the neighbor graph of the coordinates
    cache : where the folder of the collection keeps what was computed of these rows
    """

    ids: np.ndarray
    rows: np.ndarray
    coordinates: np.ndarray
    graph: NeighborGraph
    cache: ArrayCache
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, collection: Collection, n_jobs: int | None, progress: Progress) -> Self:
        """Read the kept vectors of a collection and find the neighbors of each."""
        if collection.vector_dtype is None:
            raise ValueError(
                "This collection keeps no vectors, so a lesson cannot tell which items are similar. A lesson needs a "
                "collection that keeps them. Make one with Collection.create(..., vectors='float16')."
            )
        ids = collection.ids
        if len(ids) < _FEWEST:
            raise ValueError(f"The collection has {len(ids)} items; a lesson needs two or more. Add items first.")
        rows = _prepared_rows(collection, ids, progress)
        progress("finding neighbors", 0, len(ids))
        views = _views(collection)
        cache = ArrayCache(collection.folder, cache_key(ids, rows, _settings(views)))
        found = Neighborhood.read(cache, len(ids))
        if found is None:
            found = Neighborhood.of_rows(balanced_views(rows, views), n_jobs)
            found.store(cache)
        progress("finding neighbors", len(ids), len(ids))
        return cls(ids, rows, found.coordinates, found.graph, cache)

    def map(self, n_jobs: int | None) -> np.ndarray:
        """Return coordinates of each item in the unit square, computed once."""
        with self._lock:
            if _MAP not in self.graph.cache:
                places = (self.cache.read(_MAP) or {}).get("places")
                if places is None or places.shape != (len(self.ids), 2) or places.dtype != np.float32:
                    first = self.coordinates[:, :2]
                    start = np.pad(first, ((0, 0), (0, 2 - first.shape[1])))
                    places = map_items(self.graph, start, n_jobs=n_jobs)
                    self.cache.write(_MAP, {"places": places})
                self.graph.cache[_MAP] = places
            found: np.ndarray = self.graph.cache[_MAP]
            return found

    def neighbors(self) -> list[dict[str, list[int] | list[float]]]:
        """Return positions and distances of the nearest others of each item, equally many for all of them."""
        weights, n_others = self.graph.weights, min(N_NEIGHBORS, len(self.ids) - 1)
        found: list[dict[str, list[int] | list[float]]] = []
        for position in range(len(self.ids)):
            joined = weights.indices[weights.indptr[position] : weights.indptr[position + 1]]
            if len(joined) < n_others:  # an outlier, whose edges are too weak to stand in the graph
                joined = np.delete(np.arange(len(self.ids)), position)
            distances = np.linalg.norm(self.coordinates[joined] - self.coordinates[position], axis=1)
            order = np.argsort(distances, kind="stable")[:n_others]
            found.append({"ids": joined[order].tolist(), "distances": distances[order].tolist()})
        return found

    def positions(self, ids: np.ndarray) -> np.ndarray:
        """Return the positions of these ids among the items; refuse unknown ones."""
        positions = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        unknown = ids[self.ids[positions] != ids]
        if len(unknown):
            raise UnknownIdError(int(unknown[0]), "among the items of this lesson")
        return positions


def _settings(views: Mapping[str, slice]) -> dict[str, object]:
    """Return all that neighbors and maps depend on besides the rows."""
    columns = {name: [view.start, view.stop, _VIEW_WEIGHTS.get(name, 1.0)] for name, view in views.items()}
    return {"method": _METHOD, "n_neighbors": N_NEIGHBORS, "n_coordinates": N_COORDINATES, "views": columns}


def _prepared_rows(collection: Collection, ids: np.ndarray, progress: Progress) -> np.ndarray:
    hasher = collection.hasher.without_steps()
    parts, largest = [], np.finfo(np.float32).max
    for start in range(0, len(ids), _BATCH):
        progress("reading vectors", start, len(ids))
        vectors = collection.vectors(ids[start : start + _BATCH])
        prepared = hasher.prepare(vectors)
        dense = prepared.toarray() if hasattr(prepared, "toarray") else np.asarray(prepared)
        parts.append(np.clip(dense, -largest, largest).astype(np.float32))
    progress("reading vectors", len(ids), len(ids))
    return draw_in_outliers(np.concatenate(parts))[0]


def _views(collection: Collection) -> Mapping[str, slice]:
    """Return which columns of the prepared rows are which kind of picture features; nothing for other items."""
    steps = collection.hasher.fitted_steps
    if steps:
        last = steps[-1]
    else:
        try:
            embedder = collection.embedder
        except (MissingExtraError, ValueError):  # its library, or a step that no file holds, is not at hand
            return {}
        last = None if embedder is None else embedder.steps[-1]
    return last.views if isinstance(last, Step) else {}


def balanced_views(rows: np.ndarray, views: Mapping[str, slice]) -> np.ndarray:
    """Return rows in which every kind of features is centered and counts by its weight, not by how many it has."""
    if not views or max(view.stop for view in views.values()) != rows.shape[1]:
        return rows
    balanced = rows - rows.mean(axis=0)
    for name, columns in views.items():
        part = balanced[:, columns]
        size = float(np.sqrt(np.einsum("ij,ij->", part, part) / len(part))) or 1.0
        part *= np.float32(_VIEW_WEIGHTS.get(name, 1.0) / size)
    return balanced
