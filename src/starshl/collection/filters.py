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
from ..exceptions import InputError, InputWarning
from .blocks import CLASSES, field_column
from .columns import Column, Value
from .fields import value_in
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
        _check_texts(state, store)
        found = store.texts.matching(*compile_conditions(others))
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
    held = {state.vocabulary.shown_as[int(class_id)] for class_id in store.column(CLASSES).counts()} - {-1}
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
    return state.as_indexed(test(store.column(name)))


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
    _check_texts(state, store)
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    pattern, title = f"%{escaped}%", store.text_meta("title_field")
    if title in store.fields():
        wanted = _without_capitals(text)
        titled = store.column(field_column(title)).meeting(lambda word: wanted in _without_capitals(word))
        found = store.texts.matching(r"reference LIKE ? ESCAPE '\'", [pattern])
        return np.union1d(found, np.sort(state.index.ids)[titled]).tolist()
    condition = r"reference LIKE ? ESCAPE '\' OR json_extract(metadata, ?) LIKE ? ESCAPE '\'"
    return store.texts.matching(condition, [pattern, _path(title), pattern]).tolist()


def _without_capitals(text: str) -> str:
    """Return a text with the capitals of ASCII in lowercase, as SQLite compares texts."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _check_texts(state: State, store: Store) -> None:
    """Compare texts with their checksums before SQL reads them: all once, and then only those that change."""
    checked = store.cache.texts_checked
    changed = None if checked is None else store.changed_since(checked)
    store.check_texts(None if changed is None else store.present(np.array(changed, np.int64)))
    store.cache.texts_checked = state.generation


def _check_known(store: Store, names: Sequence[str], declared: Sequence[str]) -> None:
    """Refuse a filter on a name that no item has: it is usually a typo."""
    known = sorted({*declared, *store.texts.metadata_names()})
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
    for class_id, count in store.column(CLASSES).counts().items():
        text = state.vocabulary.text(int(class_id))
        counts.update({} if text is None else {text: count})
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return {json.loads(text): count for text, count in ordered}


def shown_classes_by_id(state: State, store: Store) -> np.ndarray:
    """Return the class that each item counts as, by ascending id; -1 for items without a label."""
    class_ids = store.column(CLASSES).filled(-1)
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
    counts = store.column(field_column(field)).counts()
    if kinds[field] == "bool":
        counts = {bool(value): count for value, count in counts.items()}
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
