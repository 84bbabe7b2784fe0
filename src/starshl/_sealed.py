"""The checksum and the header that model files and index files share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["array_digest", "byte_pieces", "format_number", "read_json_object"]


def array_digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of a header's text and of named arrays: their names, types, shapes and contents."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        for piece in byte_pieces(arrays[name]):
            digest.update(piece)
    return digest.hexdigest()


def byte_pieces(array: np.ndarray) -> Iterator[memoryview]:
    """Yield the bytes of an array in C order, row by row, so that at most one row is ever copied."""
    for row in np.atleast_2d(array):
        yield np.ascontiguousarray(row).reshape(-1).view(np.uint8).data


def read_json_object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object in a text that anyone may have written; whatever is wrong is a ValueError."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("its header is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"its header is a JSON {type(value).__name__}, not an object")
    return value


def format_number(header: Mapping[str, Any]) -> int:
    """Return the format number of a header; the caller compares it with the newest one it reads."""
    number = header.get("format")
    if type(number) is not int or number < 1:
        raise ValueError("its header has no format number")
    return number
