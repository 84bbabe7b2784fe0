"""Which items of a state pass filters, and what many items have in common.

Labels and declared fields are compared in columns. Other metadata are compared row by row, in SQL in which every name
and value is a parameter.
"""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from .._common.warn import warn_caller
from ..exceptions import CollectionFormatError, InputError, InputWarning
from .chunks import CLASSES, Column, field_column
from .fields import Value, value_in
from .labels import check_kind
from .options import Condition, Filters, Scalar
from .state import State
from .store import Store

if TYPE_CHECKING:
    from .guesses import Guesses

_ORDERINGS = ("<", "<=", ">", ">=")
_FIELDS_SHOWN = 20  # in an error message


def passing_items(state: State, store: Store, filters: Filters, guesses: Guesses | None = None) -> np.ndarray | None:
    """Return which items pass all filters, one boolean per item of the index; None if there is no filter."""
    masks = []
    if filters.among is not None:
        masks.append(state.index.mask(filters.among))
    if filters.where is not None:
        masks.append(_meeting(state, store, filters))
    of_class = [] if filters.labels is None else [_labeled(state, store, filters.labels)]
    if filters.guesses is not None:
        of_class.append(state.index.mask(_guessed(state, store, filters.guesses, guesses)))
    if of_class:
        masks.append(np.logical_or.reduce(of_class))
    return np.logical_and.reduce(masks) if masks else None


def passing_ids(state: State, store: Store, filters: Filters, guesses: Guesses | None = None) -> np.ndarray:
    """Return the ids of the items that pass all filters, ascending."""
    passing = passing_items(state, store, filters, guesses)
    ids = state.index.ids
    return np.sort(ids if passing is None else ids[passing])


def _meeting(state: State, store: Store, filters: Filters) -> np.ndarray:
    """Return which items meet a filter on metadata."""
    conditions, fields = filters.where or (), store.fields()
    masks = []
    for name in filters.fields:
        if name in fields:
            own = [_typed(condition, fields[name]) for condition in conditions if condition.field == name]
            masks.append(_compared(state, store, field_column(name), own))
    others = [condition for condition in conditions if condition.field not in fields]
    if others:
        names = sorted({condition.field for condition in others})
        _check_rows(state, store)
        found = np.array(store.matching(*compile_conditions(others)), np.int64)
        if not len(found) and len(state.index):
            _check_known(store, names, [*fields])
        warn_caller(slow_filter_warning(names, len(state.index)))
        masks.append(state.index.mask(found))
    return np.logical_and.reduce(masks)


def _labeled(state: State, store: Store, texts: tuple[str, ...]) -> np.ndarray:
    """Return which items have one of these labels."""
    check_kind(texts, kind_of_labels(state, store) or "", "the collection")
    if not texts:
        return np.zeros(len(state.index), np.bool_)
    note = unknown_labels_note(state, store, texts)
    if note is not None:
        warn_caller(note)
    members = state.vocabulary.members(texts)
    if not members:
        return np.zeros(len(state.index), np.bool_)
    wanted = np.isin(np.arange(len(state.vocabulary.names)), members)
    return _passing(state, store, CLASSES, lambda column: column.masked(wanted[column.values]))


def _guessed(state: State, store: Store, texts: tuple[str, ...], guesses: Guesses | None) -> np.ndarray:
    """Return the ids of the items whose label is guessed to be one of these."""
    check_kind(texts, kind_of_labels(state, store) or "", "the collection")
    if guesses is None:
        raise InputError(
            "{parameter} asks for guessed labels, and no labels were guessed in this collection",
            advice="Guess them first: starshl.labeling.guess_labels(collection), `starshl index guess FOLDER` in the "
            "shell, or the page Teach.",
            parameter="guesses",
        )
    return guesses.among(texts)


def kind_of_labels(state: State, store: Store) -> str | None:
    """Return what labels must be, by the classes of the hasher or by the labels stored; None if anything goes."""
    return state.space.class_kind or store.text_meta("label_kind") or None


def unknown_labels_note(state: State, store: Store, texts: Sequence[str]) -> str | None:
    """Say which of some labels, as JSON texts, no item has: one of them is usually a typo; None if all are known."""
    held = {state.vocabulary.shown_as[int(class_id)] for class_id in _counts_of_column(state, store, CLASSES)} - {-1}
    known = sorted(state.vocabulary.names[class_id] for class_id in held)
    unknown = sorted(text for text in texts if state.vocabulary.id_of(text) not in held)
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
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    checked = tuple(value_in(condition.field, kind, value) for value in values)
    return condition._replace(value=checked if isinstance(condition.value, tuple) else checked[0])


def _compared(state: State, store: Store, name: str, conditions: Sequence[Condition]) -> np.ndarray:
    """Return which items meet all conditions on one column."""
    return _passing(
        state,
        store,
        name,
        lambda column: reduce(
            operator.and_, (column.passing(condition.word, condition.value) for condition in conditions)
        ),
    )


def _passing(state: State, store: Store, name: str, test: Callable[[Column], np.ndarray]) -> np.ndarray:
    """Return which items pass a test of one column."""
    columns = store.chunks.read_column(name, state.cache.columns)
    parts = [test(column) for column in columns]
    passing = np.concatenate([np.empty(0, np.bool_), *parts])
    if len(passing) != len(state.index):
        raise CollectionFormatError.damaged(
            f"it holds {len(passing)} values of {name!r} for {len(state.index)} items", store.path
        )
    return state.as_indexed(passing)


