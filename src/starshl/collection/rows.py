"""A row of a collection: what is stored of one item, and the checksum that covers all of it."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, NamedTuple

__all__ = ["COLUMNS", "Row", "checked_row"]

_ID = struct.Struct("<q")
_to_json = json.JSONEncoder().encode
_NOTHING_ADDED = (None, None, None, None, None)


class Row(NamedTuple):
    """One item as it is stored.

    ``code`` is what a search compares. If it follows from the label, ``own_code`` is the code of the vector, which
    comes back when the label is removed; otherwise it is None. ``encoder`` names the model that made the code of the
    vector, None if that is not known. ``label`` and ``metadata`` are JSON texts. If vectors are kept, ``slot`` is the
    place of this one in their file, and ``vector_sum`` its checksum.
    """

    id: int
    code: bytes
    own_code: bytes | None
    label: str | None
    encoder: str | None
    slot: int | None
    vector_sum: int | None
    reference: str | None
    metadata: str

    @property
    def checksum(self) -> int:
        total = zlib.crc32(_ID.pack(self.id) + self.code)
        texts: list[str | int | None] = [self.reference, self.metadata]
        added = self[2:7]
        # Format 1 had no other fields: its checksums stay valid.
        if added != _NOTHING_ADDED:
            own = None if self.own_code is None else self.own_code.hex()
            texts += [own, *added[1:]]
        return zlib.crc32(_to_json(texts).encode(), total)

    @property
    def vector_code(self) -> bytes:
        """The code of the vector, even where a label has replaced it."""
        return self.code if self.own_code is None else self.own_code

    @property
    def code_from(self) -> str:
        """What the code follows from: "label" or "vector"."""
        return "vector" if self.own_code is None else "label"


COLUMNS = (*Row._fields, "checksum")


def checked_row(record: tuple[Any, ...]) -> Row | None:
    """Return the row of a record of :data:`COLUMNS`, or None if it does not match its checksum."""
    row = Row(*record[:-1])
    try:
        return row if row.checksum == record[-1] else None
    except (AttributeError, TypeError, struct.error):
        return None
