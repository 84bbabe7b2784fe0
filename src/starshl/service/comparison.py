"""Search by other methods (exact over the kept vectors, and by codes of a baseline), and how well each of them does."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..collection.answers import Item
from ..collection.collection import Collection
from ..collection.options import Filters, SearchOptions
from ..evaluation.benchmark import ByCodes
from ..hashers.base import BaseHasher
from ..hashers.baselines.itq import ITQ
from ..index.choice import make_index
from .jobs import RunningJob
from .searcher import Searcher

_ROWS_AT_ONCE = 4096  # 32 MB if a vector has 2,000 float32 numbers
_MOST_BYTES = 2 << 30  # of vectors that are held in memory to compare with
_ROWS_TO_FIT = 5000  # keeps the fit of ITQ short, whatever the size of the collection
_QUERIES = 300  # a share then has a standard error of at most .03, and a person can wait for it
_K = 10  # precision and recall at 10
_FEWEST_ITEMS = 50  # with labels: with fewer, a share has a standard error of more than .07 or so
_LEAST_AT_BEST = 0.9  # below it, the sizes of classes decide about the figures, not the order of hits


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


class OtherMethods:
    """Other ways to search a collection that keeps vectors; prepared in the background, and anew when these change."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self._prepared: _Prepared | None = None
        self._lock = threading.Lock()

    @property
    def is_possible(self) -> bool:
        """Whether vectors are kept, few enough to hold in memory."""
        with self._searcher.opened() as collection:
            return collection.vector_dtype is not None and len(collection) > 1 and _bytes_of(collection) <= _MOST_BYTES

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
            # The first search compiles its loops, which is no part of its time.
            search.nearest(vectors[:1], 1)
            search.nearest(vectors[:1], 1, np.arange(1))
            norms = np.einsum("ij,ij->i", vectors, vectors)
            self._prepared = _Prepared(source, state, ids, center, vectors, norms, search)
        return {"baseline": "ITQ", "n_bits": hasher.n_bits_}

    def search(self, vector: np.ndarray, k: int, among: np.ndarray | None = None) -> list[Ranking]:
        """Rank items by exact distance and by the codes of the baseline; ``among`` holds the ids that may be found."""
        prepared = self._prepared
        if prepared is None:
            return []
        positions = None if among is None else np.flatnonzero(np.isin(prepared.ids, among))
        if positions is not None and not len(positions):
            return []
        k = min(k, len(prepared.ids) if positions is None else len(positions))
        baseline, vector = prepared.baseline, vector - prepared.center
        about = f"{baseline.hasher.n_bits_} bits, learned without labels"
        return [
            _timed("Vectors", "exact search, no codes", prepared.ids, lambda: _nearest(prepared, vector, k, positions)),
            _timed("ITQ", about, prepared.ids, lambda: baseline.nearest(vector[None], k, positions)[0]),
        ]


def _bytes_of(collection: Collection) -> int:
    return 4 * (collection.hasher.vector_width or 0) * len(collection)


def _read(job: RunningJob, collection: Collection, ids: np.ndarray) -> np.ndarray:
    """Return all vectors in single precision, which is enough for an order."""
    parts = []
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        job.report("reading vectors", start, len(ids))
        parts.append(collection.vectors(ids[start : start + _ROWS_AT_ONCE]).astype(np.float32))
    return np.concatenate(parts)


def _baseline(vectors: np.ndarray, n_bits: int) -> BaseHasher:
    rows = vectors[np.sort(np.random.default_rng(0).permutation(len(vectors))[:_ROWS_TO_FIT])]
    # ITQ has at most one bit per direction.
    rank = int(np.linalg.matrix_rank(rows - rows.mean(axis=0)))
    return ITQ(max(1, min(n_bits, rank)), random_state=0).fit(rows)


def _nearest(prepared: _Prepared, vector: np.ndarray, k: int, positions: np.ndarray | None) -> np.ndarray:
    query = vector.astype(np.float32)
    vectors = prepared.vectors if positions is None else prepared.vectors[positions]
    norms = prepared.squared_norms if positions is None else prepared.squared_norms[positions]
    distances = norms - 2.0 * (vectors @ query)
    best = np.argpartition(distances, k - 1)[:k]
    best = best[np.lexsort((best, distances[best]))]
    return best if positions is None else positions[best]


def _timed(method: str, about: str, ids: np.ndarray, search: Callable[[], np.ndarray]) -> Ranking:
    started = time.perf_counter()
    positions = search()
    return Ranking(method, about, ids[positions].tolist(), 1000 * (time.perf_counter() - started))


@dataclass(frozen=True, slots=True)
class MethodQuality:
    """A method: the share of its hits with the label of the query, and of the nearest vectors that it finds."""

    method: str
    precision: float
    recall: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """What was measured.

    ``n_queries`` of the ``n_items`` that have a given label were searched for among them, with ``k`` hits each.
    ``n_from_label`` of these items are stored under a code that follows from their given label, and ``n_others`` items
    without a given label took no part. ``by_chance`` is the precision of random hits, and ``at_best`` the one that a
    perfect order would have: ``n_small`` queries are of classes with fewer than ``k`` others.
    """

    n_queries: int
    n_items: int
    n_from_label: int
    n_others: int
    k: int
    by_chance: float
    at_best: float
    n_small: int
    methods: list[MethodQuality]

    @property
    def is_meaningful(self) -> bool:
        """Whether there are enough labels for the figures to say something about other items."""
        return self.n_items >= _FEWEST_ITEMS and self.at_best >= _LEAST_AT_BEST


