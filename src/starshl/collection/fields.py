"""Declared metadata fields: their types, and the values that items have in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from .._common.validation import check_storable
from ..exceptions import CollectionFormatError
from .items import Row, metadata_of

#: What an item can have in a declared field.
Value: TypeAlias = str | int | float | bool
#: The declared fields of a collection, each with the name of its type.
Fields: TypeAlias = dict[str, str]
_WORDS = {"int": "whole numbers", "float": "numbers", "str": "text", "bool": "booleans"}
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


def values_of(rows: Iterable[Row], fields: Fields) -> dict[str, list[Value | None]]:
    """Return the values of rows in each field, None where an item has none; refuse values of another type."""
    if not fields:
        return {}
    values: dict[str, list[Value | None]] = {name: [] for name in fields}
    for row in rows:
        metadata = metadata_of(row)
        for name, kind in fields.items():
            values[name].append(_checked(metadata.get(name), name, kind, f"The item {row.id}"))
    return values


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
