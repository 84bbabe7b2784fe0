"""What a whole file of items must satisfy before the first of them is stored."""

from __future__ import annotations

import numpy as np

from ..answers import Label
from ..collection import Collection
from ..collection.fields import check_values
from ..collection.labels import class_kind, kind_of, label_text
from .chosen import New, stored_before
from .lines import Batch
from .requests import WriteKey
from .vectors import n_columns, wrong_length

__all__ = ["ImportCheck"]


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
