"""Metadata of items: declared fields with their types, whose values stand in columns, and all others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._common.validation import check_storable
from ..exceptions import CollectionFormatError
from ..index.metadata import check_dictionaries, json_text
from .blocks import field_column
from .columns import Column, Value

#: The declared fields of a collection, each with the name of its type.
Fields: TypeAlias = dict[str, str]
_WORDS = {"int": "whole numbers", "float": "numbers", "str": "text", "bool": "booleans"}
_TYPES = {"int": int, "float": float, "str": str, "bool": bool}
_LONG = 1000  # characters of a text that is surely short enough
# Above it, not every whole number is a float.
_EXACT = 2**53


def check_fields(fields: Mapping[str, Any]) -> Fields:
    """Return fields with the names of their types, or say what may be declared."""
    if not isinstance(fields, Mapping):
        raise ValueError(f"fields is a {type(fields).__name__}; give a dictionary such as {{'year': int}}.")
    checked = {}
    for name, kind in fields.items():
        word = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
        if word not in _WORDS:
            raise ValueError(f"The field {name!r} is declared as {kind!r}; types are int, float, str and bool.")
        check_field_name(name)
        checked[name] = word
    return checked


def check_field_name(name: object) -> None:
    """Refuse a name that no path of SQLite into JSON can hold."""
    if not isinstance(name, str) or not name or '"' in name:
        raise ValueError(f"{name!r} cannot name a metadata field; use text without double quotes.")
    check_storable(name, f"The name {name!r} of a metadata field")


def fields_text(fields: Fields) -> str:
    """Return declared fields as the database keeps them."""
    return json.dumps(fields, sort_keys=True)


def read_fields(text: str) -> Fields:
    """Undo :func:`fields_text`; a damaged file may hold anything there."""
    try:
        return check_fields(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise CollectionFormatError.damaged(f"its declared fields {text!r} cannot be read") from error


class Described(NamedTuple):
    """Metadata of items: a column of each declared field, and all others as JSON, None where an item has none."""

    columns: dict[str, Column]
    others: list[str | None] | None


def described(metadata: Sequence[Mapping[str, Any]] | None, ids: np.ndarray, fields: Fields) -> Described:
    """Return the metadata of items, one dictionary per id; refuse what does not fit, or cannot be stored."""
    n_items = len(ids)
    if metadata is None:
        return Described({field_column(name): Column.repeated(None, n_items) for name in fields}, None)
    if len(metadata) != n_items or not set(map(type, metadata)) <= {dict}:
        check_dictionaries(metadata, n_items)
    columns, n_declared = {}, np.zeros(n_items, np.int64)
    for name, kind in fields.items():
        column = _column([entry.get(name) for entry in metadata], name, kind, ids)
        columns[field_column(name)] = column
        n_declared += 1 if column.present is None else column.present
    # An entry of None is no value of a field, so it stays as it was given.
    having_more = np.flatnonzero(np.fromiter(map(len, metadata), np.int64, n_items) > n_declared).tolist()
    if not having_more:
        return Described(columns, None)
    others: list[str | None] = [None] * n_items
    for number in having_more:
        rest = {name: value for name, value in metadata[number].items() if value is None or name not in fields}
        others[number] = json_text(rest, f"metadata[{number}]")
    return Described(columns, others)


def declared_values(columns: Mapping[str, Column], fields: Fields, n_items: int) -> list[dict[str, Value]]:
    """Return the declared metadata of items, by name, without the fields that they do not have."""
    names = sorted(fields)
    lists = [field_values(columns[field_column(name)], fields[name]) for name in names]
    if not lists:
        return [{} for _ in range(n_items)]
    return [
        {name: value for name, value in zip(names, values, strict=True) if value is not None}
        for values in zip(*lists, strict=True)
    ]


def field_values(column: Column, kind: str) -> list[Value | None]:
    """Return the values of a declared field, None where an item has none."""
    values: list[Value | None] = column.to_list()
    return [None if value is None else bool(value) for value in values] if kind == "bool" else values


def _column(values: list[Any], name: str, kind: str, ids: np.ndarray) -> Column:
    """Return the column of a declared field; refuse values of another type."""
    types = set(map(type, values)) - {type(None)}
    if any(issubclass(each, np.generic) for each in types):
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        types = set(map(type, values)) - {type(None)}
    try:
        column = Column.of(values) if types <= {_TYPES[kind]} else None
    except OverflowError:
        column = None
    if column is None:
        owners = zip(ids.tolist(), values, strict=True)
        column = Column.of([_checked(value, name, kind, f"The item {item}") for item, value in owners])
    if kind == "float" and not np.isfinite(column.values).all():
        place = int(np.flatnonzero(~np.isfinite(column.values))[0])
        json_text({name: values[place]}, f"metadata[{place}]")
    for word in column.words or ():
        if len(word) > _LONG or "\0" in word or not word.isascii():
            json_text({name: word}, f"metadata[{values.index(word)}]")
    return column


def value_in(name: str, kind: str, value: Value) -> Value:
    """Return the value that a filter compares a field with, or say what the field holds."""
    if isinstance(value, str) != (kind == "str"):
        raise ValueError(
            f"The filter compares {name!r} with {value!r}; the items have {_WORDS[kind]} there. Give a value of that "
            "type."
        )
    if kind == "float" and isinstance(value, int) and abs(value) > _EXACT:
        raise ValueError(f"The filter compares {name!r} with {value}; give numbers of that size as floats.")
    return value


def check_values(metadata: Mapping[str, Any], fields: Fields, whose: str) -> None:
    """Refuse metadata that do not fit the declared fields; ``whose`` they are begins the sentence."""
    for name, kind in fields.items():
        _checked(metadata.get(name), name, kind, whose)


def _checked(value: Any, name: str, kind: str, whose: str) -> Value | None:
    if value is None:
        return None
    if kind == "float" and type(value) is int and abs(value) <= _EXACT:
        return float(value)
    if type(value).__name__ != kind or (kind == "int" and not -(2**63) <= value < 2**63):
        raise ValueError(
            f"{whose} has {value!r} as {name!r}, which is declared to hold {_WORDS[kind]} of type {kind}. Give "
            "such a value, None, or leave the field out. Nothing was changed."
        )
    return value
