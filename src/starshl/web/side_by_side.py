"""The same search by other methods: exact search over the kept vectors, and a baseline's codes of equal length."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import BaseHasher
from ..baselines import ITQ
from ..binarization.searches import ByCodes
from ..collection import Collection
from ..collection.prepared_rows import kept_width
from .jobs import RunningJob
from .searcher import Searcher

__all__ = ["Ranking", "SideBySide"]

_ROWS_AT_ONCE = 4096  # 32 MB if a vector has 2,000 float32 numbers
_MOST_BYTES = 2 << 30  # of vectors that are held in memory to compare with
_ROWS_TO_FIT = 5000  # keeps the fit of ITQ short, whatever the size of the collection


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ids that a method finds, nearest first, and how long it searched."""

    method: str
    about: str
    ids: list[int]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Vectors of one state of a collection, centered, so that single precision does for rows far from zero."""

    source: Collection
    state: tuple[str, int, int]
    ids: np.ndarray
    center: np.ndarray
    vectors: np.ndarray
    squared_norms: np.ndarray
    baseline: ByCodes


class SideBySide:
    """Other ways to search a collection that keeps vectors; prepared in the background, and anew when these change."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self._prepared: _Prepared | None = None
        self._lock = threading.Lock()

    @property
    def is_possible(self) -> bool:
        """Whether vectors are kept, few enough to hold in memory."""
        with self._searcher.opened() as collection:
            return collection.keeps is not None and len(collection) > 1 and _bytes_of(collection) <= _MOST_BYTES

    @property
    def is_ready(self) -> bool:
        """Whether all is prepared for the vectors as they are now."""
        prepared = self._prepared
        with self._searcher.opened() as collection:
            # A restored snapshot is another collection, whose state may look the same.
            return prepared is not None and prepared.source is collection and prepared.state == collection.vectors_state

    def prepare(self, job: RunningJob) -> dict[str, Any]:
        """Read all vectors, and fit the baseline on some of them."""
        with self._lock:
            if self.is_ready:
                return {}
            with self._searcher.opened() as collection:
                source, state, ids, n_bits = collection, collection.vectors_state, collection.ids, collection.n_bits
                vectors = _read(job, collection, ids)
            center = vectors.mean(axis=0, dtype=np.float64)
            vectors -= center.astype(np.float32)
            job.report("fitting ITQ")
            hasher = _baseline(vectors, n_bits)
            job.report("encoding")
            search = ByCodes(hasher, hasher.encode_database(vectors))
            norms = np.einsum("ij,ij->i", vectors, vectors)
            self._prepared = _Prepared(source, state, ids, center, vectors, norms, search)
        return {"baseline": "ITQ", "n_bits": hasher.n_bits_}

    def search(self, vector: np.ndarray, k: int, among: np.ndarray | None = None) -> list[Ranking]:
        """Rank items by exact distance and by the codes of the baseline; ``among`` holds the ids that may be found."""
        prepared = self._prepared
        if prepared is None:
            return []
        places = None if among is None else np.flatnonzero(np.isin(prepared.ids, among))
        if places is not None and not len(places):
            return []
        k = min(k, len(prepared.ids) if places is None else len(places))
        baseline, vector = prepared.baseline, vector - prepared.center
        about = f"{baseline.hasher.n_bits_} bits, learned without labels"
        return [
            _timed("Vectors", "exact search, no codes", prepared.ids, lambda: _nearest(prepared, vector, k, places)),
            _timed("ITQ", about, prepared.ids, lambda: baseline.nearest(vector[None], k, places)[0]),
        ]


def _bytes_of(collection: Collection) -> int:
    return 4 * (kept_width(collection.hasher) or 0) * len(collection)


def _read(job: RunningJob, collection: Collection, ids: np.ndarray) -> np.ndarray:
    """Return all vectors in single precision, which is enough for an order."""
    parts = []
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        job.report("reading vectors", start, len(ids))
        parts.append(collection.vectors(ids[start : start + _ROWS_AT_ONCE]).astype(np.float32))
    return np.concatenate(parts)


def _baseline(vectors: np.ndarray, n_bits: int) -> BaseHasher:
    chosen = np.random.default_rng(0).permutation(len(vectors))[:_ROWS_TO_FIT]
    rows = vectors[np.sort(chosen)]
    # ITQ has at most one bit per direction.
    rank = int(np.linalg.matrix_rank(rows - rows.mean(axis=0)))
    return ITQ(max(1, min(n_bits, rank)), random_state=0).fit(rows)


def _nearest(prepared: _Prepared, vector: np.ndarray, k: int, places: np.ndarray | None) -> np.ndarray:
    query = vector.astype(np.float32)
    vectors = prepared.vectors if places is None else prepared.vectors[places]
    norms = prepared.squared_norms if places is None else prepared.squared_norms[places]
    distances = norms - 2.0 * (vectors @ query)
    best = np.argpartition(distances, k - 1)[:k]
    best = best[np.lexsort((best, distances[best]))]
    return best if places is None else places[best]


def _timed(method: str, about: str, ids: np.ndarray, search: Callable[[], np.ndarray]) -> Ranking:
    started = time.perf_counter()
    places = search()
    return Ranking(method, about, ids[places].tolist(), 1000 * (time.perf_counter() - started))
