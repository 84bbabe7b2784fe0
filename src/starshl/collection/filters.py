"""Filters on metadata: a dictionary becomes conditions, and these SQL in which every name and value is a parameter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from .columns import COMPARISONS
from .fields import check_field_name

__all__ = ["Condition", "Scalar", "compile_conditions", "parse_filter"]

# What a field can be compared with, as SQLite knows it.
Scalar: TypeAlias = str | int | float

_ORDERINGS = ("<", "<=", ">", ">=")


class Condition(NamedTuple):
    """A field, a comparison or "in", and the value or the list of values to compare with."""

    field: str
    word: str
    value: Scalar | list[Scalar]


def parse_filter(where: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions of a filter, all of which must hold.

    Each entry names a metadata field and gives a value to equal, or a dictionary of comparisons. An item without the
    field fails every comparison, also ``!=``.

    Examples
    --------
    >>> parse_filter({"price": {"<": 10}})
    [Condition(field='price', word='<', value=10)]
    """
    if not isinstance(where, Mapping) or not where:
        raise ValueError(
            f"The filter is {where!r}; it must be a dictionary such as {{'label': 3}} or "
            "{'price': {'<': 10}, 'shop': {'in': ['a', 'b']}}."
        )
    conditions = []
    for field, condition in where.items():
        check_field_name(field)
        if not isinstance(condition, Mapping):
            condition = {"=": condition}
        if not condition:
            raise ValueError(f"The filter on {field!r} is empty; give a value or a comparison.")
        conditions += [_condition(field, word, value) for word, value in condition.items()]
    return conditions


def compile_conditions(conditions: Sequence[Condition]) -> tuple[str, list[Scalar]]:
    """Return an SQL condition and its parameters; no text of the filter gets into the SQL.

    Examples
    --------
    >>> compile_conditions(parse_filter({"label": 3}))
    ('json_extract(metadata, ?) = ?', ['$."label"', 3])
    >>> compile_conditions(parse_filter({"shop": {"in": ["a", "b"]}}))
    ('json_extract(metadata, ?) IN (?, ?)', ['$."shop"', 'a', 'b'])
    """
    texts, parameters = [], []
    for condition in conditions:
        text, values = _compiled(condition)
        texts.append(text)
        parameters += values
    return " AND ".join(texts), parameters


def _condition(field: str, word: str, value: Any) -> Condition:
    if word == "in":
        if not isinstance(value, (list, tuple)) or not value:
            raise ValueError(f"The filter on {field!r} asks for one of {value!r}; give a list of values.")
        return Condition(field, word, [_scalar(field, item) for item in value])
    if word not in COMPARISONS:
        allowed = ", ".join([*COMPARISONS, "in"])
        raise ValueError(f"The filter on {field!r} uses {word!r}; comparisons are {allowed}.")
    return Condition(field, word, _scalar(field, value))


def _compiled(condition: Condition) -> tuple[str, list[Scalar]]:
    path, value = _path(condition.field), condition.value
    if isinstance(value, list):
        marks = ", ".join("?" for _ in value)
        return f"json_extract(metadata, ?) IN ({marks})", [path, *value]
    text = f"json_extract(metadata, ?) {condition.word} ?"
    if condition.word in _ORDERINGS:
        # SQLite sorts every text after every number, so a text field would pass "> 5".
        kind = "=" if isinstance(value, str) else "!="
        return f"{text} AND typeof(json_extract(metadata, ?)) {kind} 'text'", [path, value, path]
    return text, [path, value]


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
            f"The filter compares {field!r} with {value!r}; metadata cannot contain NUL characters. Leave them out."
        )


def _path(field: str) -> str:
    # SQLite compares the name in a path with the stored JSON letter by letter, so it needs the same escapes.
    return f"$.{json.dumps(field)}"
