"""The rows of a collection: read with their checksums, changed in transactions that are numbered and acknowledged.

Each change lists the ids that it has touched in a log, so that a reader catches up without reading everything. Once it
is committed, its number is written to a small file beside the database, which tells whether the newest changes were
lost with SQLite's own log.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._common.platform import open_file, sync_content, write_at
from ..exceptions import CollectionError, CollectionFormatError, UnknownIdError
from .chunks import CLASSES, ChunkItems, Chunks, field_column
from .database import DEFAULT_META, FORMAT, HAS_LISTED_ID, SUM_MODULUS, Connection
from .fields import Fields, fields_text, read_fields, values_of
from .items import COLUMNS, Row, checked_row
from .vectors import VectorLocation
from .vocabulary import Event, Vocabulary

_META_SUM = "meta_sum"
_COLUMNS = ", ".join(COLUMNS)
_INSERT = f"INSERT INTO items ({_COLUMNS}) VALUES ({', '.join('?' for _ in COLUMNS)})"
_LOG_META = ("log_start", "log_end", "log_sum")
# Tests replace it, so that a few items are more than a log holds.
LOG_CAPACITY = 4_000  # items; a reader that missed more loads all codes again, and the log stays small
# Changes write to the two slots of this file in turn, each in its own sector: a torn write leaves the other one intact.
COUNTER = "acknowledged"
_SECTOR = 512
_NUMBER = struct.Struct("<q")
_CHECKSUM = struct.Struct("<I")
# A reader may catch the writer in the middle of a slot once, but not several times in a row.
_READS = 3


class Store:
    """Rows, chunks and meta entries through one connection; every change has a number, the generation."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self._counter = path.with_name(COUNTER)
        # What the current transaction has done: ids to log, and what changes in chunks.
        self._changed: list[int] = []
        self._leaving: list[int] = []
        self._arriving: list[ChunkItems] = []
        self.connection = Connection(path, writable=writable)
        self.chunks = Chunks(self.connection)
        self._log = ChangeLog(self.connection)

    @staticmethod
    def create(
        path: Path, model: str, n_bits: int, more_meta: dict[str, str | int], events: Sequence[Event] = ()
    ) -> None:
        """Make a new file without items and the counter of its changes.

        ``more_meta`` are some of ``DEFAULT_META``, and ``events`` begin the vocabulary.
        """
        create_counter(path.with_name(COUNTER))
        numbers = {"generation": 0, "n_items": 0, "items_sum": 0, "n_bits": n_bits}
        meta = {"format": FORMAT} | DEFAULT_META | more_meta | numbers | {"model": model} | EMPTY_LOG
        meta |= Chunks.no_chunks(_column_names(read_fields(str(meta["fields"]))))
        records = [event.record(number) for number, event in enumerate(events)]
        meta |= {"n_vocabulary": len(records), "vocabulary_sum": sum(record[2] for record in records) % SUM_MODULUS}
        Connection.create_file(path, meta | {_META_SUM: _sum_of(meta)}, records)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one unchanging state, in which every acknowledged change is present."""
        # Read before the transaction begins: it does not see changes that are acknowledged later.
        n_acknowledged = read_acknowledged(self._counter)
        with ExitStack() as stack:
            stack.enter_context(self.connection.reading())
            if self.meta("generation") < n_acknowledged:
                # What an old connection sees is no proof that changes are lost: ask a new one.
                stack.close()
                self.connection.close()
                stack.enter_context(self.connection.reading())
            self._check_generation(n_acknowledged)
            self._check_meta()
            yield

    @contextmanager
    def writing(self) -> Iterator[int]:
        """Store everything done inside, or nothing; yield the number of the change, acknowledged at the end."""
        n_acknowledged = read_acknowledged(self._counter)
        with self.connection.writing():
            self._check_generation(n_acknowledged)
            self._check_meta()
            generation = self.meta("generation") + 1
            self._changed, self._leaving, self._arriving = [], [], []
            yield generation
            self._write_chunks(generation)
            self._log.append(generation, self._changed)
            self.set_meta("generation", generation)
            self.set_meta(_META_SUM, _sum_of(self.connection.all_meta()))
        acknowledge(self._counter, generation)
        self.connection.checkpoint()

    def acknowledge_all(self) -> None:
        """Acknowledge a change whose writer died right after the commit: from now on, other changes build on it."""
        if self.meta("generation") > read_acknowledged(self._counter):
            acknowledge(self._counter, self.meta("generation"))

    def check_unchanged(self) -> None:
        self.connection.check_unchanged()

    def compact(self) -> None:
        """Give the space of deleted rows back to the file system."""
        self.connection.vacuum()

    def meta(self, name: str) -> int:
        return self.connection.meta(name)

    def text_meta(self, name: str) -> str:
        return self.connection.text_meta(name)

    def set_meta(self, name: str, value: str | int) -> None:
        self.connection.set_meta(name, value)

    def count(self, table: str, n_rows: int, checksums: int) -> None:
        """Note how many rows a table has gained, and the sum of their checksums; only inside :meth:`writing`."""
        self.set_meta(f"n_{table}", self.meta(f"n_{table}") + n_rows)
        self.set_meta(f"{table}_sum", (self.meta(f"{table}_sum") + checksums) % SUM_MODULUS)

    def check_count(self, table: str, n_rows: int, checksums: int) -> None:
        """Refuse a table whose rows are not those that were counted."""
        expected = self.meta(f"n_{table}")
        if n_rows != expected or checksums % SUM_MODULUS != self.meta(f"{table}_sum"):
            raise CollectionFormatError.damaged(f"it holds {n_rows} {table} where {expected} were written", self.path)

    def model_name(self) -> str:
        return self.text_meta("model")

    def fields(self) -> Fields:
        """Return the declared metadata fields."""
        return read_fields(self.text_meta("fields"))

    def read_vocabulary(self, known: Vocabulary | None = None) -> Vocabulary:
        """Return the classes, or those already known if nothing has happened to them since."""
        if known is not None and len(known.events) == self.meta("n_vocabulary"):
            return known
        query = "SELECT number, version, checksum, content FROM vocabulary ORDER BY number"
        records = self.connection.execute(query).fetchall()
        try:
            self.check_count("vocabulary", len(records), sum(record[2] for record in records))
            events = [Event.of_record(*record) for record in records]
            if [record[0] for record in records] != list(range(len(records))):
                raise ValueError("its events are not numbered in their order")
            return Vocabulary.replay(events)
        except (ValueError, TypeError, RecursionError) as error:
            raise CollectionFormatError.damaged(f"its vocabulary cannot be read ({error})", self.path) from error

    def append_events(self, vocabulary: Vocabulary) -> None:
        """Store the events of a vocabulary that are not stored yet; only inside :meth:`writing`."""
        stored = self.meta("n_vocabulary")
        records = [event.record(number) for number, event in enumerate(vocabulary.events[stored:], stored)]
        self.connection.execute_many("INSERT INTO vocabulary VALUES (?, ?, ?, ?)", records)
        self.count("vocabulary", len(records), sum(record[2] for record in records))

    def rewrite_chunks(self) -> None:
        """Write all chunks again, without gaps; only inside :meth:`writing`."""
        fields = self.fields()
        self.chunks.clear(_column_names(fields))
        self._arriving = [ChunkItems.of(rows, fields) for rows in _portions(self.all_rows())]

    def rebuild(self, generation: int) -> None:
        """Make everything anew that is derived from the rows; only inside :meth:`writing`."""
        self._log.restart(generation - 1)
        self.connection.execute("REINDEX")
        self.rewrite_chunks()

    def declare(self, fields: Fields, generation: int) -> None:
        """Add declared fields, whose values the items must fit; only inside :meth:`writing`."""
        values = values_of(self.all_rows(), fields)
        for name in fields:
            self.chunks.add_column(field_column(name), values[name], generation)
        self.set_meta("fields", fields_text(self.fields() | fields))

    def put(self, rows: Iterable[Row], *, present: list[int] | None = None) -> None:
        """Insert rows, replacing those with the same id; only inside :meth:`writing`.

        ``present`` are the ids that are stored already, if that is known.
        """
        rows = list(rows)
        self.delete([row.id for row in rows] if present is None else present)
        self._changed += [] if present is None else [row.id for row in rows]
        self._insert(rows)
        self._arriving.append(ChunkItems.of(rows, self.fields()))

    def move(self, rows: Iterable[Row]) -> None:
        """Replace rows by others that differ only in where their vectors are; only inside :meth:`writing`."""
        rows = list(rows)
        self._changed += [row.id for row in rows]
        self._delete([row.id for row in rows])
        self._insert(rows)

    def delete(self, ids: list[int]) -> None:
        """Delete rows; only inside :meth:`writing`."""
        self._changed += ids
        self._leaving += ids
        self._arriving = [items.without(np.array(ids, np.int64)) for items in self._arriving]
        self._delete(ids)

    def read_codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all ids, ascending, and the packed codes; refuse damaged chunks, and a damaged log of changes."""
        self._log.read()
        return self.chunks.read_codes()

    def changed_since(self, generation: int) -> list[int] | None:
        """Return the ids that may have changed since a generation, or None if that is not known."""
        return self._log.changed_since(generation)

    def present(self, ids: list[int]) -> list[int]:
        """Return those of the ids that are stored."""
        rows = self.connection.execute(f"SELECT id FROM items WHERE {HAS_LISTED_ID}", [json.dumps(ids)])
        return [row[0] for row in rows]

    def rows(self, ids: list[int]) -> list[Row]:
        """Return the rows of these ids, in their order."""
        records = self.connection.execute(f"SELECT {_COLUMNS} FROM items WHERE {HAS_LISTED_ID}", [json.dumps(ids)])
        by_id = {record[0]: self._checked(record) for record in records}
        if len(by_id) < len(ids):
            raise self._missing(next(item for item in ids if item not in by_id))
        return [by_id[item] for item in ids]

    def all_rows(self) -> Iterator[Row]:
        """Yield every row by id; at the end, refuse the file if any is missing or changed."""
        n_items, total, last = 0, 0, None
        for record in self.connection.execute(f"SELECT {_COLUMNS} FROM items ORDER BY id"):
            row = self._checked(record)
            if last is not None and row.id <= last:
                # Damaged pages that point to each other could otherwise yield the same rows forever.
                raise CollectionFormatError.damaged(f"it holds the item {row.id} after the item {last}", self.path)
            n_items, total, last = n_items + 1, total + record[-1], row.id
            yield row
        self.check_count("items", n_items, total)
        self._log.read()

    def matching(self, condition: str, parameters: Sequence[str | int | float]) -> list[int]:
        """Return the ids whose row meets a condition of :func:`compile_conditions`; no checksums are compared."""
        rows = self.connection.execute(f"SELECT id FROM items WHERE {condition} ORDER BY id", parameters)
        return [row[0] for row in rows]

    def having(self, column: str, values: Sequence[str | int]) -> list[int]:
        """Return the ids whose row has one of these values in a column; no checksums are compared."""
        if column not in COLUMNS:
            raise ValueError(f"{column!r} is no column of items.")
        query = f"SELECT id FROM items WHERE {column} IN (SELECT value FROM json_each(?)) ORDER BY id"
        return [row[0] for row in self.connection.execute(query, [json.dumps(list(values))])]

    def metadata_names(self) -> list[str]:
        """Return the names of all metadata that items have."""
        query = "SELECT DISTINCT key FROM items, json_each(metadata)"
        return [row[0] for row in self.connection.execute(query)]

    def has_labels_besides(self, ids: list[int]) -> bool:
        """Return whether an item that is not among these has a label."""
        query = f"SELECT 1 FROM items WHERE class_id IS NOT NULL AND NOT {HAS_LISTED_ID} LIMIT 1"
        return self.connection.execute(query, [json.dumps(ids)]).fetchone() is not None

    def vector_locations(self, ids: list[int]) -> dict[int, VectorLocation]:
        """Return where the vector of each id is; only the vector itself tells whether that is right."""
        query = f"SELECT id, vector_position, vector_checksum FROM items WHERE {HAS_LISTED_ID}"
        found = {}
        for item, position, checksum in self.connection.execute(query, [json.dumps(ids)]):
            if type(position) is not int or type(checksum) is not int:
                raise CollectionFormatError.damaged(f"it has lost the location of the vector of item {item}", self.path)
            found[item] = VectorLocation(position, checksum)
        if len(found) < len(ids):
            raise self._missing(next(item for item in ids if item not in found))
        return found

    def check_integrity(self) -> None:
        """Let SQLite examine every page, and compare all rows with the chunks; only inside :meth:`reading`."""
        findings = [row[0] for row in self.connection.execute("PRAGMA integrity_check")]
        if findings != ["ok"]:
            raise CollectionFormatError.damaged(findings[0], self.path)
        self._compare_chunks()

    def _compare_chunks(self) -> None:
        """Refuse chunks that say anything else than the rows."""
        fields, rows = self.fields(), self.all_rows()
        ids, packed = self.chunks.read_codes()
        columns = {name: self.chunks.read_column(name, {}) for name in _column_names(fields)}
        start = 0
        for number, size in enumerate(self.chunks.sizes()):
            expected = ChunkItems.of(list(islice(rows, size)), fields)
            found = {name: column[number].to_list() for name, column in columns.items() if number < len(column)}
            end = start + size
            same = np.array_equal(ids[start:end], expected.ids) and np.array_equal(packed[start:end], expected.packed)
            if (size and not same) or found != expected.columns:
                raise CollectionFormatError.derived(
                    f"it says something else about its items in the chunk {number} than in their rows", self.path
                )
            start = end
        if next(rows, None) is not None:
            raise CollectionFormatError.derived("it has rows of items that are in no chunk", self.path)

    def _write_chunks(self, generation: int) -> None:
        """Bring the chunks in step with the rows that this transaction has changed."""
        arriving = reduce(ChunkItems.joined, self._arriving, ChunkItems.of([], self.fields()))
        self.chunks.replace(np.union1d(np.array(self._leaving, np.int64), arriving.ids), arriving, generation)
        if sum(self.chunks.sizes()) != self.meta("n_items"):
            raise CollectionFormatError.damaged("it holds other items in its rows than in its chunks", self.path)

    def _insert(self, rows: list[Row]) -> None:
        checksums = [row.checksum for row in rows]
        self.connection.execute_many(_INSERT, ((*row, checksum) for row, checksum in zip(rows, checksums, strict=True)))
        self.count("items", len(rows), sum(checksums))

    def _delete(self, ids: list[int]) -> None:
        if not ids:
            return
        chosen = [json.dumps(ids)]
        n_gone, total = self.connection.execute(
            f"SELECT count(*), coalesce(sum(checksum), 0) FROM items WHERE {HAS_LISTED_ID}", chosen
        ).fetchone()
        self.connection.execute(f"DELETE FROM items WHERE {HAS_LISTED_ID}", chosen)
        self.count("items", -n_gone, -total)

    def _check_generation(self, n_acknowledged: int) -> None:
        generation = self.meta("generation")
        if generation < n_acknowledged:
            raise CollectionFormatError.damaged(
                f"it has lost changes that were acknowledged. {n_acknowledged} were stored, and the database ends with "
                f"number {generation}. Its write-ahead log is damaged or missing",
                self.path.parent,
            )

    def _checked(self, record: tuple[Any, ...]) -> Row:
        row = checked_row(record)
        if row is None:
            raise CollectionFormatError.damaged(f"its item {record[0]} does not match its checksum", self.path)
        return row

    def _check_meta(self) -> None:
        """Refuse damaged meta entries, and another format: either may be new since the last transaction."""
        if self.meta("format") != FORMAT:
            raise CollectionFormatError.damaged(f"it has become one of format {self.meta('format')}", self.path)
        if _sum_of(self.connection.all_meta()) != self.meta(_META_SUM):
            raise CollectionFormatError.damaged("it holds meta entries that do not match their checksum", self.path)

    def _missing(self, item: int) -> Exception:
        """Return the error for an item without a row, which is damage if the chunks know the item."""
        if self.chunks.holds(item):
            return CollectionFormatError.damaged(f"it has lost the row of item {item}", self.path)
        return UnknownIdError(item)


