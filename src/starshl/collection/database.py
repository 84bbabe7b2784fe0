"""A connection to the SQLite file of a collection: checks, transactions, and errors that give advice."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ..exceptions import CollectionError, CollectionFormatError

FORMAT = 1
#: Sums of checksums are kept modulo this, so that they and the next checksum fit in SQLite's 64 bits.
SUM_MODULUS = 1 << 62
#: The condition that a row has one of the ids of a parameter, a JSON list: it may be of any length.
HAS_LISTED_ID = "id IN (SELECT value FROM json_each(?))"
META_TABLE = "CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID"
# Which ids a transaction has changed, for readers that hold the state before it.
_CHANGES = "CREATE TABLE changes (generation INTEGER NOT NULL, id INTEGER NOT NULL)"
# What is known of items, a column of many items in one value: see `blocks`.
_BLOCKS = """CREATE TABLE blocks (
  name TEXT NOT NULL,
  first INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (name, first)
) WITHOUT ROWID"""
# References and undeclared metadata of items that have some; their checksums stand in blocks.
_TEXTS = """CREATE TABLE texts (
  id INTEGER PRIMARY KEY,
  reference TEXT,
  metadata TEXT NOT NULL
)"""
# Small pictures of items.
_PREVIEWS = """CREATE TABLE previews (
  id INTEGER PRIMARY KEY,
  checksum INTEGER NOT NULL,
  content BLOB NOT NULL
)"""
# Short texts that callers have stored with a change, under a key; the index finds the oldest.
_RECEIPTS = """CREATE TABLE receipts (
  key TEXT PRIMARY KEY,
  number INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  content TEXT NOT NULL
) WITHOUT ROWID"""
_RECEIPTS_BY_NUMBER = "CREATE INDEX receipts_by_number ON receipts (number)"
# What happened to classes: the log that the vocabulary is made from.
_VOCABULARY = """CREATE TABLE vocabulary (
  number INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  content TEXT NOT NULL
)"""
# The entries of journals.
_ENTRIES = """CREATE TABLE entries (
  journal TEXT NOT NULL,
  number INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (journal, number)
) WITHOUT ROWID"""
# Name, kind and statement of each table and index, the statement exactly as SQLite stores it.
_SCHEMA = [
    ("meta", "table", META_TABLE),
    ("changes", "table", _CHANGES),
    ("blocks", "table", _BLOCKS),
    ("texts", "table", _TEXTS),
    ("previews", "table", _PREVIEWS),
    ("receipts", "table", _RECEIPTS),
    ("receipts_by_number", "index", _RECEIPTS_BY_NUMBER),
    ("entries", "table", _ENTRIES),
    ("vocabulary", "table", _VOCABULARY),
]
#: What an empty collection without declared fields, kept vectors and an embedder says about them.
DEFAULT_META: dict[str, str | int] = {
    "space": "",
    "fields": "{}",
    "kind": "vectors",
    "title_field": "",
    "embedder": "",
    "n_previews": 0,
    "previews_sum": 0,
    "n_receipts": 0,
    "receipts_sum": 0,
    "n_entries": 0,
    "entries_sum": 0,
    "n_vocabulary": 0,
    "vocabulary_sum": 0,
    "model_classes": "[[], 0]",
    "label_kind": "",
    "vector_dtype": "",
    "vector_file": "",
    "n_columns": 0,
    "n_records": 0,
}
Value = TypeVar("Value", str, int)
BUSY_SECONDS = 10.0  # to wait for a lock of SQLite, which is held for one transaction
# Reading a schema of nine tables takes SQLite a few dozen steps. A crafted file may demand any number.
_SCHEMA_STEPS = 1_000_000
NOT_READ = "Nothing was read."
NOT_MADE = "The collection was not made."
NOT_STORED = "Nothing of this change was stored."
_ADVICE = {
    sqlite3.SQLITE_FULL: "Free some space.",
    sqlite3.SQLITE_IOERR: "The disk may be full or failing.",
    sqlite3.SQLITE_BUSY: "Another process is writing; try again when it has finished.",
    sqlite3.SQLITE_READONLY: "Give write permission to the folder and its files.",
    sqlite3.SQLITE_CANTOPEN: (
        "Give read permission to all files of the folder. If a writer has died and left its log there, open the "
        "collection once for writing."
    ),
}
# Advice by how a message begins, where SQLite has no code but that of any error.
_ADVICE_ON_STATEMENTS = {
    "Expression tree is too large": "Give a filter with fewer conditions.",
    "too many SQL variables": "Give a filter with fewer values.",
}


class ChangedWhileRead(CollectionError):
    """Another process wrote to a file that was read without locks; what was read may be half old and half new."""


@contextmanager
def explaining_errors(path: Path, outcome: str) -> Iterator[None]:
    """Turn an error of SQLite into one that gives advice and says what was done."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise CollectionError(" ".join([f"{str(path)!r}: {error}.", *_advice(error), outcome])) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise CollectionFormatError.unreadable(path, str(error)) from error