def measure_quality(job: RunningJob, collection: Collection, others: OtherMethods) -> Quality:
    """Search for items with a given label among each other.

    Queries are encoded from their vectors, as those of a stranger would be. Where the codes of stored items follow from
    given labels, codes of their vectors alone are measured, too: a query cannot know the label of its own class, and
    the difference is what the labels of the items add.
    """
    items = _labeled(collection)
    if len(items) < 2 or len({item.label for item in items}) < 2:
        raise ValueError("Quality needs labeled items of two classes or more. Label some first.")
    if collection.vector_dtype is None:
        raise ValueError("Quality needs the vectors of items, and this collection keeps none.")
    if not others.is_possible:
        raise ValueError("Quality needs all vectors in memory, and those of this collection take more than 2 GB.")
    others.prepare(job)
    k, ids = min(_K, len(items) - 1), np.array([item.id for item in items], np.int64)
    queries = ids[np.sort(np.random.default_rng(0).permutation(len(ids))[:_QUERIES])].tolist()
    n_from_label = sum(item.code_from == "label" for item in items)
    found = _found(job, collection, others, ids, queries, k + 1)
    if n_from_label:
        found["Codes of vectors alone"] = _by_vectors_alone(job, collection, ids, queries, k + 1)
    if "predict" in collection.hasher.supports and not collection.hasher.holds_clusters:
        found["Class, then vectors"] = _by_class(collection, others, items, queries, k + 1)
    for method, lists in found.items():
        # The query itself is nearest of all.
        found[method] = [[hit for hit in hits if hit != own][:k] for hits, own in zip(lists, queries, strict=True)]
    label_of = {item.id: item.label for item in items}
    methods = [_measured(method, found[method], found["Vectors"], queries, label_of) for method in sorted(found)]
    # How many others have the label of each query, which is left out of its own answer.
    sizes = Counter(label_of.values())
    alike = np.array([sizes[label_of[query]] - 1 for query in queries])
    return Quality(
        n_queries=len(queries),
        n_items=len(items),
        n_from_label=n_from_label,
        n_others=len(collection) - len(items),
        k=k,
        by_chance=float(alike.mean() / (len(items) - 1)),
        at_best=float(np.minimum(alike, k).mean() / k),
        n_small=int((alike < k).sum()),
        methods=methods,
    )


def _found(
    job: RunningJob, collection: Collection, others: OtherMethods, ids: np.ndarray, queries: list[int], k: int
) -> dict[str, list[list[int]]]:
    """Return what each method finds for some items among those with these ids, a list of ids per query."""
    by_codes = SearchOptions(k=k, rescore=False, filters=Filters.of(among=ids))
    methods = {"Codes": by_codes, "Codes, then vectors": replace(by_codes, rescore=None)}
    found: dict[str, list[list[int]]] = {}
    for done, query in enumerate(queries):
        job.report("searching", done, len(queries))
        vector = collection.vectors([query])
        lists = {
            method: [hit.id for hit in collection.answer(options, vector)[0]] for method, options in methods.items()
        }
        lists |= {ranking.method: ranking.ids for ranking in others.search(vector[0], k, ids)}
        for method, hits in lists.items():
            found.setdefault(method, []).append(hits)
    return found


def _labeled(collection: Collection) -> list[Item]:
    """Return the items with a given label; what a lesson predicts for others is not among the labels."""
    ids = list(collection.labels())
    return collection.get(ids) if ids else []


def _by_vectors_alone(
    job: RunningJob, collection: Collection, ids: np.ndarray, queries: list[int], k: int
) -> list[list[int]]:
    """Return what codes find that follow from the vectors of items, whatever their labels."""
    hasher = collection.hasher.without_steps()
    packed = []
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        job.report("encoding", start, len(ids))
        packed.append(hasher.encode_database(collection.vectors(ids[start : start + _ROWS_AT_ONCE])).packed)
    index = make_index(hasher.as_codes(np.concatenate(packed)), ids, hasher=hasher)
    return [hits.tolist() for hits in index.search(hasher.encode_queries(collection.vectors(queries)), k).ids]


def _by_class(
    collection: Collection, others: OtherMethods, items: list[Item], queries: list[int], k: int
) -> list[list[int]]:
    """Return what needs no codes: items with the label that is predicted for the query, nearest first, then others."""
    ids = np.array([item.id for item in items], np.int64)
    ids_of: dict[object, list[int]] = {}
    for item in items:
        ids_of.setdefault(item.label, []).append(item.id)
    found = []
    for query in queries:
        vector = collection.vectors([query])
        members = np.array(ids_of.get(collection.predict(vector).labels[0], []), np.int64)
        of_class = others.search(vector[0], k, members)
        first = of_class[0].ids if of_class else []
        nearest = others.search(vector[0], k, ids)[0].ids
        found.append([*first, *(each for each in nearest if each not in first)][:k])
    return found


def _measured(
    method: str, lists: list[list[int]], nearest: list[list[int]], queries: list[int], label_of: Mapping[int, object]
) -> MethodQuality:
    right = [label_of[hit] == label_of[query] for query, hits in zip(queries, lists, strict=True) for hit in hits]
    shared = [len({*hits} & {*exact}) / len(exact) for hits, exact in zip(lists, nearest, strict=True)]
    return MethodQuality(method, float(np.mean(right)), None if method == "Vectors" else float(np.mean(shared)))