def _sum_of(meta: dict[str, Any]) -> int:
    """Return the checksum of all meta entries but itself."""
    pairs = sorted((str(name), repr(value)) for name, value in meta.items() if name != _META_SUM)
    return zlib.crc32(json.dumps(pairs).encode())


def _column_names(fields: Fields) -> list[str]:
    return [CLASSES, *(field_column(name) for name in fields)]


def _portions(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while portion := list(islice(rows, 10_000)):
        yield portion


class _Entries(NamedTuple):
    """Pairs of generation and id: what changed after generation ``start`` and up to ``end``."""

    start: int
    end: int
    pairs: list[tuple[int, int]]

    @property
    def checksum(self) -> int:
        return sum(zlib.crc32(struct.pack("<qq", *pair)) for pair in [(self.start, self.end), *self.pairs])

    @property
    def meta(self) -> dict[str, int]:
        return dict(zip(_LOG_META, (self.start, self.end, self.checksum), strict=True))


#: What is said about the log of a new collection.
EMPTY_LOG = _Entries(0, 0, []).meta


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
        new = [(generation, item) for item in ids] if len(ids) <= LOG_CAPACITY else []
        if len(log.pairs) + len(ids) <= LOG_CAPACITY:
            log = _Entries(log.start, generation, log.pairs + new)
        else:
            log = _Entries(generation - 1 if new else generation, generation, new)
            self._connection.execute("DELETE FROM changes")
        self._connection.execute_many("INSERT INTO changes VALUES (?, ?)", new)
        for name, value in log.meta.items():
            self._connection.set_meta(name, value)

    def restart(self, generation: int) -> None:
        """Begin the log anew, so that readers of earlier states load all codes again."""
        self._connection.execute("DELETE FROM changes")
        for name, value in _Entries(generation, generation, []).meta.items():
            self._connection.set_meta(name, value)

    def read(self) -> _Entries:
        """Return the log, or refuse a damaged one."""
        start, end, total = (self._connection.meta(name) for name in _LOG_META)
        query = f"SELECT generation, id FROM changes LIMIT {LOG_CAPACITY + 1}"
        log = _Entries(start, end, self._connection.execute(query).fetchall())
        try:
            intact = log.checksum == total and end == self._connection.meta("generation")
        except (TypeError, struct.error):
            intact = False
        if not intact:
            raise CollectionFormatError.derived("its log of changes does not match its checksum", self._connection.path)
        return log


def create_counter(path: Path) -> None:
    """Make the file of a new collection, whose first state is number 0."""
    with path.open("xb") as file:
        file.write(2 * _slot(0).ljust(_SECTOR, b"\0"))
        file.flush()
        os.fsync(file.fileno())


def acknowledge(path: Path, generation: int) -> None:
    """Write the number of a committed change to the disk."""
    slot = _slot(generation)
    try:
        handle = open_file(path, os.O_WRONLY)
        try:
            if write_at(handle, slot, generation % 2 * _SECTOR) != len(slot):
                raise OSError(0, "the number was written in part")
            sync_content(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise CollectionError(
            f"The change is stored, but {str(path)!r} could not be written ({error.strerror}), so damage to the "
            "log might go unnoticed. Repair the disk and open the collection again."
        ) from error


def read_acknowledged(path: Path) -> int:
    """Return the number of the last acknowledged change."""
    for _ in range(_READS):
        numbers = _numbers(path)
        if numbers:
            return max(numbers)
    raise CollectionFormatError.damaged("without its numbers, lost changes cannot be noticed", path)


def _numbers(path: Path) -> list[int]:
    """Return the numbers in the slots that are intact."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise CollectionFormatError.damaged(f"{str(path)!r} is missing") from error
    except OSError as error:
        raise CollectionError(f"{str(path)!r} cannot be read ({error.strerror}). Nothing was read.") from error
    length = _NUMBER.size + _CHECKSUM.size
    slots = [content[start : start + length] for start in (0, _SECTOR)]
    return [_NUMBER.unpack(slot[: _NUMBER.size])[0] for slot in slots if len(slot) == length and _is_intact(slot)]


def _is_intact(slot: bytes) -> bool:
    number, checksum = slot[: _NUMBER.size], slot[_NUMBER.size :]
    return _CHECKSUM.unpack(checksum)[0] == zlib.crc32(number)


def _slot(generation: int) -> bytes:
    number = _NUMBER.pack(generation)
    return number + _CHECKSUM.pack(zlib.crc32(number))
