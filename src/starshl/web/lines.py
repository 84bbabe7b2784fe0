"""Lines of JSON, one item per line: read in batches, each line checked by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from .._json import parse_json
from .._metadata import json_text
from ..collection.labels import label_text
from .requests import NewItems
from .vectors import LARGEST

__all__ = ["Batch", "read_batches"]

_LONGEST_LINE = 16 << 20  # 16 MB, as the usual limit of a request
_FIELDS: dict[str, Any] = {"vector": list, "id": int, "label": str | int, "metadata": dict, "reference": str}


@dataclass(frozen=True, slots=True)
class Batch:
    """Items that are stored together, the numbers of their lines, and a digest of what these say."""

    number: int
    lines: list[int]
    digest: str
    items: NewItems


def read_batches(file: BinaryIO, n_lines: int) -> Iterator[Batch]:
    """Yield the items of a file, up to ``n_lines`` at a time, or say what is wrong with a line."""
    lines = enumerate(iter(lambda: file.readline(_LONGEST_LINE + 1), b""), 1)
    filled = ((place, line) for place, line in lines if line.strip())
    number = 0
    while portion := list(islice(filled, n_lines)):
        digest = hashlib.sha256(b"".join(line for _, line in portion)).hexdigest()
        entries = [_entry(place, line) for place, line in portion]
        yield Batch(number, [place for place, _ in portion], digest, _items(entries, portion[0][0]))
        number += 1


def _entry(place: int, line: bytes) -> dict[str, Any]:
    if len(line) > _LONGEST_LINE:
        raise ValueError(f"Line {place} has more than {_LONGEST_LINE} bytes. Write one item per line.")
    try:
        entry = parse_json(line)
    except ValueError as error:
        raise ValueError(f"Line {place} is not JSON that can be read ({error}).") from error
    if not isinstance(entry, dict) or not isinstance(entry.get("vector"), list):
        raise ValueError(f'Line {place} has no vector. Write lines such as {{"vector": [1, 2], "label": "a"}}.')
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        raise ValueError(f"Line {place} has the field {unknown[0]!r}; fields are {', '.join(sorted(_FIELDS))}.")
    for name, kind in _FIELDS.items():
        value = entry.get(name)
        if value is not None and (not isinstance(value, kind) or (name == "id" and isinstance(value, bool))):
            given = type(value).__name__
            raise ValueError(f"The {name} in line {place} is of the type {given}, which is not allowed.")
    _check_values(place, entry)
    return entry


def _check_values(place: int, entry: dict[str, Any]) -> None:
    """Refuse values of the right types that cannot be stored."""
    vector: list[Any] = entry["vector"]
    item, label, reference = (entry.get(name) for name in ("id", "label", "reference"))
    if not set(map(type, vector)) <= {int, float}:
        raise ValueError(f"Line {place} has a vector with entries that are not numbers.")
    if max(map(abs, vector), default=0) > LARGEST:
        raise ValueError(f"Line {place} has a vector with a number above {LARGEST:g} in size. Send smaller numbers.")
    if item is not None and not -(2**63) <= item < 2**63:
        raise ValueError(f"Line {place} has an id that does not fit in 64 signed bits. Use smaller ids.")
    json_text(entry.get("metadata") or {}, f"The metadata of line {place}", ascii_only=True)
    try:
        label_text(label or "")
        (reference or "").encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"Line {place} has a reference with half of a surrogate pair, which is not text.") from error
    except ValueError as error:
        raise ValueError(f"Line {place} has a label that cannot be stored. {error}") from error


def _items(entries: list[dict[str, Any]], first_line: int) -> NewItems:
    ids = [entry["id"] for entry in entries if entry.get("id") is not None]
    if ids and len(ids) < len(entries):
        raise ValueError(f"Some of the lines from {first_line} on have an id and some have none. Give all of them ids.")
    return NewItems(
        vectors=[entry["vector"] for entry in entries],
        ids=ids or None,
        labels=[entry.get("label") for entry in entries],
        metadata=[entry.get("metadata") or {} for entry in entries],
        references=[entry.get("reference") for entry in entries],
    )
