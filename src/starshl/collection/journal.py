"""Journals: texts that are stored one after the other, each in the transaction of a change, and kept for good.

A receipt is found by its key and forgotten some day; a journal is read from its beginning. Its entries stand among the
facts of the database, beside the receipts, so no format changes: ``receipt_journal/NAME/NUMBER`` is an entry with its
checksum, numbered from 1.
"""

from __future__ import annotations

import re

from ..exceptions import CollectionFormatError
from .sealed_texts import sealed, unsealed
from .store import Store

__all__ = ["append_entry", "check_entry", "read_entries"]

_PREFIX = "receipt_journal"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_DIGITS = 12
_LONGEST_TEXT = 16_777_216  # characters, so that one entry cannot fill the memory


def check_entry(name: str, text: str) -> None:
    """Refuse an entry that cannot be stored."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name[:80]!r} cannot name a journal. Use up to 64 lowercase letters, digits and underscores."
        )
    if len(text) > _LONGEST_TEXT or "\0" in text:
        raise ValueError(
            f"An entry of a journal has up to {_LONGEST_TEXT:,} characters and no NUL; this one has {len(text):,}."
        )


def append_entry(store: Store, name: str, text: str) -> None:
    """Store a text as the next entry of a journal; only inside a change."""
    last = store.connection.execute(
        "SELECT max(name) FROM facts WHERE name > ? AND name < ?", [f"{_PREFIX}/{name}/", f"{_PREFIX}/{name}0"]
    ).fetchone()[0]
    number = 1 if last is None else _number(last) + 1
    store.set_fact(f"{_PREFIX}/{name}/{number:0{_DIGITS}}", sealed(f"{name} {number}", text))


def read_entries(store: Store, name: str, after: int = 0) -> list[str]:
    """Return the entries of a journal that come after a number, in their order; refuse damaged ones."""
    bounds = [f"{_PREFIX}/{name}/{after:0{_DIGITS}}", f"{_PREFIX}/{name}0"]
    rows = store.connection.execute(
        "SELECT name, value FROM facts WHERE name > ? AND name < ? ORDER BY name", bounds
    ).fetchall()
    texts = []
    for number, (key, value) in enumerate(rows, after + 1):
        text = unsealed(f"{name} {number}", value)
        if _number(key) != number or text is None:
            raise CollectionFormatError(
                f"The entry {number} of the journal {name!r} is damaged or missing. Restore the collection from a copy."
            )
        texts.append(text)
    return texts


def _number(key: str) -> int:
    digits = key.rpartition("/")[2]
    return int(digits) if digits.isdecimal() else 0
