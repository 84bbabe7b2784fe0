"""Items from a file of JSON lines, stored in batches that a second attempt does not store again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from .._json import parse_json
from .interrupted import batch_receipt
from .jobs import RunningJob
from .requests import NewItems, WriteKey
from .searcher import Searcher

__all__ = ["import_lines"]

_LINES_AT_ONCE = 500  # one transaction: long enough to be fast, short enough for other writes in between
_LONGEST_LINE = 16 << 20  # 16 MB, as the usual limit of a request
_FIELDS = {"vector", "id", "label", "metadata", "reference"}


@dataclass(frozen=True, slots=True)
class _Batch:
    number: int
    first_line: int
    digest: str
    items: NewItems


def import_lines(job: RunningJob, searcher: Searcher, file: BinaryIO, key: str) -> dict[str, Any]:
    """Check all lines, then store them; each batch carries a key made of ``key`` and its number."""
    n_lines = 0
    for batch in _batches(file):
        searcher.check(batch.items)
        n_lines += len(batch.items.vectors)
        job.report("checking", n_lines)
    file.seek(0)
    n_done = n_repeated = 0
    for batch in _batches(file):
        job.report("storing", n_done, n_lines)
        written = searcher.add(batch.items, WriteKey(batch_receipt(key, batch.number), batch.digest)).result()
        n_done += len(written.ids)
        n_repeated += len(written.ids) if written.repeated else 0
    job.report("storing", n_done, n_lines)
    return {"stored": n_done - n_repeated, "repeated": n_repeated}


def _batches(file: BinaryIO) -> Iterator[_Batch]:
    lines = enumerate(iter(lambda: file.readline(_LONGEST_LINE + 1), b""), 1)
    filled = ((place, line) for place, line in lines if line.strip())
    number = 0
    while portion := list(islice(filled, _LINES_AT_ONCE)):
        digest = hashlib.sha256(b"".join(line for _, line in portion)).hexdigest()
        entries = [_entry(place, line) for place, line in portion]
        yield _Batch(number, portion[0][0], digest, _items(entries, portion[0][0]))
        number += 1


def _entry(place: int, line: bytes) -> dict[str, Any]:
    if len(line) > _LONGEST_LINE:
        raise ValueError(f"Line {place} has more than {_LONGEST_LINE} bytes. Write one item per line.")
    try:
        entry = parse_json(line)
    except ValueError as error:
        raise ValueError(f"Line {place} is not JSON that can be read ({error}). Nothing was stored.") from error
    if not isinstance(entry, dict) or not isinstance(entry.get("vector"), list):
        raise ValueError(f'Line {place} has no vector. Write lines such as {{"vector": [1, 2], "label": "a"}}.')
    unknown = sorted(set(entry) - _FIELDS)
    if unknown:
        raise ValueError(f"Line {place} has the field {unknown[0]!r}; fields are {', '.join(sorted(_FIELDS))}.")
    for name, kind in {"id": int, "label": str | int, "metadata": dict, "reference": str}.items():
        value = entry.get(name)
        if value is not None and (not isinstance(value, kind) or (name == "id" and isinstance(value, bool))):
            raise ValueError(f"Line {place} has a {name} of the type {type(value).__name__}, which is not allowed.")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in entry["vector"]):
        raise ValueError(f"Line {place} has a vector with entries that are not numbers.")
    return entry


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
