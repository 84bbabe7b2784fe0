"""The log of changes: which ids recent changes have touched, so that readers catch up without reading everything."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from ..exceptions import CollectionFormatError
from .connection import Connection

__all__ = ["EMPTY_LOG", "ChangeLog"]

_FACTS = ("log_start", "log_end", "log_sum")
_ROOM = 4_000  # items; a reader that missed more loads all codes again, and the log stays small


class _Entries(NamedTuple):
    """Pairs of generation and id: what changed after generation ``start`` and up to ``end``."""

    start: int
    end: int
    pairs: list[tuple[int, int]]

    @property
    def checksum(self) -> int:
        return sum(zlib.crc32(struct.pack("<qq", *pair)) for pair in [(self.start, self.end), *self.pairs])

    @property
    def facts(self) -> dict[str, int]:
        return dict(zip(_FACTS, (self.start, self.end, self.checksum), strict=True))


#: The facts about the log of a new collection.
EMPTY_LOG = _Entries(0, 0, []).facts


class ChangeLog:
    """The log in one database, read and written inside the transactions of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def changed_since(self, generation: int) -> list[int] | None:
        """Return the ids that may have changed since a generation, or None if the log does not reach back that far."""
        log = self.read()
        if generation < log.start or generation > log.end:
            return None
        return sorted({item for changed_in, item in log.pairs if changed_in > generation})

    def append(self, generation: int, ids: list[int]) -> None:
        """Note what a change has touched; start a new log if the old one is full."""
        log = self.read()
        new = [(generation, item) for item in ids] if len(ids) <= _ROOM else []
        if len(log.pairs) + len(ids) <= _ROOM:
            log = _Entries(log.start, generation, log.pairs + new)
        else:
            log = _Entries(generation - 1 if new else generation, generation, new)
            self._connection.execute("DELETE FROM changes")
        self._connection.execute_many("INSERT INTO changes VALUES (?, ?)", new)
        for name, value in log.facts.items():
            self._connection.set_fact(name, value)

    def read(self) -> _Entries:
        """Return the log, or refuse a damaged one."""
        start, end, total = (self._connection.fact(name) for name in _FACTS)
        query = f"SELECT generation, id FROM changes LIMIT {_ROOM + 1}"
        log = _Entries(start, end, self._connection.execute(query).fetchall())
        try:
            intact = log.checksum == total and end == self._connection.fact("generation")
        except (TypeError, struct.error):
            intact = False
        if not intact:
            raise CollectionFormatError(
                f"The log of changes in {str(self._connection.path)!r} does not match its checksum: the file is "
                "damaged. Restore it from a copy."
            )
        return log
