"""Texts that a caller stores with a change, in its transaction: receipts and journals.

A receipt is a short text under a key that the caller chooses. A caller that does not know whether a change was stored,
because it lost the connection or crashed, asks for the receipt: it is there exactly if the change is. The newest
:data:`KEPT` receipts are kept. A journal is a list of texts that only grows, and all of them are kept.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

from .._common.validation import check_storable
from ..exceptions import CollectionFormatError
from .store import Store

#: About 20 MB of short receipts; ten changes per second take almost three hours to push a receipt out.
KEPT = 100_000
_LONGEST_KEY = 512  # enough for any id, too short to store data in
_LONGEST_RECEIPT = 65_536  # characters; a receipt is a note, and 100,000 of them are kept
_JOURNAL_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LONGEST_ENTRY = 16_777_216  # characters, so that one entry cannot fill the memory


def check_receipt(key: str, text: str) -> None:
    """Refuse a receipt that cannot be stored."""
    if not key or len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise ValueError(
            f"The key {key[:80]!r} cannot name a receipt. Use 1 to {_LONGEST_KEY} printable ASCII characters."
        )
    if len(text) > _LONGEST_RECEIPT:
        raise ValueError(f"A receipt has up to {_LONGEST_RECEIPT} characters; this one has {len(text)}.")
    check_storable(text, "The receipt")


def store_receipt(store: Store, key: str, text: str) -> None:
    """Store a receipt, and forget the oldest one if there are too many; only inside a change."""
    number = _next_number(store, "SELECT max(number) FROM receipts", [])
    leaving = "FROM receipts WHERE key = ? OR number <= ?"
    n_gone, total = store.connection.execute(
        f"SELECT count(*), coalesce(sum(checksum), 0) {leaving}", [key, number - KEPT]
    ).fetchone()
    store.connection.execute(f"DELETE {leaving}", [key, number - KEPT])
    checksum = _checksum(key, number, text)
    store.connection.execute("INSERT INTO receipts VALUES (?, ?, ?, ?)", [key, number, checksum, text])
    store.count("receipts", 1 - n_gone, checksum - total)


def find_receipt(store: Store, key: str) -> str | None:
    """Return the text of a receipt, None if there is none; refuse a damaged one."""
    check_storable(key, "The key of the receipt")
    query = "SELECT key, number, checksum, content FROM receipts WHERE key = ?"
    record = store.connection.execute(query, [key]).fetchone()
    if record is None:
        return None
    if not _is_intact(*record):
        raise CollectionFormatError.damaged(f"its receipt {key!r} cannot be read", store.path)
    return record[-1]


def check_entry(journal: str, text: str) -> None:
    """Refuse an entry of a journal that cannot be stored."""
    if not _JOURNAL_NAME.fullmatch(journal):
        raise ValueError(
            f"{journal[:80]!r} cannot name a journal. Use up to 64 lowercase letters, digits and underscores."
        )
    if len(text) > _LONGEST_ENTRY:
        raise ValueError(f"An entry of a journal has up to {_LONGEST_ENTRY:,} characters; this has {len(text):,}.")
    check_storable(text, "The entry of the journal")


def append_entry(store: Store, journal: str, text: str) -> None:
    """Store a text as the next entry of a journal; only inside a change."""
    number = _next_number(store, "SELECT max(number) FROM entries WHERE journal = ?", [journal])
    checksum = _checksum(journal, number, text)
    store.connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", [journal, number, checksum, text])
    store.count("entries", 1, checksum)


def read_entries(store: Store, journal: str, after: int = 0) -> list[str]:
    """Return the entries of a journal that come after a number, in their order; refuse damaged ones."""
    check_storable(journal, "The name of the journal")
    query = "SELECT number, checksum, content FROM entries WHERE journal = ? AND number > ? ORDER BY number"
    texts = []
    for expected, (number, checksum, text) in enumerate(store.connection.execute(query, [journal, after]), after + 1):
        if number != expected or not _is_intact(journal, number, checksum, text):
            raise CollectionFormatError.damaged(
                f"the entry {expected} of its journal {journal!r} is missing or cannot be read"
            )
        texts.append(text)
    return texts


def verify_texts(store: Store) -> None:
    """Compare every receipt and every entry with its checksum, and how many there are with what was stored."""
    for table, name in (("receipts", "key"), ("entries", "journal")):
        n_texts, total = 0, 0
        for record in store.connection.execute(f"SELECT {name}, number, checksum, content FROM {table}"):
            if not _is_intact(*record):
                raise CollectionFormatError.damaged(
                    f"its text {record[1]!r} of {record[0]!r} in {table} does not match its checksum", store.path
                )
            n_texts, total = n_texts + 1, total + record[2]
        store.check_count(table, n_texts, total)


def _next_number(store: Store, query: str, parameters: list[str]) -> int:
    last = store.connection.execute(query, parameters).fetchone()[0]
    if not isinstance(last, int | None):
        raise CollectionFormatError.damaged(f"its last number is {last!r}")
    return (last or 0) + 1


def _is_intact(name: Any, number: Any, checksum: Any, text: Any) -> bool:
    if not (isinstance(name, str) and isinstance(number, int) and isinstance(text, str)):
        return False
    return bool(checksum == _checksum(name, number, text))


def _checksum(name: str, number: int, text: str) -> int:
    """Return the checksum of a text, which also covers the key or journal that it belongs to, and its number."""
    return zlib.crc32(f"{name} {number} {text}".encode())