def _advice(error: sqlite3.OperationalError) -> list[str]:
    code = _code(error)
    if code in _ADVICE:
        return [_ADVICE[code]]
    return [advice for beginning, advice in _ADVICE_ON_STATEMENTS.items() if str(error).startswith(beginning)]


def _code(error: sqlite3.OperationalError) -> int:
    """Return the primary result code: the low byte of the extended one, which errors of Python itself do not have."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


class Connection:
    """One connection to the file, and its transactions."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self._writable = writable
        self._sqlite: sqlite3.Connection | None = None
        self._cursors: weakref.WeakSet[sqlite3.Cursor] = weakref.WeakSet()
        # The state of the file when a connection without locks was made to it; None for other connections.
        self._seen: tuple[int, ...] | None = None
        self._open()

    @staticmethod
    def create_file(path: Path, meta: dict[str, Any], vocabulary: Iterable[Sequence[Any]]) -> None:
        """Make a new file whose tables are empty except for these entries of ``meta`` and ``vocabulary``."""
        with explaining_errors(path, NOT_MADE), closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            for _, _, statement in _SCHEMA:
                connection.execute(statement)
            connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
            connection.executemany("INSERT INTO vocabulary VALUES (?, ?, ?, ?)", vocabulary)

    def close(self) -> None:
        """Close the connection; the last one to close empties the write-ahead log into the file."""
        if self._sqlite is not None:
            self._close_cursors()
            self._sqlite.close()
            self._sqlite = None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        cursor = self._require_sqlite().execute(statement, parameters)
        self._cursors.add(cursor)
        return cursor

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> None:
        self._require_sqlite().executemany(statement, parameters)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one unchanging state of the file, or fail with :class:`ChangedWhileRead`."""
        with self._watched(), explaining_errors(self.path, NOT_READ):
            self.execute("BEGIN")
            try:
                yield
            finally:
                self._roll_back()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Change the file: store everything done inside, or nothing."""
        with explaining_errors(self.path, NOT_STORED):
            self.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file and empty it, as far as readers and the disk let it.

        Nothing depends on it: what stays in the log is on the disk already, and a later checkpoint moves it.
        """
        with suppress(sqlite3.OperationalError):
            self.execute("PRAGMA busy_timeout = 0")
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")

    def vacuum(self) -> None:
        """Give free pages back to the file system."""
        with explaining_errors(self.path, NOT_STORED):
            self.execute("VACUUM")
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def meta(self, name: str) -> int:
        return self._meta(name, int)

    def text_meta(self, name: str) -> str:
        return self._meta(name, str)

    def all_meta(self) -> dict[str, Any]:
        return dict(self.execute("SELECT name, value FROM meta").fetchall())

    def set_meta(self, name: str, value: str | int) -> None:
        self.execute("REPLACE INTO meta VALUES (?, ?)", [name, value])

    def _meta(self, name: str, kind: type[Value]) -> Value:
        row = self.execute("SELECT value FROM meta WHERE name = ?", [name]).fetchone()
        if row is None or not isinstance(row[0], kind):
            raise CollectionFormatError.damaged(f"it lacks its entry {name!r}", self.path)
        return row[0]

    def _require_sqlite(self) -> sqlite3.Connection:
        if self._sqlite is None:
            raise CollectionError(f"The connection to {str(self.path)!r} is closed. Open the collection again.")
        return self._sqlite

    def _open(self) -> None:
        self.close()
        self._seen = None
        if self._writable:
            self._connect("rw")
            return
        try:
            self._connect("ro")
        except CollectionFormatError:
            raise
        except CollectionError:
            # A read-only folder or disk cannot hold the shared memory file that SQLite locks with. Without a log no
            # process is writing now, so the file can be read without locks for as long as it stays unchanged, which
            # `reading` watches. The order matters: if another process writes and removes the log after the
            # first line, the state read there no longer fits.
            seen = self._state_of_file()
            if self._has_log():
                self._connect("ro")
                return
            self._connect("ro", immutable=True)
            self._seen = seen

    def _connect(self, mode: str, *, immutable: bool = False) -> None:
        with explaining_errors(self.path, NOT_READ):
            self._sqlite = sqlite3.connect(
                f"{self.path.resolve().as_uri()}?mode={mode}&immutable={int(immutable)}",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                # With less than FULL, an acknowledged transaction may still be on its way to the disk.
                self.execute("PRAGMA synchronous = FULL")
                self.execute("BEGIN")
                self._check_format(self._read_schema())
                # Otherwise a crash would leave a journal, which is refused. Without locks, SQLite does not say.
                if not immutable and self.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                    raise CollectionFormatError.unreadable(self.path, "it is not in SQLite's mode WAL")
                self._roll_back()
            except BaseException:
                self.close()
                raise

    def _read_schema(self) -> list[tuple[str, str, str]]:
        """Return name, kind and statement of each entry of the schema; nothing if that takes too long."""
        self.execute("PRAGMA trusted_schema = OFF")
        self._require_sqlite().set_progress_handler(lambda: 1, _SCHEMA_STEPS)
        try:
            limit = len(_SCHEMA) + 1
            return sorted(self.execute(f"SELECT name, type, sql FROM sqlite_master LIMIT {limit}").fetchall())
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_INTERRUPT:
                raise
            return []
        finally:
            self._require_sqlite().set_progress_handler(None, 0)

    def _check_format(self, schema: list[tuple[str, str, str]]) -> None:
        """Refuse another format, and any table, view or trigger that is not ours before a statement can run it."""
        if ("meta", "table", META_TABLE) not in schema:
            raise self._foreign()
        given = self.meta("format")
        if given != FORMAT:
            raise CollectionFormatError.of_format(self.path, given, FORMAT)
        if schema != sorted(_SCHEMA):
            raise self._foreign()

    def _foreign(self) -> CollectionFormatError:
        return CollectionFormatError.unreadable(self.path, "it does not have the tables of a collection")

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Connect again if the file was written since; without locks, refuse what is read while it is written."""
        outdated = self._seen is not None and (self._has_log() or self._state_of_file() != self._seen)
        if outdated or self._sqlite is None:
            self._open()
        try:
            yield
        except Exception as error:
            self.check_unchanged(error)
            raise
        self.check_unchanged()

    def check_unchanged(self, met: Exception | None = None) -> None:
        """Raise :class:`ChangedWhileRead` if the file is read without locks and has been written since."""
        if self._seen is not None and self._state_of_file() != self._seen:
            raise ChangedWhileRead(
                f"{str(self.path)!r} changed while it was being read. Without write permission to its folder, a reader "
                "cannot lock it. Try again."
            ) from met

    def _has_log(self) -> bool:
        """Return whether the log holds anything; a writer at work or killed may leave an empty one."""
        try:
            return self.path.with_name(f"{self.path.name}-wal").stat().st_size > 0
        except FileNotFoundError:
            return False

    def _state_of_file(self) -> tuple[int, ...]:
        """Return what changes whenever the file is written or replaced."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise CollectionError(f"{str(self.path)!r} can no longer be read ({error.strerror}).") from error
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _close_cursors(self) -> None:
        """End all queries: one that a kept traceback holds would show the state of its transaction forever."""
        for cursor in list(self._cursors):
            cursor.close()
        self._cursors.clear()

    def _roll_back(self) -> None:
        self._close_cursors()
        # An error such as a full disk may have ended the transaction already.
        if self._require_sqlite().in_transaction:
            self.execute("ROLLBACK")
