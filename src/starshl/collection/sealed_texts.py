"""Texts among the facts of the database, with a checksum that covers what each of them is about."""

from __future__ import annotations

import zlib

__all__ = ["sealed", "unsealed"]

_DIGITS = 8  # of a CRC-32 in hexadecimal


def sealed(about: str, text: str) -> str:
    """Return a text behind its checksum."""
    return f"{zlib.crc32(f'{about} {text}'.encode()):0{_DIGITS}x}{text}"


def unsealed(about: str, value: object) -> str | None:
    """Undo :func:`sealed`; None for a value that is damaged, or about something else.

    >>> unsealed("key", sealed("key", "text")), unsealed("other key", sealed("key", "text"))
    ('text', None)
    """
    text = value[_DIGITS:] if isinstance(value, str) else ""
    return text if value == sealed(about, text) else None