def compile_conditions(conditions: Sequence[Condition]) -> tuple[str, list[Scalar]]:
    """Return an SQL condition and its parameters; no text of the filter gets into the SQL.

    Examples
    --------
    >>> compile_conditions([Condition("label", "=", 3)])
    ('json_extract(metadata, ?) = ?', ['$."label"', 3])
    >>> compile_conditions([Condition("shop", "in", ("a", "b"))])
    ('json_extract(metadata, ?) IN (?, ?)', ['$."shop"', 'a', 'b'])
    """
    texts, parameters = [], []
    for condition in conditions:
        text, values = _compiled(condition)
        texts.append(text)
        parameters += values
    return " AND ".join(texts), parameters


def _compiled(condition: Condition) -> tuple[str, list[Scalar]]:
    path, value = _path(condition.field), condition.value
    if isinstance(value, tuple):
        marks = ", ".join("?" for _ in value)
        return f"json_extract(metadata, ?) IN ({marks})", [path, *value]
    text = f"json_extract(metadata, ?) {condition.word} ?"
    if condition.word in _ORDERINGS:
        # SQLite sorts every text after every number, so a text field would pass "> 5".
        kind = "=" if isinstance(value, str) else "!="
        return f"{text} AND typeof(json_extract(metadata, ?)) {kind} 'text'", [path, value, path]
    return text, [path, value]


def _path(field: str) -> str:
    # SQLite compares the name in a path with the stored JSON letter by letter, so it needs the same escapes.
    return f"$.{json.dumps(field, ensure_ascii=False)}"


def named_items(state: State, store: Store, text: str) -> list[int]:
    """Return the ids of the items whose reference or title contains a text, ascending; capitals do not matter."""
    _check_rows(state, store)
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    pattern, title = f"%{escaped}%", store.text_meta("title_field")
    if not title:
        return store.matching(r"reference LIKE ? ESCAPE '\'", [pattern])
    condition = r"reference LIKE ? ESCAPE '\' OR json_extract(metadata, ?) LIKE ? ESCAPE '\'"
    return store.matching(condition, [pattern, _path(title), pattern])


def _check_rows(state: State, store: Store) -> None:
    """Compare rows with their checksums before SQL reads them: all rows once, and then only those that change."""
    cache, generation = state.cache, state.generation
    changed = None if cache.rows_checked is None else store.changed_since(cache.rows_checked)
    if changed is None:
        for _ in store.all_rows():
            pass
    else:
        store.rows(store.present(changed))
    cache.rows_checked = generation


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


def slow_filter_warning(names: Sequence[str], n_items: int) -> InputWarning:
    """Say that a filter on fields that are not declared is slow, and what to do."""
    return InputWarning(
        "The filter reads the metadata of all {n_items:,} items, because {undeclared} {are} not declared",
        advice="With many items, this is slow: declare the fields that you filter by ({declare_fields}).",
        n_items=n_items,
        undeclared=" and ".join(map(repr, names)),
        are="is" if len(names) == 1 else "are",
    )


def count_labels(state: State, store: Store) -> dict[str | int | bool, int]:
    """Return how many items have each label, the most frequent first; equal numbers by label."""
    counts: Counter[str] = Counter()
    for class_id, count in _counts_of_column(state, store, CLASSES).items():
        text = state.vocabulary.text(int(class_id))
        counts.update({} if text is None else {text: count})
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return {json.loads(text): count for text, count in ordered}


def shown_classes_by_id(state: State, store: Store) -> np.ndarray:
    """Return the class that each item counts as, by ascending id; -1 for items without a label."""
    columns = store.chunks.read_column(CLASSES, state.cache.columns)
    known = [np.where(True if each.present is None else each.present, each.values, -1) for each in columns]
    class_ids = np.concatenate([np.empty(0, np.int64), *known]).astype(np.int64)
    shown: np.ndarray = np.array([*state.vocabulary.shown_as, -1], np.int64)[class_ids]
    return shown


def labels_by_id(state: State, store: Store) -> dict[int, str | int | bool]:
    """Return the labels of all items that have one, by ascending id."""
    shown = shown_classes_by_id(state, store)
    labeled = np.flatnonzero(shown >= 0)
    ids, names = np.sort(state.index.ids)[labeled].tolist(), state.vocabulary.names
    labels = {class_id: json.loads(names[class_id]) for class_id in np.unique(shown[labeled]).tolist()}
    return {item: labels[class_id] for item, class_id in zip(ids, shown[labeled].tolist(), strict=True)}


def count_values(state: State, store: Store, field: str) -> dict[Value, int]:
    """Return how many items have each value of a declared field, the most frequent first."""
    kinds = store.fields()
    if field not in kinds:
        raise ValueError(f"{field!r} is not a declared field; these are: {', '.join(sorted(kinds)) or 'none'}.")
    counts = _counts_of_column(state, store, field_column(field))
    if kinds[field] == "bool":
        counts = Counter({bool(value): count for value, count in counts.items()})
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _counts_of_column(state: State, store: Store, name: str) -> Counter[Value]:
    counts: Counter[Value] = Counter()
    for column in store.chunks.read_column(name, state.cache.columns):
        values = column.values if column.present is None else column.values[column.present]
        found, times = np.unique(values, return_counts=True)
        known = found.tolist() if column.words is None else [column.words[position] for position in found.tolist()]
        counts.update(dict(zip(known, times.tolist(), strict=True)))
    return counts
