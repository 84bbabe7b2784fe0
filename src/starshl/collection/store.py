"""The rows of a collection: read with their checksums, changed in transactions that are numbered and acknowledged."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..exceptions import CollectionFormatError
from . import acknowledged
from .connection import ChangedWhileRead, Connection
from .formats import FORMAT, NEW_FACTS, SOURCES, UPGRADE
from .rows import COLUMNS, Row, checked_row

__all__ = ["ChangedWhileRead", "Row", "Store"]

_LOG_FACTS = ("log_start", "log_end", "log_sum")
_LOG_ROOM = 4_000
_HAS_LISTED_ID = "id IN (SELECT value FROM json_each(?))"
_SUM_MODULUS = 1 << 62
_COLUMNS = ", ".join(COLUMNS)
_INSERT = f"INSERT INTO items ({_COLUMNS}) VALUES ({', '.join('?' for _ in COLUMNS)})"


class _Log(NamedTuple):
    """Pairs of generation and id: what changed after generation ``start`` and up to ``end``."""

    start: int
    end: int
    entries: list[tuple[int, int]]

    @property
    def checksum(self) -> int:
        pairs = [(self.start, self.end), *self.entries]
        return sum(zlib.crc32(struct.pack("<qq", *pair)) for pair in pairs)


class Store:
    """Rows and facts through one connection; every change has a number, the generation."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self._counter = path.with_name(acknowledged.FILE_NAME)
        self._changed: list[int] = []
        self._source = ""
        self.connection = Connection(path, writable=writable)

    @staticmethod
    def create(path: Path, model: str, n_bits: int, more_facts: dict[str, str | int]) -> None:
        """Make a new, empty file and the counter of its changes; ``more_facts`` are some of ``NEW_FACTS``."""
        acknowledged.create_counter(path.with_name(acknowledged.FILE_NAME))
        empty = _Log(0, 0, [])
        facts = (
            NEW_FACTS
            | more_facts
            | {"generation": 0, "n_items": 0, "checksum_sum": 0, "model": model, "n_bits": n_bits}
        )
        log = dict(zip(_LOG_FACTS, (empty.start, empty.end, empty.checksum), strict=True))
        Connection.create_file(path, facts | log)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one unchanging state, in which every acknowledged change is present."""
        # Read before the transaction begins: it does not see changes that are acknowledged later.
        n_acknowledged = acknowledged.read_acknowledged(self._counter)
        with self.connection.reading():
            self._check_generation(n_acknowledged)
            self._find_source()
            yield

    @contextmanager
    def writing(self) -> Iterator[int]:
        """Store everything done inside, or nothing; yield the number of the change, acknowledged at the end."""
        n_acknowledged = acknowledged.read_acknowledged(self._counter)
        with self.connection.writing():
            self._check_generation(n_acknowledged)
            self._find_source()
            generation = self.fact("generation") + 1
            self._changed = []
            yield generation
            self._log_changes(generation)
            self.set_fact("generation", generation)
        acknowledged.acknowledge(self._counter, generation)
        self.connection.checkpoint()

    def acknowledge_all(self) -> None:
        """Acknowledge a change whose writer died right after the commit: from now on, other changes build on it."""
        if self.fact("generation") > acknowledged.read_acknowledged(self._counter):
            acknowledged.acknowledge(self._counter, self.fact("generation"))

    def check_unchanged(self) -> None:
        self.connection.check_unchanged()

    def compact(self) -> None:
        """Give the space of deleted rows back to the file system."""
        self.connection.vacuum()

    def fact(self, name: str) -> int:
        return self.connection.fact(name)

    def text_fact(self, name: str) -> str:
        return self.connection.text_fact(name)

    def model_name(self) -> str:
        return self.text_fact("model")

    @property
    def is_outdated(self) -> bool:
        """Whether the file has an older format, which has neither labels nor vectors; only inside a transaction."""
        return self.fact("format") < FORMAT

    def upgrade(self) -> None:
        """Bring the file to the newest format; only inside :meth:`writing`."""
        for statement in UPGRADE:
            self.connection.execute(statement)
        for name, value in {**NEW_FACTS, "format": FORMAT}.items():
            self.set_fact(name, value)
        self._find_source()

    def set_fact(self, name: str, value: str | int) -> None:
        self.connection.execute("REPLACE INTO facts VALUES (?, ?)", [name, value])

    def put(self, rows: Iterable[Row]) -> None:
        """Insert rows, replacing those with the same id; only inside :meth:`writing`."""
        rows = list(rows)
        self.delete([row.id for row in rows])
        self.connection.execute_many(_INSERT, ((*row, row.checksum) for row in rows))
        self._count(len(rows), sum(row.checksum for row in rows))

    def delete(self, ids: list[int]) -> None:
        """Delete rows; only inside :meth:`writing`."""
        self._changed += ids
        chosen = [json.dumps(ids)]
        n_gone, total = self.connection.execute(
            f"SELECT count(*), coalesce(sum(checksum), 0) FROM items WHERE {_HAS_LISTED_ID}", chosen
        ).fetchone()
        self.connection.execute(f"DELETE FROM items WHERE {_HAS_LISTED_ID}", chosen)
        self._count(-n_gone, -total)

    def changed_since(self, generation: int) -> list[int] | None:
        """Return the ids that may have changed since a generation, or None if the log does not reach back that far."""
        log = self._read_log()
        if generation < log.start or generation > log.end:
            return None
        return sorted({item for changed_in, item in log.entries if changed_in > generation})

    def present(self, ids: list[int]) -> list[int]:
        """Return those of the ids that are stored."""
        rows = self.connection.execute(f"SELECT id FROM items WHERE {_HAS_LISTED_ID}", [json.dumps(ids)])
        return [row[0] for row in rows]

    def rows(self, ids: list[int]) -> list[Row]:
        """Return the rows of these ids, in their order."""
        records = self.connection.execute(
            f"SELECT {_COLUMNS} FROM {self._source} WHERE {_HAS_LISTED_ID}", [json.dumps(ids)]
        )
        by_id = {record[0]: self._checked(record) for record in records}
        missing = [item for item in ids if item not in by_id]
        if missing:
            raise KeyError(f"The id {missing[0]} is not in the collection.")
        return [by_id[item] for item in ids]

    def all_rows(self) -> Iterator[Row]:
        """Yield every row by id; at the end, refuse the file if any is missing or changed."""
        expected = self.fact("n_items"), self.fact("checksum_sum")
        n_items, total, last = 0, 0, None
        for record in self.connection.execute(f"SELECT {_COLUMNS} FROM {self._source} ORDER BY id"):
            row = self._checked(record)
            if last is not None and row.id <= last:
                # Damaged pages that point to each other could otherwise yield the same rows forever.
                raise self._damaged(f"holds the item {row.id} after the item {last}")
            n_items, total, last = n_items + 1, (total + record[-1]) % _SUM_MODULUS, row.id
            yield row
        if (n_items, total) != expected:
            raise self._damaged(f"holds {n_items} items where {expected[0]} were written")
        self._read_log()

    def matching(self, condition: str, parameters: Sequence[str | int | float]) -> list[int]:
        """Return the ids whose row meets a condition of :func:`compile_filter`."""
        rows = self.connection.execute(f"SELECT id FROM {self._source} WHERE {condition} ORDER BY id", parameters)
        return [row[0] for row in rows]

    def labeled(self, texts: list[str]) -> list[int]:
        """Return the ids of the items with one of these labels, given as JSON texts."""
        query = f"SELECT id FROM {self._source} WHERE label IN (SELECT value FROM json_each(?)) ORDER BY id"
        return [row[0] for row in self.connection.execute(query, [json.dumps(texts)])]

    def has_labels_besides(self, ids: list[int]) -> bool:
        """Return whether an item that is not among these has a label."""
        query = f"SELECT 1 FROM {self._source} WHERE label IS NOT NULL AND NOT {_HAS_LISTED_ID} LIMIT 1"
        return self.connection.execute(query, [json.dumps(ids)]).fetchone() is not None

    def places(self, ids: list[int]) -> dict[int, tuple[int, int]]:
        """Return slot and checksum of the vector of each id; only the vector itself tells whether they are right."""
        query = f"SELECT id, slot, vector_sum FROM {self._source} WHERE {_HAS_LISTED_ID}"
        places = {}
        for item, slot, total in self.connection.execute(query, [json.dumps(ids)]):
            if type(slot) is not int or type(total) is not int:
                raise self._damaged(f"has lost the place of the vector of item {item}")
            places[item] = slot, total
        if len(places) < len(ids):
            missing = next(item for item in ids if item not in places)
            raise KeyError(f"The id {missing} is not in the collection.")
        return places

    def check_integrity(self) -> None:
        """Let SQLite examine every page and every index; only inside :meth:`reading`."""
        findings = [row[0] for row in self.connection.execute("PRAGMA integrity_check")]
        if findings != ["ok"]:
            raise CollectionFormatError(f"{str(self.path)!r} is damaged ({findings[0]}). Restore it from a copy.")

    def _check_generation(self, n_acknowledged: int) -> None:
        generation = self.fact("generation")
        if generation < n_acknowledged:
            raise CollectionFormatError(
                f"{str(self.path.parent)!r} has lost changes that were acknowledged: {n_acknowledged} were stored, and "
                f"the database ends with number {generation}. Its write-ahead log is damaged or missing. Restore the "
                "whole folder from a copy."
            )

    def _checked(self, record: tuple[Any, ...]) -> Row:
        row = checked_row(record)
        if row is None:
            raise CollectionFormatError(
                f"The item {record[0]} of {str(self.path)!r} does not match its checksum: the file is "
                "damaged. Restore it from a copy."
            )
        return row

    def _find_source(self) -> None:
        """Find out what to read rows from; another process may have changed the format since the last transaction."""
        number = self.fact("format")
        if number not in SOURCES:
            raise self._damaged(f"has become one of format {number}")
        self._source = SOURCES[number]

    def _count(self, n_items: int, checksums: int) -> None:
        self.set_fact("n_items", self.fact("n_items") + n_items)
        self.set_fact("checksum_sum", (self.fact("checksum_sum") + checksums) % _SUM_MODULUS)

    def _log_changes(self, generation: int) -> None:
        """Note what this transaction has changed; start a new log if the old one is full."""
        log = self._read_log()
        new = [(generation, item) for item in self._changed]
        if len(log.entries) + len(new) <= _LOG_ROOM:
            log = _Log(log.start, generation, log.entries + new)
        else:
            new = new if len(new) <= _LOG_ROOM else []
            log = _Log(generation - 1 if new else generation, generation, new)
            self.connection.execute("DELETE FROM changes")
        self.connection.execute_many("INSERT INTO changes VALUES (?, ?)", new)
        for name, value in zip(_LOG_FACTS, (log.start, log.end, log.checksum), strict=True):
            self.set_fact(name, value)

    def _read_log(self) -> _Log:
        """Return the log, or refuse a damaged one."""
        start, end, total = (self.fact(name) for name in _LOG_FACTS)
        query = f"SELECT generation, id FROM changes LIMIT {_LOG_ROOM + 1}"
        log = _Log(start, end, self.connection.execute(query).fetchall())
        try:
            intact = log.checksum == total and end == self.fact("generation")
        except (TypeError, struct.error):
            intact = False
        if not intact:
            raise CollectionFormatError(
                f"The log of changes in {str(self.path)!r} does not match its checksum: the file is damaged. "
                "Restore it from a copy."
            )
        return log

    def _damaged(self, what: str) -> CollectionFormatError:
        return CollectionFormatError(f"{str(self.path)!r} {what}: the file is damaged. Restore it from a copy.")
