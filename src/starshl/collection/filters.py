"""Filters on metadata: a dictionary becomes SQL in which every name and value is a parameter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["Scalar", "compile_filter"]

# What a field can be compared with, as SQLite knows it.
Scalar: TypeAlias = str | int | float

_ORDERINGS = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPARISONS = {"=": "=", "!=": "!=", **_ORDERINGS}


def compile_filter(where: Mapping[str, Any]) -> tuple[str, list[Scalar]]:
    """Return an SQL condition and its parameters.

    Each entry names a metadata field and gives a value to equal, or a dictionary of comparisons; all must
    hold. An item without the field fails every comparison, also ``!=``. No text of the filter gets into the
    SQL: names and values are parameters.

    Examples
    --------
    >>> compile_filter({"label": 3})
    ('json_extract(metadata, ?) = ?', ['$."label"', 3])
    >>> compile_filter({"shop": {"in": ["a", "b"]}})
    ('json_extract(metadata, ?) IN (?, ?)', ['$."shop"', 'a', 'b'])
    """
    if not isinstance(where, Mapping) or not where:
        raise ValueError(
            f"The filter is {where!r}; it must be a dictionary such as {{'label': 3}} or "
            "{'price': {'<': 10}, 'shop': {'in': ['a', 'b']}}."
        )
    conditions, parameters = [], []
    for field, condition in where.items():
        path = _path(field)
        if not isinstance(condition, Mapping):
            condition = {"=": condition}
        if not condition:
            raise ValueError(f"The filter on {field!r} is empty; give a value or a comparison.")
        for word, value in condition.items():
            text, values = _comparison(field, word, value)
            conditions.append(text)
            parameters += [path, *values]
    return " AND ".join(conditions), parameters


def _comparison(field: str, word: str, value: Any) -> tuple[str, list[Scalar]]:
    if word == "in":
        if not isinstance(value, (list, tuple)) or not value:
            raise ValueError(f"The filter on {field!r} asks for one of {value!r}; give a list of values.")
        marks = ", ".join("?" for _ in value)
        return f"json_extract(metadata, ?) IN ({marks})", [_scalar(field, item) for item in value]
    if word not in _COMPARISONS:
        allowed = ", ".join([*_COMPARISONS, "in"])
        raise ValueError(f"The filter on {field!r} uses {word!r}; comparisons are {allowed}.")
    value = _scalar(field, value)
    condition = f"json_extract(metadata, ?) {_COMPARISONS[word]} ?"
    if word in _ORDERINGS:
        # SQLite sorts every text after every number, so a text field would pass "> 5".
        kind = "=" if isinstance(value, str) else "!="
        return f"{condition} AND typeof(json_extract(metadata, ?)) {kind} 'text'", [value, _path(field)]
    return condition, [value]


def _scalar(field: str, value: Any) -> Scalar:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"The filter compares {field!r} with {value}, which does not fit in 64 bits.")
    if not isinstance(value, (str, int, float)):
        raise ValueError(
            f"The filter compares {field!r} with a {type(value).__name__}; strings, numbers and booleans can "
            "be compared."
        )
    if isinstance(value, str):
        _check_text(field, value)
    return value


def _check_text(field: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"The filter compares {field!r} with {value!r}, which is not Unicode text: it has half of a surrogate "
            "pair. Give whole characters."
        ) from error
    if "\0" in value:
        raise ValueError(
            f"The filter compares {field!r} with {value!r}; metadata holds no NUL characters. Leave them out."
        )


def _path(field: str) -> str:
    if not isinstance(field, str) or not field or '"' in field or "\0" in field:
        raise ValueError(f"{field!r} cannot name a metadata field; use text without double quotes and NUL characters.")
    # SQLite compares the name in a path with the stored JSON letter by letter, so it needs the same escapes.
    return f"$.{json.dumps(field)}"
