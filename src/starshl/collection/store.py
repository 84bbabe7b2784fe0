"""The SQLite file of a collection: rows with checksums, changed in transactions that are in or not in."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..exceptions import CollectionError, CollectionFormatError

__all__ = ["FORMAT", "ChangedWhileRead", "Row", "Store"]

FORMAT = 1
BUSY_SECONDS = 10.0

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE items (
  id INTEGER PRIMARY KEY,
  code BLOB NOT NULL,
  reference TEXT,
  metadata TEXT NOT NULL,
  checksum INTEGER NOT NULL
);
"""
# Which ids a transaction has changed, for readers that hold the state before it. Files of versions that kept no such
# log, and files that such a version has written since, lack what is missing here: their readers read all items again.
_LOG = "CREATE TABLE IF NOT EXISTS changes (generation INTEGER NOT NULL, id INTEGER NOT NULL)"
_LOG_FACTS = ("log_start", "log_end", "log_sum")
_LOG_ROOM = 4_000
_CHOSEN = "id IN (SELECT value FROM json_each(?))"
_SUM_MODULUS = 1 << 62

_NOT_READ = "Nothing was read."
_NOT_MADE = "The collection was not made."
_NOT_STORED = "Nothing of this change was stored."
# Advice by how a message of SQLite begins.
_ADVICE = {
    "database or disk is full": "Free some space.",
    "disk I/O error": "The disk may be full or failing.",
    "database is locked": "Another process is writing; try again when it has finished.",
    "attempt to write a readonly database": "Give write permission to the folder and its files.",
    "unable to open database file": (
        "Give read permission to all files of the folder; if a writer has died and left its log there, open the "
        "collection for writing once."
    ),
    "Expression tree is too large": "Give a filter with fewer conditions.",
    "too many SQL variables": "Give a filter with fewer values.",
}


@contextmanager
def _explained(path: Path, outcome: str) -> Iterator[None]:
    """Turn an error of SQLite into one that gives advice and tells what came of it."""
    try:
        yield
    except sqlite3.OperationalError as error:
        advice = [text for beginning, text in _ADVICE.items() if str(error).startswith(beginning)]
        raise CollectionError(" ".join([f"{str(path)!r}: {error}.", *advice, outcome])) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise CollectionFormatError(
            f"{str(path)!r} is not a readable collection ({error}): the file is damaged or of another kind. "
            "Restore it from a copy."
        ) from error


class Row(NamedTuple):
    """One item as it is stored; ``metadata`` is JSON text."""

    id: int
    code: bytes
    reference: str | None
    metadata: str

    @property
    def checksum(self) -> int:
        text = json.dumps([self.reference, self.metadata]).encode()
        return zlib.crc32(text, zlib.crc32(struct.pack("<q", self.id) + self.code))


class ChangedWhileRead(CollectionError):
    """Another process wrote to a file that was read without locks; what was read may be half old, half new."""


class _Log(NamedTuple):
    """Pairs of generation and id: what changed after generation ``start`` and up to ``end``."""

    start: int
    end: int
    entries: list[tuple[int, int]]


def _log_sum(entries: Iterable[tuple[int, int]]) -> int:
    """Return the sum of the checksums of pairs of integers."""
    return sum(zlib.crc32(struct.pack("<qq", *entry)) for entry in entries)


