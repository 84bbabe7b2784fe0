"""What many items have in common: how often each label or value of a field occurs, and who passes filters."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np

from .blocks import LABELS, field_column
from .fields import Value
from .filtering import Filters
from .labels import label_of
from .snapshot import Snapshot
from .store import Store

__all__ = ["count_labels", "count_values", "labels_by_id", "passing_ids"]


def count_labels(snapshot: Snapshot, store: Store) -> dict[str | int | bool, int]:
    """Return how many items have each label, the most frequent first; equal numbers by label."""
    if store.is_outdated:
        known = Counter(label for row in store.all_rows() if (label := label_of(row)) is not None)
        return _ordered({json.dumps(label): count for label, count in known.items()})
    return _ordered(_counts_of_column(snapshot, store, LABELS))


def labels_by_id(snapshot: Snapshot, store: Store) -> dict[int, str | int | bool]:
    """Return the labels of all items that have one, by ascending id."""
    if store.is_outdated:
        return {row.id: label for row in store.all_rows() if (label := label_of(row)) is not None}
    ids, known = store.blocks.read_codes()[0].tolist(), {}
    texts = [text for column in store.blocks.read_column(LABELS, snapshot.memory.columns) for text in column.to_list()]
    named: dict[str, str | int | bool] = {str(text): json.loads(str(text)) for text in set(texts) - {None}}
    for item, text in zip(ids, texts, strict=True):
        if text is not None:
            known[item] = named[str(text)]
    return known


def count_values(snapshot: Snapshot, store: Store, field: str) -> dict[Value, int]:
    """Return how many items have each value of a declared field, the most frequent first."""
    kinds = store.fields()
    if field not in kinds:
        raise ValueError(f"{field!r} is not a declared field; these are: {', '.join(sorted(kinds)) or 'none'}.")
    counts = _counts_of_column(snapshot, store, field_column(field))
    if kinds[field] == "bool":
        counts = Counter({bool(value): count for value, count in counts.items()})
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def passing_ids(snapshot: Snapshot, store: Store, filters: Filters) -> np.ndarray:
    """Return the ids of the items that pass all filters, ascending."""
    passing = filters.passing(snapshot, store)
    ids = snapshot.index.ids
    return np.sort(ids if passing is None else ids[passing])


def _counts_of_column(snapshot: Snapshot, store: Store, name: str) -> Counter[Value]:
    counts: Counter[Value] = Counter()
    for column in store.blocks.read_column(name, snapshot.memory.columns):
        values = column.values if column.present is None else column.values[column.present]
        found, times = np.unique(values, return_counts=True)
        known = found.tolist() if column.words is None else [column.words[place] for place in found.tolist()]
        counts.update(dict(zip(known, times.tolist(), strict=True)))
    return counts


def _ordered(counts_of_texts: dict[Value, int] | Counter[Value] | dict[str, int]) -> dict[str | int | bool, int]:
    ordered = sorted(counts_of_texts.items(), key=lambda entry: (-entry[1], str(entry[0])))
    return {json.loads(str(text)): count for text, count in ordered}
