"""Texts of items: references, and metadata that are not declared as fields, where items have some.

They have a table of their own, whose rows have no checksums: those stand with the other facts about items in a column,
so a text that was changed, lost, or left from an earlier state does not fit what is said about its item.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import CollectionFormatError
from .columns import Column
from .database import HAS_LISTED_ID, Connection

_ID = struct.Struct("<q")


class Text(NamedTuple):
    """What is said of an item in words: where its picture or text is, and its undeclared metadata."""

    reference: str | None
    metadata: dict[str, Any]


class Texts:
    """The texts of a database, through one connection and inside its transactions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __len__(self) -> int:
        n_texts: int = self._connection.execute("SELECT count(*) FROM texts").fetchone()[0]
        return n_texts

    def insert(
        self, ids: np.ndarray, references: Sequence[str | None] | None, metadata: Sequence[str | None] | None
    ) -> Column:
        """Store texts, the metadata as JSON, of items that have some; return the column of their checksums."""
        sums = np.full(len(ids), -1, np.int64)
        if references is not None or metadata is not None:
            records = [
                (place, (item, reference, text or "{}"))
                for place, (item, reference, text) in enumerate(
                    zip(ids.tolist(), references or [None] * len(ids), metadata or [None] * len(ids), strict=True)
                )
                if reference is not None or text is not None
            ]
            self._connection.execute_many("INSERT INTO texts VALUES (?, ?, ?)", [record for _, record in records])
            sums[[place for place, _ in records]] = [_checksum(*record) for _, record in records]
        return Column.numbers_or_none(sums)

    def drop(self, ids: np.ndarray) -> None:
        """Delete the texts of items, where they have some."""
        if len(ids):
            self._connection.execute(f"DELETE FROM texts WHERE {HAS_LISTED_ID}", [json.dumps(ids.tolist())])

    def read(self, ids: np.ndarray, sums: Column) -> dict[int, Text]:
        """Return the texts of those items that have some, given the column of their checksums."""
        return {item: Text(reference, self._parsed(item, text)) for item, reference, text in self._records(ids, sums)}

    def check(self, ids: np.ndarray, sums: Column) -> None:
        """Refuse texts other than those that were stored."""
        self._records(ids, sums)

    def matching(self, condition: str, parameters: Sequence[str | int | float]) -> np.ndarray:
        """Return the ids whose texts meet a condition in SQL, ascending; no checksums are compared."""
        rows = self._connection.execute(f"SELECT id FROM texts WHERE {condition} ORDER BY id", parameters)
        return np.array([row[0] for row in rows], np.int64)

    def metadata_names(self) -> list[str]:
        """Return the names of all undeclared metadata."""
        query = "SELECT DISTINCT key FROM texts, json_each(metadata)"
        return [row[0] for row in self._connection.execute(query)]

    def _records(self, ids: np.ndarray, sums: Column) -> list[tuple[int, str | None, str]]:
        known = zip(ids.tolist(), sums.filled(-1).tolist(), strict=True)
        expected = {item: total for item, total in known if total >= 0}
        if not expected:
            return []
        query = f"SELECT id, reference, metadata FROM texts WHERE {HAS_LISTED_ID}"
        records = self._connection.execute(query, [json.dumps(list(expected))]).fetchall()
        for record in records:
            if not isinstance(record[2], str) or _checksum(*record) != expected[record[0]]:
                raise self._damaged(f"its item {record[0]} has texts that do not match their checksum")
        if len(records) < len(expected):
            lost = set(expected) - {record[0] for record in records}
            raise self._damaged(f"it has lost the texts of item {min(lost)}")
        return records

    def _parsed(self, item: int, text: str) -> dict[str, Any]:
        """Return metadata whose checksum is right; a crafted file may hold anything there."""
        try:
            metadata = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"the metadata of item {item} is not JSON that can be read ({error})") from error
        if not isinstance(metadata, dict):
            raise self._damaged(f"the metadata of item {item} is a {type(metadata).__name__}, not a dictionary")
        return metadata

    def _damaged(self, finding: str) -> CollectionFormatError:
        return CollectionFormatError.damaged(finding, self._connection.path)


def _checksum(item: int, reference: Any, metadata: str) -> int:
    # No text holds the character NUL: see `check_storable`.
    return zlib.crc32(f"{'' if reference is None else '='}{reference}\0{metadata}".encode(), zlib.crc32(_ID.pack(item)))