class Store:
    """One connection to the file; errors of SQLite come out as one clear sentence."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self._writable = writable
        self._connection: sqlite3.Connection | None = None
        # What the file was when a connection without locks was made to it; None for other connections.
        self._seen: tuple[int, ...] | None = None
        self._open()

    def _open(self) -> None:
        self.close()
        self._seen = None
        if self._writable:
            self._connect("rw")
            return
        try:
            self._connect("ro")
        except CollectionError:
            # A folder or disk that may not be written has no room for the shared memory file through which SQLite
            # locks. Without a log no process is writing now, so the file can be read without locks, for as long as
            # it stays what it is; `reading` watches that. The order matters: whoever has written and removed the
            # log after the first line has changed what the first line saw.
            seen = self._state_of_file()
            if self._has_log():
                self._connect("ro")
                return
            self._connect("ro", immutable=True)
            self._seen = seen

    def _connect(self, mode: str, *, immutable: bool = False) -> None:
        with _explained(self.path, _NOT_READ):
            self._connection = sqlite3.connect(
                f"{self.path.resolve().as_uri()}?mode={mode}&immutable={int(immutable)}",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                # A transaction that was acknowledged is on the disk: with less than FULL, it may still be on its way.
                self._connection.execute("PRAGMA synchronous = FULL")
                self._check_format()
            except BaseException:
                self.close()
                raise

    def _has_log(self) -> bool:
        return self.path.with_name(f"{self.path.name}-wal").exists()

    def _state_of_file(self) -> tuple[int, ...]:
        """Return what changes whenever the file is written or replaced."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise CollectionError(f"{str(self.path)!r} cannot be read any more ({error.strerror}).") from error
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    @classmethod
    def create(cls, path: Path, facts: dict[str, Any]) -> None:
        """Make a new, empty file."""
        start = {"format": FORMAT, "generation": 0, "n_items": 0, "checksum_sum": 0, **facts}
        with _explained(path, _NOT_MADE), closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
            connection.executemany("INSERT INTO facts VALUES (?, ?)", start.items())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one unchanging state of the file, or fail with :class:`ChangedWhileRead`."""
        with self._watched(), _explained(self.path, _NOT_READ):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._end("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Change the file: everything inside is in, or nothing."""
        with _explained(self.path, _NOT_STORED):
            self._connection.execute("BEGIN IMMEDIATE")
            self._changed = []
            try:
                yield
                self._log_changes(self.fact("generation") + 1)
                self._set("generation", self.fact("generation") + 1)
                self._connection.execute("COMMIT")
            except BaseException:
                self._end("ROLLBACK")
                raise

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Connect again if the file was written since; without locks, refuse what is read while it is written."""
        outdated = self._seen is not None and (self._has_log() or self._state_of_file() != self._seen)
        if outdated or self._connection is None:
            self._open()
        try:
            yield
        except Exception as error:
            self._check_unchanged(error)
            raise
        self._check_unchanged(None)

    def _check_unchanged(self, found: Exception | None) -> None:
        if self._seen is not None and self._state_of_file() != self._seen:
            raise ChangedWhileRead(
                f"{str(self.path)!r} was written while it was read without write permission to its folder, which "
                "locks would need. Try again."
            ) from found

    def fact(self, name: str) -> Any:
        found = self._connection.execute("SELECT value FROM facts WHERE name = ?", [name]).fetchone()
        if found is None or not isinstance(found[0], str if name == "model" else int):
            raise CollectionFormatError(
                f"{str(self.path)!r} lacks its entry {name!r}: the file is damaged. Restore it from a copy."
            )
        return found[0]

    def set_fact(self, name: str, value: Any) -> None:
        self._set(name, value)

    def put(self, rows: Iterable[Row]) -> None:
        """Insert rows, replacing those with the same id; only inside :meth:`writing`."""
        rows = list(rows)
        self.delete([row.id for row in rows])
        self._connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", ((*row, row.checksum) for row in rows))
        self._count(len(rows), sum(row.checksum for row in rows))

    def delete(self, ids: list[int]) -> None:
        """Delete rows; only inside :meth:`writing`."""
        self._changed += ids
        chosen = [json.dumps(ids)]
        n_gone, total = self._connection.execute(
            f"SELECT count(*), coalesce(sum(checksum), 0) FROM items WHERE {_CHOSEN}", chosen
        ).fetchone()
        self._connection.execute(f"DELETE FROM items WHERE {_CHOSEN}", chosen)
        self._count(-n_gone, -total)

    def changed_since(self, generation: int) -> list[int] | None:
        """Return the ids that may have changed since a generation, or None if the log does not tell."""
        log = self._read_log()
        if log is None or generation < log.start or log.end != self.fact("generation"):
            return None
        return sorted({item for changed_in, item in log.entries if changed_in > generation})

    def present(self, ids: list[int]) -> list[int]:
        """Return those of the ids that are stored."""
        found = self._connection.execute(f"SELECT id FROM items WHERE {_CHOSEN}", [json.dumps(ids)])
        return [row[0] for row in found]

    def rows(self, ids: list[int]) -> list[Row]:
        """Return the rows of these ids, in their order."""
        found = self._connection.execute(f"SELECT * FROM items WHERE {_CHOSEN}", [json.dumps(ids)])
        by_id = {record[0]: self._checked(record) for record in found}
        missing = [item for item in ids if item not in by_id]
        if missing:
            raise KeyError(f"The id {missing[0]} is not in the collection.")
        return [by_id[item] for item in ids]

    def all_rows(self) -> Iterator[Row]:
        """Yield every row by id; at the end, refuse the file if any is missing or changed."""
        n_items, total = 0, 0
        for record in self._connection.execute("SELECT * FROM items ORDER BY id"):
            row = self._checked(record)
            n_items, total = n_items + 1, (total + record[4]) % _SUM_MODULUS
            yield row
        if (n_items, total) != (self.fact("n_items"), self.fact("checksum_sum")):
            raise CollectionFormatError(
                f"{str(self.path)!r} holds {n_items} items where {self.fact('n_items')} were written: the "
                "file is damaged. Restore it from a copy."
            )
        self._read_log()

    def matching(self, condition: str, parameters: list) -> list[int]:
        """Return the ids whose row meets a condition of :func:`compile_filter`."""
        found = self._connection.execute(f"SELECT id FROM items WHERE {condition} ORDER BY id", parameters)
        return [row[0] for row in found]

    def compact(self) -> None:
        """Give space of removed items back to the file system."""
        with _explained(self.path, _NOT_STORED):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check_integrity(self) -> None:
        """Let SQLite examine every page and every index."""
        with self.reading():
            findings = [row[0] for row in self._connection.execute("PRAGMA integrity_check")]
        if findings != ["ok"]:
            raise CollectionFormatError(f"{str(self.path)!r} is damaged ({findings[0]}). Restore it from a copy.")

    def _check_format(self) -> None:
        found = self.fact("format")
        if found < 1:
            raise CollectionFormatError(
                f"{str(self.path)!r} has format {found}, and formats begin with 1: the file is damaged. Restore it "
                "from a copy."
            )
        if found > FORMAT:
            raise CollectionFormatError(
                f"{str(self.path)!r} has format {found}; this version of starshl reads up to {FORMAT}. "
                "Install a newer starshl."
            )

    def _checked(self, record: tuple) -> Row:
        row = Row(*record[:4])
        try:
            intact = row.checksum == record[4]
        except (TypeError, struct.error):
            intact = False
        if not intact:
            raise CollectionFormatError(
                f"The item {record[0]} of {str(self.path)!r} does not match its checksum: the file is "
                "damaged. Restore it from a copy."
            )
        return row

    def _count(self, n_items: int, checksums: int) -> None:
        self._set("n_items", self.fact("n_items") + n_items)
        self._set("checksum_sum", (self.fact("checksum_sum") + checksums) % _SUM_MODULUS)

    def _log_changes(self, generation: int) -> None:
        """Note what this transaction has changed; start a new log if the old one is full or has gaps."""
        log = self._read_log()
        start, entries = generation - 1, [(generation, item) for item in self._changed]
        if log is not None and log.end == generation - 1 and len(log.entries) + len(entries) <= _LOG_ROOM:
            start, entries = log.start, log.entries + entries
        elif len(entries) > _LOG_ROOM:
            start, entries = generation, []
        self._connection.execute(_LOG)
        if log is None or start != log.start:
            self._connection.execute("DELETE FROM changes")
        new = [entry for entry in entries if entry[0] == generation]
        self._connection.executemany("INSERT INTO changes VALUES (?, ?)", new)
        for name, value in zip(_LOG_FACTS, (start, generation, _log_sum([(start, generation), *entries])), strict=True):
            self._set(name, value)

    def _read_log(self) -> _Log | None:
        """Return the log, or None if the file has none; refuse a damaged one."""
        logged = self._connection.execute("SELECT count(*) FROM facts WHERE name LIKE 'log_%'").fetchone()[0]
        if not logged:
            return None
        start, end, total = (self.fact(name) for name in _LOG_FACTS)
        log = _Log(start, end, self._connection.execute("SELECT generation, id FROM changes").fetchall())
        try:
            intact = _log_sum([(start, end), *log.entries]) == total
        except (TypeError, struct.error):
            intact = False
        if not intact:
            raise CollectionFormatError(
                f"The log of changes in {str(self.path)!r} does not match its checksum: the file is damaged. "
                "Restore it from a copy."
            )
        return log

    def _set(self, name: str, value: Any) -> None:
        self._connection.execute("REPLACE INTO facts VALUES (?, ?)", [name, value])

    def _end(self, how: str) -> None:
        # An error such as a full disk may have ended the transaction already.
        if self._connection.in_transaction:
            self._connection.execute(how)
