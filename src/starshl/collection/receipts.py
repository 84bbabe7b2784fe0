"""Receipts: short texts that are stored with a change, in its transaction, under a key that the caller chooses.

A caller that does not know whether a change was stored, because it lost the connection or crashed, asks for the
receipt: it is there exactly if the change is. The newest :data:`KEPT` receipts are kept. They stand among the facts of
the database, so no format changes: ``receipt/KEY`` is a receipt with its checksum, ``receipt_slot/N`` the key in slot N
of a ring, and ``receipts`` how many were ever written.
"""

from __future__ import annotations

from ..exceptions import CollectionFormatError
from .sealed_texts import sealed, unsealed
from .store import Store

__all__ = ["KEPT", "check_receipt", "find_receipt", "store_receipt"]

#: About 20 MB of short receipts; ten changes per second fill the ring in almost three hours.
KEPT = 100_000
_LONGEST_KEY = 512  # enough for any id, too short to store data in
_LONGEST_TEXT = 65_536  # characters; a receipt is a note, and 100,000 of them are kept
_COUNT = "receipts"


def check_receipt(key: str, text: str) -> None:
    """Refuse a receipt that cannot be stored."""
    if not key or len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise ValueError(
            f"The key {key[:80]!r} cannot name a receipt. Use 1 to {_LONGEST_KEY} printable ASCII characters."
        )
    if len(text) > _LONGEST_TEXT or "\0" in text:
        raise ValueError(f"A receipt has up to {_LONGEST_TEXT} characters and no NUL; this one has {len(text)}.")


def store_receipt(store: Store, key: str, text: str) -> None:
    """Store a receipt, and forget the oldest one if the ring is full; only inside a change."""
    number = _value(store, _COUNT) or 0
    if not isinstance(number, int):
        raise _damaged(_COUNT)
    slot = f"receipt_slot/{number % KEPT}"
    forgotten = _value(store, slot)
    if forgotten is not None:
        store.connection.execute("DELETE FROM facts WHERE name = ?", [f"receipt/{forgotten}"])
    store.set_fact(slot, key)
    store.set_fact(f"receipt/{key}", sealed(key, text))
    store.set_fact(_COUNT, number + 1)


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
    found = store.connection.execute("SELECT value FROM facts WHERE name = ?", [name]).fetchone()
    return None if found is None else found[0]


def _damaged(name: str) -> CollectionFormatError:
    return CollectionFormatError(f"The fact {name!r} is damaged. Restore the collection from a copy.")
