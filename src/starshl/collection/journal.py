"""Receipts: short texts that are stored with a change, in its transaction, under a key that the caller chooses.

A caller that does not know whether a change was stored, because it lost the connection or crashed, asks for the
receipt: it is there exactly if the change is. The newest :data:`KEPT` receipts are kept. They are meta
entries of the database: ``receipt/KEY`` is a receipt with its checksum, ``receipt_slot/N`` the key in slot N of a ring,
and ``receipts`` how many were ever written.
"""

from __future__ import annotations

import re
import zlib

from ..exceptions import CollectionFormatError
from .store import Store

_CHECKSUM_DIGITS = 8  # of a CRC-32 in hexadecimal
#: About 20 MB of short receipts; ten changes per second fill the ring in almost three hours.
KEPT = 100_000
_LONGEST_KEY = 512  # enough for any id, too short to store data in
_LONGEST_RECEIPT = 65_536  # characters; a receipt is a note, and 100,000 of them are kept
_COUNT = "receipts"
_PREFIX = "receipt_journal"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NUMBER_DIGITS = 12
_LONGEST_ENTRY = 16_777_216  # characters, so that one entry cannot fill the memory


def sealed(about: str, text: str) -> str:
    """Return a text behind its checksum."""
    return f"{zlib.crc32(f'{about} {text}'.encode()):0{_CHECKSUM_DIGITS}x}{text}"


def unsealed(about: str, value: object) -> str | None:
    """Undo :func:`sealed`; None for a value that is damaged, or about something else.

    >>> unsealed("key", sealed("key", "text")), unsealed("other key", sealed("key", "text"))
    ('text', None)
    """
    text = value[_CHECKSUM_DIGITS:] if isinstance(value, str) else ""
    return text if value == sealed(about, text) else None


def check_receipt(key: str, text: str) -> None:
    """Refuse a receipt that cannot be stored."""
    if not key or len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise ValueError(
            f"The key {key[:80]!r} cannot name a receipt. Use 1 to {_LONGEST_KEY} printable ASCII characters."
        )
    if len(text) > _LONGEST_RECEIPT or "\0" in text:
        raise ValueError(f"A receipt has up to {_LONGEST_RECEIPT} characters and no NUL; this one has {len(text)}.")


def store_receipt(store: Store, key: str, text: str) -> None:
    """Store a receipt, and forget the oldest one if the ring is full; only inside a change."""
    number = _value(store, _COUNT) or 0
    if not isinstance(number, int):
        raise _damaged(_COUNT)
    slot = f"receipt_slot/{number % KEPT}"
    forgotten = _value(store, slot)
    if forgotten is not None:
        store.connection.execute("DELETE FROM meta WHERE name = ?", [f"receipt/{forgotten}"])
    store.set_meta(slot, key)
    store.set_meta(f"receipt/{key}", sealed(key, text))
    store.set_meta(_COUNT, number + 1)


def find_receipt(store: Store, key: str) -> str | None:
    """Return the text of a receipt, None if there is none; refuse a damaged one."""
    value = _value(store, f"receipt/{key}")
    if value is None:
        return None
    text = unsealed(key, value)
    if text is None:
        raise _damaged(f"receipt/{key}")
    return text


def _value(store: Store, name: str) -> str | int | None:
    found = store.connection.execute("SELECT value FROM meta WHERE name = ?", [name]).fetchone()
    return None if found is None else found[0]


def _damaged(name: str) -> CollectionFormatError:
    return CollectionFormatError(f"The entry {name!r} is damaged. Restore the collection from a copy.")


# Journals: texts in their order, each stored in the transaction of a change and kept for good.


def check_entry(name: str, text: str) -> None:
    """Refuse an entry that cannot be stored."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name[:80]!r} cannot name a journal. Use up to 64 lowercase letters, digits and underscores."
        )
    if len(text) > _LONGEST_ENTRY or "\0" in text:
        raise ValueError(
            f"An entry of a journal has up to {_LONGEST_ENTRY:,} characters and no NUL; this has {len(text):,}."
        )


def append_entry(store: Store, name: str, text: str) -> None:
    """Store a text as the next entry of a journal; only inside a change."""
    last = store.connection.execute(
        "SELECT max(name) FROM meta WHERE name > ? AND name < ?", [f"{_PREFIX}/{name}/", f"{_PREFIX}/{name}0"]
    ).fetchone()[0]
    number = 1 if last is None else _number(last) + 1
    store.set_meta(f"{_PREFIX}/{name}/{number:0{_NUMBER_DIGITS}}", sealed(f"{name} {number}", text))


def read_entries(store: Store, name: str, after: int = 0) -> list[str]:
    """Return the entries of a journal that come after a number, in their order; refuse damaged ones."""
    bounds = [f"{_PREFIX}/{name}/{after:0{_NUMBER_DIGITS}}", f"{_PREFIX}/{name}0"]
    rows = store.connection.execute(
        "SELECT name, value FROM meta WHERE name > ? AND name < ? ORDER BY name", bounds
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
