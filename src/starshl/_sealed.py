"""The header that model files and index files share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._json import parse_json

__all__ = ["format_number", "read_json_object"]


def read_json_object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object in a text that anyone may have written; whatever is wrong is a ValueError."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"its header is a JSON {type(value).__name__}, not an object")
    return value


def format_number(header: Mapping[str, Any]) -> int:
    """Return the format number of a header; the caller compares it with the newest one it reads."""
    number = header.get("format")
    # The type itself: True is an integer to Python, and 1.0 equals 1.
    if type(number) is not int or number < 1:
        raise ValueError("its header has no format number")
    return number
