"""Items from a file of JSON lines, stored in batches that a second attempt does not store again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from pydantic import ValidationError

from ..._common.strict_json import parse_json
from ...collection.collection import Collection
from ...collection.fields import check_values
from ...collection.items import class_kind
from ...collection.labels import kind_of, label_text
from ...exceptions import CollectionError
from ...index.metadata import json_text
from ..encoding import MAX_NUMBER, wrong_length
from ..errors import ServiceError, worded
from ..jobs import RunningJob, batch_receipt
from ..searcher import Searcher
from ..writes import NewIds, NewItems, WriteKey, earlier_receipt
from .problems import validation_message
from .schemas import Label, NewItem, new_items

LINES_AT_ONCE = 500  # one transaction: long enough to be fast, short enough for other writes in between
BYTES_AT_ONCE = 16 << 20  # of the lines of a batch
_LONGEST_LINE = 16 << 20  # 16 MB, as the usual limit of a request
_FIELDS = [name for name in NewItem.model_fields if name not in ("text", "row")]


def import_lines(job: RunningJob, searcher: Searcher, file: BinaryIO, key: str) -> dict[str, Any]:
    """Check all lines, then store them; each batch carries a key made of ``key`` and its number."""
    try:
        n_lines = _check(job, searcher, file, key)
    except ValueError as error:
        raise ValueError(f"{worded(error)} This import has stored nothing.") from error
    file.seek(0)
    n_done = n_repeated = 0
    for batch in read_batches(file, LINES_AT_ONCE):
        job.report("storing", n_done, n_lines)
        try:
            written = searcher.add(batch.items, _key(key, batch)).result()
        except (ValueError, ServiceError, CollectionError) as error:
            # The collection has changed since the check.
            raise ValueError(
                f"{n_done} of {n_lines} items are stored. Those of lines {batch.lines[0]} to {batch.lines[-1]} are "
                f"not: {worded(error)} Send all lines again with the header Idempotency-Key: {key}; what is stored is "
                "skipped."
            ) from error
        n_done += written.n_items
        n_repeated += written.n_items if written.repeated else 0
    job.report("storing", n_done, n_lines)
    return {"stored": n_done - n_repeated, "repeated": n_repeated}


def _check(job: RunningJob, searcher: Searcher, file: BinaryIO, key: str) -> int:
    """Read the whole file, refuse what could not be stored, and return how many items there are."""
    check, n_lines = ImportCheck(), 0
    for batch in read_batches(file, LINES_AT_ONCE):
        with searcher.opened() as collection:
            check.add(collection, batch, _key(key, batch))
        n_lines += len(batch.lines)
        job.report("checking", n_lines)
    with searcher.opened() as collection:
        check.finish(collection)
    return n_lines


def _key(key: str, batch: Batch) -> WriteKey:
    return WriteKey(batch_receipt(key, batch.number), batch.digest)


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
    filled = ((line, text) for line, text in lines if text.strip())
    for number, portion in enumerate(_portions(filled, n_lines)):
        digest = hashlib.sha256(b"".join(text for _, text in portion)).hexdigest()
        items = [_parsed(line, text) for line, text in portion]
        yield Batch(number, [line for line, _ in portion], digest, _items(items, portion[0][0]))


def _portions(lines: Iterator[tuple[int, bytes]], n_lines: int) -> Iterator[list[tuple[int, bytes]]]:
    portion: list[tuple[int, bytes]] = []
    n_bytes = 0
    for line, text in lines:
        if portion and (len(portion) == n_lines or n_bytes + len(text) > BYTES_AT_ONCE):
            yield portion
            portion, n_bytes = [], 0
        portion.append((line, text))
        n_bytes += len(text)
    if portion:
        yield portion


def _parsed(line: int, text: bytes) -> NewItem:
    if len(text) > _LONGEST_LINE:
        raise ValueError(f"Line {line} has more than {_LONGEST_LINE} bytes. Write one item per line.")
    try:
        item = NewItem.model_validate(parse_json(text))
    except ValidationError as error:
        raise ValueError(f"Line {line}, {validation_message(error.errors()[0], _FIELDS)}.") from error
    except ValueError as error:
        raise ValueError(f"Line {line} is not JSON that can be read ({error}).") from error
    if item.vector is None or item.text is not None or item.row is not None:
        raise ValueError(
            f"Line {line} is not a vector; an import takes items with the fields {', '.join(_FIELDS)}. Send texts and "
            "rows of tables by POST .../items."
        )
    if max(map(abs, item.vector)) > MAX_NUMBER:
        raise ValueError(f"Line {line} has a vector with a number above {MAX_NUMBER:g} in size. Send smaller numbers.")
    json_text(item.metadata, f"The metadata of line {line}")
    try:
        label_text(item.label or "")
    except ValueError as error:
        raise ValueError(f"Line {line} has a label that cannot be stored. {error}") from error
    return item


def _items(items: list[NewItem], first_line: int) -> NewItems:
    if len({item.id is None for item in items}) > 1:
        raise ValueError(f"Some of the lines from {first_line} on have an id and some have none. Give all of them ids.")
    return new_items(items)


class ImportCheck:
    """Compares the items of a file with each other and with a collection, before the first is stored.

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
        width, fields = collection.hasher.vector_width, collection.fields
        for row, line in enumerate(batch.lines):
            length = len(items.vectors[row])
            if width is not None and length != width:
                raise wrong_length(f"The vector in line {line}", length, width)
            if items.metadata is not None:
                check_values(items.metadata[row], fields, f"Line {line}")
            if items.labels is not None:
                self._check_kind(collection, items.labels[row], line)
        if self._n_lines and (items.ids is None) != (not self._ids):
            raise ValueError(
                f"Some of the lines before line {batch.lines[0]} {'have' if self._ids else 'lack'} an id, and this one "
                f"{'lacks' if self._ids else 'has'} one. Give all of them ids, or none."
            )
        is_new = earlier_receipt(collection, key) is None
        self._n_lines += n_items
        self._n_new += n_items if is_new else 0
        if items.ids is not None:
            self._ids.append(np.array(items.ids, np.int64))
            self._lines.append(np.array(batch.lines))
            self._is_new.append(np.full(n_items, is_new))

    def finish(self, collection: Collection) -> None:
        """Check the ids of all batches."""
        if not self._ids:
            NewIds(self._n_new).ids(collection)
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
