"""Metadata of items: dictionaries that JSON can hold, checked alike by collections and by adapters to databases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["MAX_DEPTH", "check_metadata", "json_text"]

# SQLite refuses to look into JSON that is nested more deeply than 1,000, and Python to write it.
MAX_DEPTH = 100


def check_metadata(metadata: Sequence[Mapping[str, Any]] | None, n_items: int) -> list[dict[str, Any]]:
    """Return one dictionary per item, or say which one cannot be stored."""
    if metadata is None:
        return [{}] * n_items
    metadata = list(metadata)
    if len(metadata) != n_items:
        raise ValueError(f"metadata has {len(metadata)} dictionaries for {n_items} items; give one per item.")
    for number, entry in enumerate(metadata):
        json_text(entry, f"metadata[{number}]")
    return [dict(entry) for entry in metadata]


def json_text(entry: Mapping[str, Any], role: str, *, ascii_only: bool = False) -> str:
    """Return a dictionary as JSON, NumPy numbers included; ``role`` names it in errors.

    ``ascii_only`` escapes all other characters. Only then may text hold half of a surrogate pair, which is not Unicode.
    """
    if not isinstance(entry, Mapping):
        raise ValueError(f"{role} is a {type(entry).__name__}; it must be a dictionary, such as {{'label': 3}}.")
    try:
        _check_value(dict(entry))
        text = json.dumps(dict(entry), allow_nan=False, sort_keys=True, ensure_ascii=ascii_only, default=_plain_number)
        text.encode()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{role} cannot be stored ({error}). Use strings without NUL characters, finite numbers, booleans, None, "
            f"and lists and dictionaries of these, nested at most {MAX_DEPTH} deep."
        ) from error
    return text


def _check_value(value: Any, depth: int = 1) -> None:
    """Raise ValueError for what ``json.dumps`` would write and a database could not read back."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("a text in it has a NUL character")
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ValueError(f"it has the key {key!r}, and keys must be strings")
            _check_value(key, depth)
            _check_value(inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_value(inner, depth + 1)


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not JSON")
