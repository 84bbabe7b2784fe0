"""Metadata of items: dictionaries that JSON can hold, with the same checks for collections and for databases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._common.validation import check_storable

# SQLite refuses to look into JSON that is nested more deeply than 1,000, and Python to write it.
_MAX_DEPTH = 100
# Bytes of JSON per item: a page of items, or the hits of a search, must fit in memory.
MOST_BYTES = 1_000_000


def check_metadata(metadata: Sequence[Mapping[str, Any]] | None, n_items: int) -> list[dict[str, Any]]:
    """Return one dictionary per item, or say which one cannot be stored."""
    metadata_texts(metadata, n_items)
    return [{}] * n_items if metadata is None else [dict(entry) for entry in metadata]


def metadata_texts(metadata: Sequence[Mapping[str, Any]] | None, n_items: int) -> list[str]:
    """Return one dictionary per item as JSON."""
    if metadata is None:
        return ["{}"] * n_items
    check_dictionaries(metadata, n_items)
    return [json_text(entry, f"metadata[{number}]") for number, entry in enumerate(metadata)]


def check_dictionaries(metadata: Sequence[Mapping[str, Any]], n_items: int) -> None:
    """Refuse anything but one dictionary per item."""
    if len(metadata) != n_items:
        raise ValueError(f"There are {len(metadata)} dictionaries of metadata for {n_items} items; give one per item.")
    for number, entry in enumerate(metadata):
        _check_dictionary(entry, f"metadata[{number}]")


def _check_dictionary(entry: object, role: str) -> None:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{role} is a {type(entry).__name__}; it must be a dictionary, such as {{'label': 3}}.")


def json_text(entry: Mapping[str, Any], role: str) -> str:
    """Return a dictionary as JSON, NumPy numbers included; ``role`` names it in errors."""
    _check_dictionary(entry, role)
    entry = dict(entry)
    _check_value(entry, role)
    try:
        text = json.dumps(entry, allow_nan=False, sort_keys=True, ensure_ascii=False, default=_plain_number)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{role} cannot be stored ({error}). Use strings, finite numbers, booleans, None, and lists and "
            "dictionaries of these."
        ) from error
    if len(text) > MOST_BYTES:
        raise ValueError(
            f"{role} takes {len(text):,} bytes as JSON; an item may have {MOST_BYTES:,}. Store what is long elsewhere, "
            "and a reference to it here."
        )
    return text


def _check_value(value: Any, role: str, depth: int = 1) -> None:
    """Refuse what ``json.dumps`` would write, but not every database could read."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"{role} is nested more than {_MAX_DEPTH} deep. Store something flatter.")
    if isinstance(value, str):
        check_storable(value, role)
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
