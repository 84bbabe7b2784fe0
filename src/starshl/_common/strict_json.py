"""JSON from files that anyone may have written: one meaning per text, bounded depth, no surprises."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_MAX_DEPTH = 64  # far deeper than any file of ours, and far from the depth that exhausts the stack


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; refuse repeated keys, NaN, infinite numbers and deep nesting.

    Every refusal is a ValueError.

    Examples
    --------
    >>> parse_json('{"bits": 32}')
    {'bits': 32}
    >>> parse_json('{"bits": 32, "bits": 16}')
    Traceback (most recent call last):
    ...
    ValueError: the JSON text has the key 'bits' twice in one object
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None
    _refuse_deep(value)
    return value


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the JSON text has the key {key!r} twice in one object")
        result[key] = value
    return result


def _refuse_constant(word: str) -> float:
    raise ValueError(f"the JSON text holds {word}, which is not a number in JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the JSON text holds {text[:40]}, which is too large for a float")
    return value


def _refuse_deep(value: Any) -> None:
    # Level by level: a recursive walk would fail on exactly the values that it is meant to refuse.
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise ValueError(f"the JSON text is nested more than {_MAX_DEPTH} deep")


# Metadata of items: dictionaries that JSON can hold, with the same checks for collections and for adapters.

# SQLite refuses to look into JSON that is nested more deeply than 1,000, and Python to write it.
MAX_DEPTH = 100


def check_metadata(metadata: Sequence[Mapping[str, Any]] | None, n_items: int) -> list[dict[str, Any]]:
    """Return one dictionary per item, or say which one cannot be stored."""
    metadata_texts(metadata, n_items)
    return [{}] * n_items if metadata is None else [dict(entry) for entry in metadata]


def metadata_texts(
    metadata: Sequence[Mapping[str, Any]] | None, n_items: int, *, ascii_only: bool = False
) -> list[str]:
    """Return one dictionary per item as JSON; see :func:`json_text`."""
    if metadata is None:
        return ["{}"] * n_items
    if len(metadata) != n_items:
        raise ValueError(f"There are {len(metadata)} dictionaries of metadata for {n_items} items; give one per item.")
    return [json_text(entry, f"metadata[{number}]", ascii_only=ascii_only) for number, entry in enumerate(metadata)]


def json_text(entry: Mapping[str, Any], role: str, *, ascii_only: bool = False) -> str:
    """Return a dictionary as JSON, NumPy numbers included; ``role`` names it in errors.

    ``ascii_only`` escapes all other characters. Only then may text hold half of a surrogate pair, which is not Unicode.
    """
    if not isinstance(entry, Mapping):
        raise ValueError(f"{role} is a {type(entry).__name__}; it must be a dictionary, such as {{'label': 3}}.")
    entry = dict(entry)
    _check_value(entry, role)
    try:
        text = json.dumps(entry, allow_nan=False, sort_keys=True, ensure_ascii=ascii_only, default=_plain_number)
        text.encode()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{role} cannot be stored ({error}). Use strings, finite numbers, booleans, None, and lists and "
            "dictionaries of these."
        ) from error
    return text


def _check_value(value: Any, role: str, depth: int = 1) -> None:
    """Refuse what ``json.dumps`` would write, but not every database could read."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{role} is nested more than {MAX_DEPTH} deep. Store something flatter.")
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"{role} contains the NUL character, where a database would end the text. Leave it out.")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{role} has the key {key!r}; keys must be strings.")
            _check_value(key, role, depth)
            _check_value(inner, role, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_value(inner, role, depth + 1)


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not JSON")
