"""Writer: changes of a collection, one after the other in one thread, each stored once however often it is sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from .._common.labels import Label
from ..client.answers import Written
from ..collection.answers import ClassChange
from ..collection.collection import Collection
from ..collection.options import Filters
from ..hashers.base import BaseHasher
from ..labeling.review import accept_guesses, last_reviewed, reject_guesses, reviewable, undo_last
from .encoding import EncodedRows
from .errors import BusyError, KeyReusedError, NotWritableError
from .observer import Observer

MOST_NAMED = 1000  # removed items whose ids an answer, and a receipt, holds
_LONGEST_QUEUE = 1024  # beyond it, a client is told to try later instead of waiting in vain
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class NewItems:
    """Items to store; lists have one entry per item."""

    vectors: Sequence[Sequence[float]] | np.ndarray
    ids: Sequence[int] | None = None
    labels: Sequence[Label | None] | None = None
    metadata: Sequence[Mapping[str, Any]] | None = None
    references: Sequence[str | None] | None = None
    previews: Sequence[bytes | None] | None = None


@dataclass(frozen=True, slots=True)
class WriteKey:
    """What makes a repeated write recognizable: a key that the sender chose, and the digest of what it sent."""

    key: str
    digest: str


class Writer:
    """The one thread that changes a collection.

    ``opened`` gives the collection, for the length of a block. A write with a key leaves a receipt in its transaction.
    A second write with the same key finds the receipt and changes nothing, even if the service crashed in between.
    """

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Collection]],
        name: str,
        observer: Observer,
        *,
        read_only: bool,
    ) -> None:
        self._opened = opened
        self._name = name
        self._observer = observer
        self._read_only = read_only
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"writer of {name}")
        self._lock = threading.Lock()
        self._n_waiting = 0
        self._is_closed = False

    def check_writable(self) -> None:
        """Refuse a change before any work is done for it."""
        if self._read_only:
            raise NotWritableError(f"The collection {self._name!r} is served for reading only.")

    def put(
        self, items: NewItems, rows: np.ndarray, encoded: EncodedRows, key: WriteKey | None, *, replace: bool
    ) -> Future[Written]:
        """Store items, given as checked rows and what the hasher made of them."""

        def store(collection: Collection, ids: np.ndarray) -> None:
            # If the hasher has been replaced since, the codes are worthless; while this runs, it cannot be replaced
            # again.
            hasher = collection.hasher
            fresh = encoded if encoded.hasher is hasher else EncodedRows.for_storage(hasher, rows)
            method = collection.upsert if replace else collection.add
            method(
                rows if collection.vector_dtype else None,
                codes=fresh.codes,
                model_digest=collection.model_digest,
                ids=ids,
                labels=_labels(items.labels),
                metadata=items.metadata,
                references=items.references,
                previews=items.previews,
            )

        return self._change(
            "upsert" if replace else "add", NewIds(len(rows)) if items.ids is None else GivenIds(items.ids), store, key
        )

    def update(
        self, ids: Sequence[int], metadata: Sequence[Mapping[str, Any]], key: WriteKey | None = None
    ) -> Future[Written]:
        """Replace the metadata of items."""
        entries, given = list(metadata), GivenIds(list(ids))
        return self._change("update", given, lambda collection, ids: collection.update(ids, entries), key)

    def set_labels(
        self, ids: Sequence[int], labels: Sequence[Label | None], key: WriteKey | None = None
    ) -> Future[Written]:
        """Set labels of items, or take them away where a label is None."""
        values = _labels(labels)
        return self._change(
            "label", GivenIds(list(ids)), lambda collection, ids: collection.set_labels(ids, values), key
        )

    def review(
        self,
        kind: Literal["accept", "reject"],
        ids: Sequence[int],
        labels: Sequence[Label | None] | None,
        key: WriteKey | None = None,
    ) -> Future[Written]:
        """Accept or reject guesses of items, all in one change."""
        wanted = None if labels is None else dict(zip(ids, labels, strict=False))
        change = accept_guesses if kind == "accept" else reject_guesses

        def store(collection: Collection, found: np.ndarray) -> None:
            if len(found):
                change(collection, found, None if wanted is None else [wanted[item] for item in found.tolist()])

        return self._change(kind, GuessedItems(list(ids), None if labels is None else list(labels)), store, key)

    def undo_review(self, key: WriteKey | None = None) -> Future[Written]:
        """Undo the last acceptance, rejection, answer or skip."""
        return self._change("undo", LastReviewed(), lambda collection, _: undo_last(collection), key)

    def remove(self, ids: Sequence[int], key: WriteKey | None = None) -> Future[Written]:
        """Remove items, all of them or none."""
        return self._change("remove", GivenIds(list(ids)), lambda collection, ids: collection.remove(ids), key)

    def remove_matching(self, filters: Filters, key: WriteKey | None = None) -> Future[Written]:
        """Remove the items that pass filters when it is their turn."""
        return self._change("remove", MatchingItems(filters), lambda collection, ids: collection.remove(ids), key)

    def declare_fields(self, fields: Mapping[str, str]) -> Future[None]:
        """Declare metadata fields, so that filters on them are fast; known ones keep their types."""
        self.check_writable()

        def declare() -> None:
            with self._opened() as collection:
                collection.declare_fields(fields)

        return self.run_exclusively(declare)

    def change_classes(
        self, change: Callable[[Collection], ClassChange], key: WriteKey | None = None
    ) -> Future[ClassChange]:
        """Rename, merge or remove classes; a repeated change is answered with what became of the first."""
        return self._change_classes(change, lambda collection: {"version": collection.version + 1}, key)

    def undo_class_change(self, number: int | None, key: WriteKey | None = None) -> Future[ClassChange]:
        """Undo a change of classes; without a number, a repeated request still means the change it meant first."""

        def meant(collection: Collection) -> dict[str, int | None]:
            standing = [each.number for each in collection.class_changes() if not each.undone]
            return {"number": number if number is not None or not standing else standing[-1]}

        return self._change_classes(lambda collection: collection.undo_class_change(number), meant, key)

    def _change_classes(
        self,
        change: Callable[[Collection], ClassChange],
        identity: Callable[[Collection], dict[str, int | None]],
        key: WriteKey | None,
    ) -> Future[ClassChange]:
        """Change classes once; the receipt holds what tells this change from all others."""
        self.check_writable()

        def run() -> ClassChange:
            with self._opened() as collection:
                before = None if key is None else earlier_receipt(collection, key)
                if before is None:
                    with _idempotent(collection, key, {"n": 0, **identity(collection)}):
                        return change(collection)
                name = "number" if "number" in before else "version"
                return next(each for each in collection.class_changes() if getattr(each, name) == before[name])

        return self.run_exclusively(run)

    def replace_hasher(self, hasher: BaseHasher, *, receipt: tuple[str, str] | None = None) -> Future[None]:
        """Encode the kept vectors of all items with another hasher; store a receipt together with that."""
        self.check_writable()

        def replace() -> None:
            started = time.perf_counter()
            with self._opened() as collection:
                with nullcontext() if receipt is None else collection.idempotent(*receipt):
                    collection.replace_hasher(hasher)
                self._observer.changed(self._name, "replace hasher", len(collection), time.perf_counter() - started)

        return self.run_exclusively(replace)

    def run_exclusively(self, action: Callable[[], Result]) -> Future[Result]:
        """Call a function while nothing is written, when all earlier changes are done."""
        with self._lock:
            if self._is_closed:
                raise BusyError("The service is about to stop. Try again in a moment.")
            if self._n_waiting >= _LONGEST_QUEUE:
                raise BusyError(f"{self._n_waiting} changes are waiting already. Try again in a moment.")
            self._n_waiting += 1
            future = self._thread.submit(action)
        future.add_done_callback(self._count_down)
        return future

    def close(self) -> None:
        """Finish all changes that were accepted."""
        with self._lock:
            self._is_closed = True
        self._thread.shutdown(wait=True)

    def _change(
        self, kind: str, selection: Selection, store: Callable[[Collection, np.ndarray], object], key: WriteKey | None
    ) -> Future[Written]:
        """Change the selected items, unless a receipt says that it was done."""
        self.check_writable()

        def run() -> Written:
            started = time.perf_counter()
            with self._opened() as collection:
                before = stored_before(collection, key, selection)
                if before is not None:
                    return before
                ids = selection.ids(collection)
                receipt = selection.receipt(ids)
                with _idempotent(collection, key, receipt):
                    store(collection, ids)
            self._observer.changed(self._name, kind, len(ids), time.perf_counter() - started)
            return selection.written(receipt, repeated=False)

        return self.run_exclusively(run)

    def _count_down(self, _: Future[Any]) -> None:
        with self._lock:
            self._n_waiting -= 1


def _labels(labels: Sequence[Label | None] | None) -> Any:
    """Return labels as a collection takes them, where no label at all is None."""
    return None if labels is None or all(label is None for label in labels) else list(labels)


class Selection(Protocol):
    """The items that a change is about."""

    def ids(self, collection: Collection) -> np.ndarray:
        """Return their ids in the present state of a collection."""

    def receipt(self, ids: np.ndarray) -> dict[str, Any]:
        """Return what :meth:`written` has to know of them later, as JSON holds it, and their number ``n``."""

    def written(self, receipt: Mapping[str, Any], *, repeated: bool) -> Written:
        """Return what to answer once they are stored."""


@dataclass(frozen=True, slots=True)
class GivenIds:
    """Items whose ids the sender named."""

    named: Sequence[int]

    def ids(self, collection: Collection) -> np.ndarray:
        return np.asarray(list(self.named), np.int64)

    def receipt(self, ids: np.ndarray) -> dict[str, Any]:
        return {"n": len(ids)}

    def written(self, receipt: Mapping[str, Any], *, repeated: bool) -> Written:
        return Written(list(self.named), len(self.named), repeated)


@dataclass(frozen=True, slots=True)
class NewIds:
    """Items that get the next free ids."""

    n_items: int

    def ids(self, collection: Collection) -> np.ndarray:
        held = collection.ids
        first = int(held[-1]) + 1 if len(held) else 0
        if first + self.n_items > 2**63:
            raise ValueError("The largest id is in use, so there are no higher ones. Give ids that are free.")
        return np.arange(first, first + self.n_items, dtype=np.int64)

    def receipt(self, ids: np.ndarray) -> dict[str, Any]:
        return {"n": len(ids), "first": int(ids[0]) if len(ids) else 0}

    def written(self, receipt: Mapping[str, Any], *, repeated: bool) -> Written:
        first = receipt["first"]
        return Written(list(range(first, first + self.n_items)), self.n_items, repeated)


@dataclass(frozen=True, slots=True)
class MatchingItems:
    """Items that pass filters when it is their turn; if there are many, the answer only counts them."""

    filters: Filters

    def ids(self, collection: Collection) -> np.ndarray:
        return collection.passing(self.filters)

    def receipt(self, ids: np.ndarray) -> dict[str, Any]:
        return _named_ids(ids)

    def written(self, receipt: Mapping[str, Any], *, repeated: bool) -> Written:
        return Written(receipt["ids"], receipt["n"], repeated)


@dataclass(frozen=True, slots=True)
class GuessedItems:
    """Items whose guess somebody reviews, without those that have a label when it is their turn."""

    named: Sequence[int]
    labels: Sequence[Label | None] | None

    def ids(self, collection: Collection) -> np.ndarray:
        items, _ = reviewable(collection, self.named, self.labels)
        return np.array([item.id for item in items], np.int64)

    def receipt(self, ids: np.ndarray) -> dict[str, Any]:
        return _named_ids(ids)

    def written(self, receipt: Mapping[str, Any], *, repeated: bool) -> Written:
        return Written(receipt["ids"], receipt["n"], repeated)


@dataclass(frozen=True, slots=True)
class LastReviewed:
    """The items of what would be undone."""

    def ids(self, collection: Collection) -> np.ndarray:
        return np.array(last_reviewed(collection), np.int64)

    def receipt(self, ids: np.ndarray) -> dict[str, Any]:
        return _named_ids(ids)

    def written(self, receipt: Mapping[str, Any], *, repeated: bool) -> Written:
        return Written(receipt["ids"], receipt["n"], repeated)


def _named_ids(ids: np.ndarray) -> dict[str, Any]:
    return {"n": len(ids), "ids": ids.tolist() if len(ids) <= MOST_NAMED else None}


def _idempotent(
    collection: Collection, key: WriteKey | None, receipt: Mapping[str, Any]
) -> AbstractContextManager[None]:
    """Store a receipt with the next change, if the write has a key."""
    if key is None:
        return nullcontext()
    return collection.idempotent(key.key, json.dumps({"digest": key.digest, **receipt}))


def stored_before(collection: Collection, key: WriteKey | None, selection: Selection) -> Written | None:
    """Return what an earlier write with this key was answered, None if there was none."""
    receipt = None if key is None else earlier_receipt(collection, key)
    return None if receipt is None else selection.written(receipt, repeated=True)


def earlier_receipt(collection: Collection, key: WriteKey) -> dict[str, Any] | None:
    """Return the receipt of an earlier write with this key, None if there was none."""
    text = collection.receipt(key.key)
    if text is None:
        return None
    receipt: dict[str, Any] = json.loads(text)
    if receipt["digest"] != key.digest:
        raise KeyReusedError(
            "This idempotency key was used for another request before. Use a new key for each write; use the same key "
            "only to send the same write again."
        )
    return receipt
