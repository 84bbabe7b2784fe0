"""Which items of a state pass filters: on declared fields and labels from columns, on other metadata row by row."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import LabelsLike
from ..base import BaseHasher
from ..exceptions import CollectionFormatError
from ..index.base import check_ids
from .blocks import LABELS, field_column
from .fields import value_in
from .filters import Condition, compile_conditions, parse_filter
from .labels import check_kind, class_kind, label_texts
from .snapshot import Snapshot
from .store import Store

__all__ = ["Filters", "kind_of_labels", "slow_filter_note", "unknown_labels_note"]

_FIELDS_SHOWN = 20  # in an error message


@dataclass(frozen=True, slots=True)
class Filters:
    """What items must pass to be found: a filter on metadata, ids, and labels; None lets all pass."""

    where: Mapping[str, Any] | None = None
    among: ArrayLike | None = None
    labels: LabelsLike = None

    def passing(self, snapshot: Snapshot, store: Store) -> np.ndarray | None:
        """Return which items pass all filters, one boolean per item of the index; None if there is no filter."""
        masks = []
        if self.among is not None:
            masks.append(snapshot.index.mask(check_ids(np.unique(np.asarray(self.among)))))
        if self.where is not None:
            masks.append(_meeting(snapshot, store, self.where))
        if self.labels is not None:
            masks.append(_labeled(snapshot, store, self.labels))
        return np.logical_and.reduce(masks) if masks else None


def _meeting(snapshot: Snapshot, store: Store, where: Mapping[str, Any]) -> np.ndarray:
    """Return which items meet a filter on metadata."""
    conditions, fields = parse_filter(where), store.fields()
    masks = []
    for name in where:
        if name in fields:
            own = [_typed(condition, fields[name]) for condition in conditions if condition.field == name]
            masks.append(_compared(snapshot, store, field_column(name), own))
    others = [condition for condition in conditions if condition.field not in fields]
    if others:
        names = sorted({condition.field for condition in others})
        _check_rows(snapshot, store)
        found = np.array(store.matching(*compile_conditions(others)), np.int64)
        if not len(found) and len(snapshot.index):
            _check_known(store, names, [*fields])
        _note_slowness(names, len(snapshot.index))
        masks.append(snapshot.index.mask(found))
    return np.logical_and.reduce(masks)


def _labeled(snapshot: Snapshot, store: Store, labels: LabelsLike) -> np.ndarray:
    """Return which items have one of these labels."""
    given = np.atleast_1d(np.asarray(labels, dtype=object))
    texts = sorted({text for text in label_texts(given, len(given)) if text is not None})
    check_kind(texts, kind_of_labels(snapshot.hasher, store) or "", "the collection")
    if store.is_outdated or not texts:
        return np.zeros(len(snapshot.index), np.bool_)
    note = unknown_labels_note(snapshot, store, texts)
    if note is not None:
        warnings.warn(note, UserWarning, stacklevel=5)
    return _compared(snapshot, store, LABELS, [Condition(LABELS, "in", list(texts))])


def kind_of_labels(hasher: BaseHasher, store: Store) -> str | None:
    """Return what labels must be, by the classes of the hasher or by the labels stored; None if anything goes."""
    stored = "" if store.is_outdated else store.text_fact("label_kind")
    return class_kind(hasher) or stored or None


def unknown_labels_note(snapshot: Snapshot, store: Store, texts: Sequence[str]) -> str | None:
    """Say which of some labels, as JSON texts, no item has: one of them is usually a typo; None if all are known."""
    columns = store.blocks.read_column(LABELS, snapshot.memory.columns)
    known = sorted({word for column in columns for word in column.words or ()})
    unknown = sorted(set(texts) - set(known))
    if not unknown or not known:
        return None
    by_letters = {text.strip('"').lower(): text for text in known}
    meant = get_close_matches(unknown[0].strip('"').lower(), by_letters, n=1)
    return (
        f"No item has the label {_listed(unknown)}."
        + (f" Did you mean {by_letters[meant[0]]}?" if meant else "")
        + f" There are: {_listed(known)}."
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_FIELDS_SHOWN]) + (", ..." if len(names) > _FIELDS_SHOWN else "")


def _typed(condition: Condition, kind: str) -> Condition:
    """Return a condition whose values a field of this type can be compared with."""
    values = condition.value if isinstance(condition.value, list) else [condition.value]
    checked = [value_in(condition.field, kind, value) for value in values]
    return condition._replace(value=checked if isinstance(condition.value, list) else checked[0])


def _compared(snapshot: Snapshot, store: Store, name: str, conditions: Sequence[Condition]) -> np.ndarray:
    """Return which items meet all conditions on one column."""
    columns = store.blocks.read_column(name, snapshot.memory.columns)
    parts = [
        reduce(operator.and_, (column.passing(condition.word, condition.value) for condition in conditions))
        for column in columns
    ]
    passing = np.concatenate([np.empty(0, np.bool_), *parts])
    if len(passing) != len(snapshot.index):
        raise CollectionFormatError(
            f"{str(store.path)!r} holds {len(passing)} values of {name!r} for {len(snapshot.index)} items: the file is "
            "damaged. Restore it from a copy."
        )
    return snapshot.as_indexed(passing)


def _check_rows(snapshot: Snapshot, store: Store) -> None:
    """Compare rows with their checksums before SQL reads them: all rows once, and then only those that change."""
    memory, generation = snapshot.memory, snapshot.generation
    changed = None if memory.rows_checked is None else store.changed_since(memory.rows_checked)
    if changed is None:
        for _ in store.all_rows():
            pass
    else:
        store.rows(store.present(changed))
    memory.rows_checked = generation


def _check_known(store: Store, names: Sequence[str], declared: Sequence[str]) -> None:
    """Refuse a filter on a name that no item has: it is usually a typo."""
    known = sorted({*declared, *store.metadata_names()})
    for field in names:
        if field in known:
            continue
        close = get_close_matches(field, known, n=1)
        raise ValueError(
            f"The filter asks for {field!r}, but no item has metadata of that name."
            + (f" Did you mean {close[0]!r}?" if close else "")
            + (f" There are: {_listed(known)}." if known else " The items have no metadata.")
            + (" Give labels of items as labels=, not as metadata." if field in ("label", "labels") else "")
        )


def slow_filter_note(names: Sequence[str], n_items: int) -> str:
    """Say that a filter on fields that are not declared is slow, and what to do; how to do it is left to add."""
    return (
        f"The filter reads the metadata of all {n_items:,} items, because {' and '.join(map(repr, names))} "
        f"{'is' if len(names) == 1 else 'are'} not declared. With many items, this is slow: declare the fields that "
        "you filter by"
    )


def _note_slowness(names: Sequence[str], n_items: int) -> None:
    warnings.warn(f"{slow_filter_note(names, n_items)} (declare_fields).", UserWarning, stacklevel=6)
