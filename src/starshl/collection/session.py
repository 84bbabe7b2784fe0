"""An open collection: its connections, its writer's lock, the newest state in memory, and a change in progress.

Each read borrows its own connection and holds the lock only until it has its state, so several threads search at
the same time. Changes take turns.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .._common.labels import Labels
from .._common.threads import tiles
from ..codes.binary import BinaryCodes
from ..exceptions import CollectionError, MissingCollectionError
from .blocks import POSITIONS, VECTOR_SUMS, BlockCache
from .columns import Column
from .embedding import check_embedder_file, embedder_file
from .folder import Kernels, check_own_files, discard_other_models, lock_for_writing
from .journal import append_entry, store_receipt, verify_texts
from .labels import class_texts
from .previews import verify_previews
from .state import State
from .store import Store
from .vectors import (
    ITEMS_AT_ONCE,
    RecordLayout,
    VectorsGone,
    append_records,
    batches,
    checksums,
    discard_other_vectors,
    new_file_name,
    trim,
)
from .vocabulary import Vocabulary

DATABASE = "items.sqlite"
_LOCK = "writer.lock"


@dataclass(slots=True)
class Change:
    """A change in progress: where it is stored, the state that it starts from, and the next one, once that is known."""

    folder: Path
    store: Store
    generation: int
    state: State
    successor: State | None = None

    def name_classes(self, vocabulary: Vocabulary) -> None:
        """Store what has happened to classes."""
        self.store.append_events(vocabulary)
        self.state = replace(self.state, vocabulary=vocabulary)

    def class_ids(self, labels: Labels) -> np.ndarray:
        """Return the class of each label, -1 for none; names that are new are added to the vocabulary."""
        index = labels.index
        used, texts = np.flatnonzero(labels.class_counts).tolist(), class_texts(labels)
        self.know([texts[number] for number in used])
        class_ids = np.full(len(texts) + 1, -1, np.int64)
        class_ids[used] = [self.state.vocabulary.require(texts[number]) for number in used]
        return class_ids[index]

    def know(self, texts: Sequence[str]) -> None:
        """Add names to the vocabulary where they are new."""
        vocabulary = self.state.vocabulary.with_names(texts, self.generation)
        if vocabulary is not self.state.vocabulary:
            self.name_classes(vocabulary)

    def keep_vectors(self, ids: list[int], vectors: np.ndarray) -> dict[str, Column]:
        """Write vectors to the disk, where they belong to this change; return the columns that say where each is."""
        file = self.state.require_vectors()
        records, n_records = file.layout.pack(vectors), self.store.meta("n_records")
        append_records(self.folder / file.name, records, n_records)
        self.store.set_meta("n_records", n_records + len(records))
        return _locations(ids, records, n_records)

    def compact_vectors(self) -> str:
        """Copy the kept vectors of all items to a new file, without gaps; return its name."""
        file = self.state.require_vectors()
        ids = np.sort(self.state.index.ids).tolist()
        portions = ((part, file.records(part, self.store.vector_locations(part))) for part in batches(ids))
        return self._rewrite_vectors(portions, file.layout)

    def replace_vectors(self, ids: list[int], vectors: np.ndarray) -> None:
        """Keep other vectors of all items, which may have other columns, in a new file."""
        layout = RecordLayout(self.state.require_vectors().layout.vector_dtype, vectors.shape[1])
        portions = ((ids[part], layout.pack(vectors[part])) for part in tiles(len(ids), ITEMS_AT_ONCE))
        self._rewrite_vectors(portions, layout)

    def _rewrite_vectors(self, portions: Iterable[tuple[list[int], np.ndarray]], layout: RecordLayout) -> str:
        name = new_file_name(self.generation)
        path = self.folder / name
        # What a change of the same number may have left, before it failed.
        path.unlink(missing_ok=True)
        append_records(path, np.empty(0, layout.dtype), 0)
        try:
            n_records = 0
            for ids, records in portions:
                append_records(path, records, n_records)
                self.store.assign(np.array(ids, np.int64), _locations(ids, records, n_records))
                n_records += len(ids)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self.store.set_meta("vector_file", name)
        self.store.set_meta("n_columns", layout.n_columns)
        self.store.set_meta("n_records", n_records)
        return name

    def change_codes(
        self, gone: np.ndarray | None = None, codes: BinaryCodes | None = None, ids: np.ndarray | None = None
    ) -> None:
        """Note which ids are removed and which codes are added; otherwise the next read takes them from the file."""
        self.successor = self.state.changed(self.generation, gone, codes, ids)


def _locations(ids: Sequence[int], records: np.ndarray, start: int) -> dict[str, Column]:
    positions = np.arange(start, start + len(records))
    return {POSITIONS: Column(positions), VECTOR_SUMS: Column(checksums(ids, records))}


class _Pending(threading.local):
    """What the next change of a thread stores besides: a receipt, and an entry of a journal."""

    receipt: tuple[str, str] | None = None
    entry: tuple[str, str] | None = None


class Session:
    """The files of one collection, open for one object that any number of threads may use."""

    def __init__(self, folder: Path, *, read_only: bool, kernels: Kernels, n_jobs: int | None) -> None:
        self._folder = folder
        self._kernels = kernels
        self._kernels_by_model: dict[str, Kernels] = {}
        self._n_jobs = n_jobs
        self._read_only = read_only
        # Held for a whole change, and taken before the other lock.
        self._change_lock = threading.RLock()
        self._pending = _Pending()
        # Held while a read begins, and around the fields below.
        self._lock = threading.RLock()
        self._is_open = True
        self._state: State | None = None
        self._idle: list[Store] = []
        self._cache = BlockCache()
        self._writer: Store | None = None
        self._writer_lock: int | None = None
        self._is_forked = False
        _SESSIONS.add(self)
        if not (folder / DATABASE).is_file():
            raise MissingCollectionError(folder)
        check_own_files(folder)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return self._is_open

    @contextmanager
    def reading(self) -> Iterator[tuple[State, Store]]:
        """Yield the newest state, in memory and in the file; neither changes inside the block."""
        store = self._borrow()
        try:
            with ExitStack() as stack:
                with self._lock:
                    state = self._begin(store, stack)
                yield state, store
        except BaseException:
            # Whatever stopped the read may have left its connection in the middle of something.
            store.close()
            raise
        self._give_back(store)

    @contextmanager
    def writing(self) -> Iterator[Change]:
        """Yield a change to fill in; at the end all of it is stored and acknowledged, or none."""
        with self._change_lock:
            writer = self._open_writer()
            with writer.writing() as generation:
                with self._lock:
                    # An earlier change may have been interrupted once it was stored.
                    state = self._refreshed(writer)
                change = Change(self._folder, writer, generation, state)
                yield change
                self._store_pending(writer)
            with self._lock:
                # Another thread may have read the change already.
                if self._state is state and change.successor is not None:
                    self._state = change.successor

    @contextmanager
    def idempotent(self, key: str, text: str) -> Iterator[None]:
        """Store this receipt in the transaction of the next change that the same thread makes inside the block."""
        self._pending.receipt = key, text
        try:
            yield
        finally:
            self._pending.receipt = None

    @contextmanager
    def journaling(self, journal: str, text: str) -> Iterator[None]:
        """Append this entry to a journal in the transaction of the next change that the same thread makes inside."""
        self._pending.entry = journal, text
        try:
            yield
        finally:
            self._pending.entry = None

    def check_writable(self) -> None:
        """Refuse a change before any work is done for it."""
        with self._lock:
            self._open_writer()

    def use_kernels(self, model: str, kernels: Kernels) -> None:
        """Load a model with these kernels from now on."""
        self._kernels_by_model[model] = kernels

    def verify(self) -> int:
        """Examine every page, item, vector, preview, receipt and entry, and the model; return the number of items."""
        with self.reading() as (_, store):
            store.check_integrity()
            verify_previews(store)
            verify_texts(store)
            embedder = embedder_file(store)
            if embedder is not None:
                check_embedder_file(self._folder, embedder)
            state = self._read(store)
            _ = state.hasher  # refused if it cannot be loaded
            if state.vectors is not None:
                for ids in batches(np.sort(state.index.ids).tolist()):
                    state.vectors.records(ids, store.vector_locations(ids))
            return len(state.index)

    def compact(self) -> None:
        """Give free pages, and the records of vectors that are gone, back to the file system."""
        with self._change_lock:
            writer = self._open_writer()
            with self.reading() as (state, store):
                has_gaps = state.vectors is not None and store.meta("n_records") > len(state.index)
                is_scattered = store.blocks.is_scattered(len(state.index))
            if has_gaps:
                with self.writing() as change:
                    name = change.compact_vectors()
                # A reader that was about to open the old file begins again, and finds the new one.
                discard_other_vectors(self._folder, name)
            if is_scattered:
                with self.writing() as change:
                    change.store.rewrite_blocks()
                    change.change_codes()
            writer.compact()

    def close(self) -> None:
        """Close every connection and release the writer's lock."""
        with self._change_lock, self._lock:
            self._is_open = False
            for store in self._idle:
                store.close()
            self._idle = []
            # The last connection to close can write: it moves the log into the file.
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            if self._writer_lock is not None:
                os.close(self._writer_lock)
                self._writer_lock = None

    def leave_parent(self) -> None:
        """In a forked child, leave to the parent what only the parent may use; reads make new connections."""
        # To close a connection that another process has opened would disturb the locks of both.
        _OF_PARENTS.append((self._idle, self._writer))
        self._idle, self._writer, self._is_forked = [], None, True
        self._lock, self._change_lock = threading.RLock(), threading.RLock()
        if self._writer_lock is not None:
            # The parent still holds the lock, and can now end it.
            os.close(self._writer_lock)
            self._writer_lock = None

    def _store_pending(self, writer: Store) -> None:
        if self._pending.receipt is not None:
            store_receipt(writer, *self._pending.receipt)
        if self._pending.entry is not None:
            append_entry(writer, *self._pending.entry)
        self._pending.receipt = self._pending.entry = None

    def _start(self) -> None:
        if not self._read_only:
            self._writer_lock = lock_for_writing(self._folder / _LOCK)
        # With a read-only connection: a file that is refused must stay as it is.
        with self.reading() as (state, store):
            if not self._read_only:
                self._writer = Store(self._folder / DATABASE, writable=True, cache=self._cache)
                store.acknowledge_all()
                # Not when a model is replaced: a reader may be about to load the old one.
                discard_other_models(self._folder, state.model)
                discard_other_vectors(self._folder, state.vector_file_name)
                if state.vectors is not None:
                    trim(self._folder / state.vectors.name, state.vectors.layout, store.meta("n_records"))

    def _begin(self, store: Store, stack: ExitStack) -> State:
        """Begin to read the newest state, and begin again if its vectors moved to another file at that moment."""
        for is_last in (False, True):
            with ExitStack() as attempt:
                attempt.enter_context(store.reading())
                try:
                    state = self._refreshed(store)
                except VectorsGone:
                    if is_last:
                        raise
                    continue
                stack.enter_context(attempt.pop_all())
                break
        return state

    def _borrow(self) -> Store:
        with self._lock:
            self._check_open()
            return self._idle.pop() if self._idle else Store(self._folder / DATABASE, writable=False, cache=self._cache)

    def _give_back(self, store: Store) -> None:
        with self._lock:
            if self._is_open:
                self._idle.append(store)
            else:
                store.close()

    def _refreshed(self, store: Store) -> State:
        """Return the state that ``store`` sees, reading what has changed since the last one."""
        generation, known = store.meta("generation"), self._state
        if known is None or known.generation != generation:
            fresh = known.caught_up(store) if known is not None else None
            fresh = fresh or self._read(store)
            # What was read without locks is kept only if the file has not been written since.
            store.check_unchanged()
            self._state = known = fresh
        return known

    def _read(self, store: Store) -> State:
        kernels = self._kernels_by_model.get(store.model_name(), self._kernels)
        return State.read(store, self._folder, kernels, self._n_jobs)

    def _open_writer(self) -> Store:
        self._check_open()
        if self._is_forked:
            raise CollectionError(
                f"The collection {str(self._folder)!r} was opened before this process was forked, and only the process "
                "that opened it may change it. Make the change there, or open the collection after the fork."
            )
        if self._writer is None:
            raise CollectionError("This collection was opened read-only; open it again to change it.")
        return self._writer

    def _check_open(self) -> None:
        if not self._is_open:
            raise CollectionError(
                f"The collection {str(self._folder)!r} was closed. Make a new Collection object to open it again."
            )


def rebuild(folder: Path) -> int:
    """Make anew what is derived from the items of a collection that nobody writes to; return how many there are."""
    if not (folder / DATABASE).is_file():
        raise MissingCollectionError(folder)
    check_own_files(folder)
    lock = lock_for_writing(folder / _LOCK)
    try:
        with closing(Store(folder / DATABASE, writable=True)) as store, store.writing():
            return store.rebuild()
    finally:
        os.close(lock)


_SESSIONS: weakref.WeakSet[Session] = weakref.WeakSet()
# Kept until the process ends, so that nothing closes them.
_OF_PARENTS: list[tuple[list[Store], Store | None]] = []


def _leave_parents() -> None:
    for session in list(_SESSIONS):
        session.leave_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_parents)
