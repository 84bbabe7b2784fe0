"""Items from a file of JSON lines, stored in batches that a second attempt does not store again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from .._common.strict_json import json_text, parse_json
from .._common.validation import Label
from ..collection.collection import Collection
from ..collection.fields import check_values
from ..collection.items import class_kind, kind_of, label_text
from ..exceptions import CollectionError
from .encoding import LARGEST, n_columns, wrong_length
from .errors import ServiceError
from .jobs import RunningJob, batch_receipt
from .requests import NewItems, WriteKey
from .searcher import Searcher
from .writes import New, stored_before

# Lines of JSON, one item per line: read in batches, each line checked by itself.

_LONGEST_LINE = 16 << 20  # 16 MB, as the usual limit of a request
_FIELDS: dict[str, Any] = {"vector": list, "id": int, "label": str | int, "metadata": dict, "reference": str}


@dataclass(frozen=True, slots=True)
class Batch:
    """Items that are stored together, the numbers of their lines, and a digest of what these say."""

    number: int
    lines: list[int]
    digest: str
    items: NewItems


def read_batches(file: BinaryIO, n_lines: int) -> Iterator[Batch]:
    """Yield the items of a file, up to ``n_lines`` at a time, or say what is wrong with a line."""
    lines = enumerate(iter(lambda: file.readline(_LONGEST_LINE + 1), b""), 1)
    filled = ((place, line) for place, line in lines if line.strip())
    number = 0
    while portion := list(islice(filled, n_lines)):
        digest = hashlib.sha256(b"".join(line for _, line in portion)).hexdigest()
        entries = [_entry(place, line) for place, line in portion]
        yield Batch(number, [place for place, _ in portion], digest, _items(entries, portion[0][0]))
        number += 1


def _entry(place: int, line: bytes) -> dict[str, Any]:
    if len(line) > _LONGEST_LINE:
        raise ValueError(f"Line {place} has more than {_LONGEST_LINE} bytes. Write one item per line.")
    try:
        entry = parse_json(line)
    except ValueError as error:
        raise ValueError(f"Line {place} is not JSON that can be read ({error}).") from error
    if not isinstance(entry, dict) or not isinstance(entry.get("vector"), list):
        raise ValueError(f'Line {place} has no vector. Write lines such as {{"vector": [1, 2], "label": "a"}}.')
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        raise ValueError(f"Line {place} has the field {unknown[0]!r}; fields are {', '.join(sorted(_FIELDS))}.")
    for name, kind in _FIELDS.items():
        value = entry.get(name)
        if value is not None and (not isinstance(value, kind) or (name == "id" and isinstance(value, bool))):
            given = type(value).__name__
            raise ValueError(f"The {name} in line {place} is of the type {given}, which is not allowed.")
    _check_values(place, entry)
    return entry


def _check_values(place: int, entry: dict[str, Any]) -> None:
    """Refuse values of the right types that cannot be stored."""
    vector: list[Any] = entry["vector"]
    item, label, reference = (entry.get(name) for name in ("id", "label", "reference"))
    if not set(map(type, vector)) <= {int, float}:
        raise ValueError(f"Line {place} has a vector with entries that are not numbers.")
    if max(map(abs, vector), default=0) > LARGEST:
        raise ValueError(f"Line {place} has a vector with a number above {LARGEST:g} in size. Send smaller numbers.")
    if item is not None and not -(2**63) <= item < 2**63:
        raise ValueError(f"Line {place} has an id that does not fit in 64 signed bits. Use smaller ids.")
    json_text(entry.get("metadata") or {}, f"The metadata of line {place}", ascii_only=True)
    try:
        label_text(label or "")
        (reference or "").encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"Line {place} has a reference with half of a surrogate pair, which is not text.") from error
    except ValueError as error:
        raise ValueError(f"Line {place} has a label that cannot be stored. {error}") from error


def _items(entries: list[dict[str, Any]], first_line: int) -> NewItems:
    ids = [entry["id"] for entry in entries if entry.get("id") is not None]
    if ids and len(ids) < len(entries):
        raise ValueError(f"Some of the lines from {first_line} on have an id and some have none. Give all of them ids.")
    return NewItems(
        vectors=[entry["vector"] for entry in entries],
        ids=ids or None,
        labels=[entry.get("label") for entry in entries],
        metadata=[entry.get("metadata") or {} for entry in entries],
        references=[entry.get("reference") for entry in entries],
    )


# What a whole file of items must satisfy before the first of them is stored.


class ImportCheck:
    """Compares the items of a file with each other and with a collection; errors name the line.

    A batch that an earlier import with the same key has stored is known by its receipt; its items are there already.
    """

    def __init__(self) -> None:
        self._kind: tuple[str, str] | None = None
        self._n_lines = 0
        self._n_new = 0
        self._ids: list[np.ndarray] = []
        self._lines: list[np.ndarray] = []
        self._is_new: list[np.ndarray] = []

    def add(self, collection: Collection, batch: Batch, key: WriteKey) -> None:
        """Check a batch that follows those before."""
        items, n_items = batch.items, len(batch.lines)
        width, fields = n_columns(collection.hasher), collection.fields
        for place, line in enumerate(batch.lines):
            length = len(items.vectors[place])
            if width is not None and length != width:
                raise wrong_length(f"The vector in line {line}", length, width)
            if items.metadata is not None:
                check_values(items.metadata[place], fields, f"Line {line}")
            if items.labels is not None:
                self._check_kind(collection, items.labels[place], line)
        if self._n_lines and (items.ids is None) != (not self._ids):
            raise ValueError(
                f"Some of the lines before line {batch.lines[0]} {'have' if self._ids else 'lack'} an id, and this one "
                f"{'lacks' if self._ids else 'has'} one. Give all of them ids, or none."
            )
        is_new = stored_before(collection, key, New(n_items)) is None
        self._n_lines += n_items
        self._n_new += n_items if is_new else 0
        if items.ids is not None:
            self._ids.append(np.array(items.ids, np.int64))
            self._lines.append(np.array(batch.lines))
            self._is_new.append(np.full(n_items, is_new))

    def finish(self, collection: Collection) -> None:
        """Check the ids of all batches."""
        if not self._ids:
            New(self._n_new).ids(collection)
            return
        ids, lines, is_new = (np.concatenate(parts) for parts in (self._ids, self._lines, self._is_new))
        order = np.argsort(ids, kind="stable")
        again = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
        if len(again):
            first = again[np.argmin(lines[order[again + 1]])]
            raise ValueError(
                f"Line {lines[order[first + 1]]} has the id {ids[order[first]]}, which line {lines[order[first]]} has, "
                "too. Give every item its own id."
            )
        present = np.flatnonzero(is_new & np.isin(ids, collection.ids))
        if len(present):
            raise ValueError(
                f"Line {lines[present[0]]} has the id {ids[present[0]]}, which is already in the collection. Give new "
                "ids, or replace items by PUT .../items."
            )

    def _check_kind(self, collection: Collection, label: Label | None, line: int) -> None:
        if label is None or label == "":
            return
        kind = kind_of([label_text(label)])
        if self._kind is None:
            self._kind = _needed_kind(collection) or (kind, "those before are")
        needed, words = self._kind
        if kind != needed:
            raise ValueError(
                f"The label in line {line} is {label!r}, one of {kind}; {words} {needed}. Give labels of the same type."
            )


def _needed_kind(collection: Collection) -> tuple[str, str] | None:
    """Return what labels must be, by the classes of the hasher or the labels that items have, and words for that."""
    of_classes = class_kind(collection.hasher)
    if of_classes:
        return of_classes, "the classes of the hasher are"
    stored = collection.label_kind
    return (stored, "those of the collection are") if stored and collection.label_counts() else None


_LINES_AT_ONCE = 500  # one transaction: long enough to be fast, short enough for other writes in between


def import_lines(job: RunningJob, searcher: Searcher, file: BinaryIO, key: str) -> dict[str, Any]:
    """Check all lines, then store them; each batch carries a key made of ``key`` and its number."""
    try:
        n_lines = _check(job, searcher, file, key)
    except ValueError as error:
        raise ValueError(f"{error} This import has stored nothing.") from error
    file.seek(0)
    n_done = n_repeated = 0
    for batch in read_batches(file, _LINES_AT_ONCE):
        job.report("storing", n_done, n_lines)
        try:
            written = searcher.add(batch.items, _key(key, batch)).result()
        except (ValueError, ServiceError, CollectionError) as error:
            # The collection has changed since the check.
            raise ValueError(
                f"{n_done} of {n_lines} items are stored. Those of lines {batch.lines[0]} to {batch.lines[-1]} are "
                f"not: {error} Send all lines again with the header Idempotency-Key: {key}; what is stored is skipped."
            ) from error
        n_done += len(written.ids)
        n_repeated += len(written.ids) if written.repeated else 0
    job.report("storing", n_done, n_lines)
    return {"stored": n_done - n_repeated, "repeated": n_repeated}


def _check(job: RunningJob, searcher: Searcher, file: BinaryIO, key: str) -> int:
    """Read the whole file, refuse what could not be stored, and return how many items there are."""
    check, n_lines = ImportCheck(), 0
    for batch in read_batches(file, _LINES_AT_ONCE):
        with searcher.opened() as collection:
            check.add(collection, batch, _key(key, batch))
        n_lines += len(batch.lines)
        job.report("checking", n_lines)
    with searcher.opened() as collection:
        check.finish(collection)
    return n_lines


def _key(key: str, batch: Batch) -> WriteKey:
    return WriteKey(batch_receipt(key, batch.number), batch.digest)
