"""Searcher: one collection, asked by many at a time.

All numerics of the service are here and below. Searches and encodings that arrive together run as one batch; changes
take turns in one thread, which gets items that are encoded already.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..client.answers import CollectionInfo, Written
from ..codes.binary import BinaryCodes
from ..collection.answers import Item, Prediction, Preview, SearchResult
from ..collection.collection import Collection
from ..collection.filters import slow_filter_warning
from ..collection.guesses import Order
from ..collection.options import ALL_ITEMS, Filters, SearchOptions
from ..exceptions import UnknownIdError
from .batching import Batcher, chain_future, map_future
from .encoding import Classification, EncodedRows, RowsKind, can_predict, check_predicts, check_vectors, predictions
from .errors import BusyError, ConflictError, UnknownError, worded
from .lock import ReadersWriterLock
from .observer import Observer
from .writes import NewItems, WriteKey, Writer

_ROWS_AT_ONCE = 256  # in a batch: enough to share a scan, few enough to keep the wait short
# What a search may cost to be small or middling, where 1 is the cost of a hit; one thread is kept for small searches,
# and one for these and middling ones. Whoever asks for much waits for others who do, and keeps nobody else waiting.
_SMALL, _MIDDLING = 500, 50_000
_LEVELS = (0, 1, 2)
_PER_QUERY, _PER_RADIUS, _PER_FILTER, _PER_EXPLANATION = 10, 1_000, 2_000, 10
#: Vectors as they come: lists of numbers, or what an embedder made of texts and pictures.
VectorsLike = Sequence[Sequence[float]] | np.ndarray


@dataclass(frozen=True, slots=True)
class _Query:
    vectors: np.ndarray | None
    items: list[int] | None

    def __len__(self) -> int:
        return len(self.items or ()) if self.vectors is None else len(self.vectors)


class Searcher:
    """A collection that is open for searches and changes by any number of threads.

    Methods that take long return futures; the others answer at once.

    Parameters
    ----------
    folder : path of the collection, or an open one, which stays open
    name : str, default=None
        What to call it; the name of the folder if None.
    read_only : bool, default=False
    n_jobs : int, default=None
        Threads of one search.
    observer : Observer, default=None
        Is told of batches and changes.

    Attributes
    ----------
    writer : Writer
        Changes items and fields, and runs what must not meet a change; items are added here, where they are encoded.
    """

    def __init__(
        self,
        folder: str | Path | Collection,
        *,
        name: str | None = None,
        read_only: bool = False,
        n_jobs: int | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._is_shared = isinstance(folder, Collection)
        self.folder = folder.folder if isinstance(folder, Collection) else Path(folder)
        self.name = self.folder.resolve().name if name is None else name
        self.read_only = read_only
        self._n_jobs = n_jobs
        self._observer = Observer() if observer is None else observer
        self._collection = folder if isinstance(folder, Collection) else self._open()
        # Known without asking the collection, which may be closed for a moment while others wait.
        self._hasher = self._collection.hasher
        self._lock = ReadersWriterLock()
        self._close_lock = threading.Lock()
        self._is_closed = False
        self._searches: Batcher[tuple[bool, SearchOptions], _Query, list[SearchResult]] = Batcher(
            self._search_group, levels=_LEVELS, largest_group=_ROWS_AT_ONCE
        )
        self._encodings: Batcher[RowsKind, np.ndarray, EncodedRows] = Batcher(
            self._encode_group, levels=_LEVELS, largest_group=_ROWS_AT_ONCE
        )
        self.writer = Writer(self.opened, self.name, self._observer, read_only=read_only)

    def __repr__(self) -> str:
        mode = ", read_only=True" if self.read_only else ""
        return f"{type(self).__name__}({str(self.folder)!r}, name={self.name!r}{mode})"

    @property
    def is_ready(self) -> bool:
        """Whether requests are answered at once: neither closed nor about to be restored."""
        return not (self._is_closed or self._lock.has_writer)

    @property
    def n_waiting(self) -> int:
        """How many searches wait."""
        return self._searches.n_waiting

    @contextmanager
    def opened(self) -> Iterator[Collection]:
        """Yield the collection, which is not replaced inside the block."""
        with self._lock.shared():
            if self._is_closed:
                raise BusyError("The service is about to stop. Try again in a moment.")
            yield self._collection

    def info(self) -> CollectionInfo:
        """Return what the collection is and can do."""
        with self.opened() as collection:
            hasher = collection.hasher
            return CollectionInfo(
                name=self.name,
                n_items=len(collection),
                n_bits=collection.n_bits,
                method=hasher.method_name,
                n_columns=hasher.vector_width,
                vectors=collection.vector_dtype,
                label_kind=collection.label_kind,
                fields=collection.fields,
                classes=collection.classes,
                predicts=can_predict(hasher),
                probabilities=can_predict(hasher, "predict_proba"),
                writable=not self.read_only,
                kind=collection.kind,
                title=collection.title,
                hit_probabilities="probability" in hasher.supports,
                knows_probabilities=hasher.class_part.fit_summary.knows_probabilities,
            )

    def __len__(self) -> int:
        with self.opened() as collection:
            return len(collection)

    def warm_up(self) -> None:
        """Search for, encode and classify a vector, so that no request waits for loops that compile on first use."""
        with self.opened() as collection:
            hasher, has_items = collection.hasher, len(collection) > 0
        width = hasher.vector_width
        if width is None:
            return
        rows = [[0.0] * width]
        futures: list[Future[Any]] = [self.encode(rows), self._encoded("database", self._checked(rows))]
        if has_items:
            options = (SearchOptions(k=1), SearchOptions(k=1, rescore=False), SearchOptions(k=1, radius=0))
            futures += [self.search(rows, options=each) for each in options]
        if can_predict(hasher):
            futures.append(self.predict(rows, probabilities="predict_proba" in hasher.supports))
        for future in futures:
            future.result()

    def search(
        self,
        vectors: VectorsLike | None = None,
        items: Sequence[int] | None = None,
        options: SearchOptions | None = None,
    ) -> Future[list[SearchResult]]:
        """Search for vectors, or for stored items by id: one :class:`SearchResult` per query."""
        options = SearchOptions() if options is None else options
        if (vectors is None) == (items is None):
            raise ValueError("Give either vectors or items: rows to search for, or ids of stored items.")
        query = _Query(None if vectors is None else self._checked(vectors), None if items is None else list(items))
        return self._searches.submit((vectors is None, options), query, len(query), _level(_cost(len(query), options)))

    def recommend(
        self, like: Sequence[int], unlike: Sequence[int] = (), options: SearchOptions | None = None
    ) -> Future[list[SearchResult]]:
        """Search for what is like some stored items and unlike others, by their kept vectors; leave these items out."""
        options = SearchOptions() if options is None else options
        known = {*like, *unlike}
        with self.opened() as collection:
            row = _recommendation_vector(collection, like, unlike)
        k = options.n_nearest
        found = self.search(row[None], options=replace(options, k=k + len(known)))
        return map_future(found, lambda results: [results[0].without(known, k)])

    def encode(self, vectors: VectorsLike) -> Future[BinaryCodes]:
        """Encode vectors as queries."""
        return map_future(self._encoded("encode", self._checked(vectors)), lambda encoded: encoded.codes)

    def predict(
        self, vectors: VectorsLike, *, probabilities: bool = False, reject: float | None = None
    ) -> Future[Prediction]:
        """Predict the labels of vectors; None where they are novel, if some are to be rejected."""
        rows = self._checked(vectors)
        # A lesson replaces the hasher on its own. While the collection is swapped, nobody may wait for it here.
        if self.is_ready:
            self._refresh()
        kind = Classification(probabilities, novelty=reject is not None)
        check_predicts(self._hasher, kind)
        return map_future(self._encoded(kind, rows), partial(predictions, reject=reject))

    def get(self, ids: Sequence[int], *, vectors: bool = False) -> list[Item]:
        """Return items by id, with their kept vectors if asked for."""
        with self.opened() as collection:
            return collection.get(list(ids), vectors=vectors)

    def preview(self, item: int) -> Preview:
        """Return the small picture of an item."""
        with self.opened() as collection:
            found = collection.preview(item)
        if found is None:
            raise UnknownError(f"The item {item} has no preview. Previews are stored when a picture is imported.")
        return found

    def list_items(
        self, after: int | None = None, limit: int = 100, filters: Filters = ALL_ITEMS, order: Order = "id"
    ) -> tuple[list[Item], int | None]:
        """Return the first items in an order, of those that come after the item ``after`` and pass filters.

        The second value is where to go on, None if no more follow. If ``after`` is no longer among the items, the list
        goes on behind its id, or begins anew if it is not by id.
        """
        with self.opened() as collection:
            ids = collection.passing(filters, order)
            if order == "id":
                start = 0 if after is None else int(np.searchsorted(ids, after, side="right"))
            else:
                start = 0 if after is None else int(np.append(np.flatnonzero(ids == after), -1)[0]) + 1
            wanted = ids[start : start + limit]
            # By the ids, of which all items may be gone by now.
            more = int(wanted[-1]) if start + len(wanted) < len(ids) else None
            return existing_items(collection, wanted), more

    def count(self, filters: Filters) -> int:
        """Return how many items pass filters."""
        with self.opened() as collection:
            return len(collection.passing(filters))

    def notes(self, filters: Filters) -> list[str]:
        """Return what could be asked better: labels that nobody has, and fields that are not declared and so slow."""
        if filters.where is None and filters.labels is None:
            return []
        with self.opened() as collection:
            names = sorted({*filters.fields} - {*collection.fields})
            n_items, labels = len(collection), collection.unknown_labels_note(filters)
        notes = [] if labels is None else [labels]
        return [*notes, worded(slow_filter_warning(names, n_items))] if names else notes

    def add(self, items: NewItems, key: WriteKey | None = None) -> Future[Written]:
        """Store new items."""
        return self._put(items, key, replace=False)

    def upsert(self, items: NewItems, key: WriteKey | None = None) -> Future[Written]:
        """Store items under given ids, replacing those that exist."""
        return self._put(items, key, replace=True)

    def replace_folder(self, replace: Callable[[], None]) -> Future[None]:
        """Call a function that replaces the folder while it is not in use, and open the collection again."""
        if self._is_shared:
            raise ConflictError("This collection is open elsewhere in this process. Close it, then serve its folder.")

        def swap() -> None:
            with self._lock.exclusive():
                self._collection.close()
                try:
                    replace()
                finally:
                    self._collection = self._open()
            self._refresh()

        return self.writer.run_exclusively(swap)

    def close(self) -> None:
        """Answer what waits, finish the changes that were accepted, and close the collection."""
        with self._close_lock:
            if self._is_closed:
                return
            self._searches.close()
            self._encodings.close()
            self.writer.close()
            with self._lock.exclusive():
                self._is_closed = True
                if not self._is_shared:
                    self._collection.close()

    def _open(self) -> Collection:
        return Collection(self.folder, read_only=self.read_only, n_jobs=self._n_jobs)

    def _put(self, items: NewItems, key: WriteKey | None, *, replace: bool) -> Future[Written]:
        self.writer.check_writable()
        rows = self._checked(items.vectors, "items")
        return chain_future(
            self._encoded("database", rows), lambda encoded: self.writer.put(items, rows, encoded, key, replace=replace)
        )

    def _encoded(self, kind: RowsKind, rows: np.ndarray) -> Future[EncodedRows]:
        return self._encodings.submit(kind, rows, len(rows), _level(_PER_QUERY * len(rows)))

    def _checked(self, vectors: VectorsLike, name: str = "vectors") -> np.ndarray:
        try:
            return check_vectors(vectors, self._hasher, name)
        except ValueError:
            if not self.is_ready:
                raise
            # A lesson, or another process, may have replaced the hasher.
            self._refresh()
            return check_vectors(vectors, self._hasher, name)

    def _refresh(self) -> None:
        with self.opened() as collection:
            self._hasher = collection.hasher

    def _search_group(
        self, key: tuple[bool, SearchOptions], queries: list[_Query], pause: Callable[[], None]
    ) -> list[list[SearchResult]]:
        """Search for all queries of a group in one call."""
        started = time.perf_counter()
        of_items, options = key
        sizes = [len(query) for query in queries]
        with self.opened() as collection:
            if of_items:
                # An id may be asked for by several requests, and a collection takes each only once.
                items = [item for query in queries for item in query.items or ()]
                unique = sorted(set(items))
                answers = dict(zip(unique, collection.answer(options, items=unique, pause=pause), strict=True))
                found = [answers[item] for item in items]
            else:
                X = np.concatenate([query.vectors for query in queries if query.vectors is not None])
                found = collection.answer(options, X, pause=pause)
        self._observer.searched(self.name, len(queries), sum(sizes), time.perf_counter() - started)
        ends = np.cumsum(sizes).tolist()
        return [found[end - size : end] for size, end in zip(sizes, ends, strict=True)]

    def _encode_group(self, kind: RowsKind, matrices: list[np.ndarray], pause: Callable[[], None]) -> list[EncodedRows]:
        """Encode the rows of all requests in one call."""
        started = time.perf_counter()
        X = np.concatenate(matrices)
        with self.opened() as collection, collection.reading() as (state, _):
            hasher, classes = state.hasher, state.shown_classes
        pause()  # the collection may have been away for long
        encoded = EncodedRows.of(hasher, classes, kind, X)
        self._observer.encoded(self.name, len(matrices), len(X), time.perf_counter() - started)
        ends = np.cumsum([len(rows) for rows in matrices]).tolist()
        return [encoded.part(slice(end - len(rows), end)) for rows, end in zip(matrices, ends, strict=True)]


def _cost(n_queries: int, options: SearchOptions) -> float:
    """Return about how much work a search is."""
    per_hit = 1 + (options.oversample or 10) / 10 + _PER_EXPLANATION * options.explain
    per_query = _PER_QUERY + per_hit * (options.k or 0) + (0 if options.radius is None else _PER_RADIUS)
    return n_queries * per_query + (0 if options.filters.where is None else _PER_FILTER)


def _level(cost: float) -> int:
    return (cost > _SMALL) + (cost > _MIDDLING)


def _recommendation_vector(collection: Collection, like: Sequence[int], unlike: Sequence[int]) -> np.ndarray:
    """Return the mean of kept vectors, moved away from the mean of others by as much as the two differ."""
    if collection.vector_dtype is None:
        raise ValueError(
            "This collection keeps no vectors, so items cannot be combined. Search for each item by itself, or make a "
            "collection that keeps vectors."
        )
    wanted = collection.vectors(sorted(set(like))).mean(axis=0)
    return 2 * wanted - collection.vectors(sorted(set(unlike))).mean(axis=0) if unlike else wanted


def existing_items(collection: Collection, ids: Sequence[int] | np.ndarray) -> list[Item]:
    """Return items by id, without those that were removed since their ids were read."""
    try:
        return collection.get(ids)
    except UnknownIdError:
        return [item for number in np.asarray(ids).tolist() for item in _existing_item(collection, number)]


def _existing_item(collection: Collection, number: int) -> list[Item]:
    try:
        return collection.get([number])
    except UnknownIdError:
        return []
