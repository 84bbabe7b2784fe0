"""The items of a collection: read with their checksums, changed in transactions that are numbered and acknowledged.

Each change lists the ids that it has touched in a log, so that a reader catches up without reading everything. Once it
is committed, its number is written to a small file beside the database, which tells whether the newest changes were
lost with SQLite's own log.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._common.platform import open_file, sync_content, write_at
from .._common.threads import tiles
from ..exceptions import CollectionError, CollectionFormatError
from .blocks import (
    CLASSES,
    CODES,
    COLUMNS,
    IDS,
    MODELS,
    OWN_CODES,
    POSITIONS,
    TEXTS,
    VECTOR_SUMS,
    BlockCache,
    Blocks,
    field_column,
)
from .columns import Column
from .database import DEFAULT_META, FORMAT, SUM_MODULUS, Connection
from .fields import Fields, declared_values, described, fields_text, read_fields
from .items import NewItems, Row
from .texts import Text, Texts
from .vectors import VectorLocations
from .vocabulary import Event, Vocabulary

_META_SUM = "meta_sum"
_ROWS_AT_ONCE = 10_000
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
    """Items and meta entries through one connection; every change has a number, the generation."""

    def __init__(self, path: Path, *, writable: bool, cache: BlockCache | None = None) -> None:
        self.path = path
        self.cache = BlockCache() if cache is None else cache
        self._counter = path.with_name(COUNTER)
        # The ids that the current transaction has changed, for the log.
        self._changed: list[np.ndarray] = []
        self._generation = 0
        self.connection = Connection(path, writable=writable)
        self.blocks = Blocks(self.connection, self.cache)
        self.texts = Texts(self.connection)
        self._log = ChangeLog(self.connection)

    @staticmethod
    def create(
        path: Path, model: str, n_bits: int, more_meta: dict[str, str | int], events: Sequence[Event] = ()
    ) -> None:
        """Make a new file without items and the counter of its changes.

        ``more_meta`` are some of ``DEFAULT_META``, and ``events`` begin the vocabulary.
        """
        create_counter(path.with_name(COUNTER))
        numbers = {"generation": 0, "n_items": 0, "n_bits": n_bits}
        meta = {"format": FORMAT} | DEFAULT_META | more_meta | numbers | {"model": model} | EMPTY_LOG
        meta |= Blocks.no_blocks(_column_names(read_fields(str(meta["fields"]))))
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
            self.blocks.begin(self.meta("generation"))
            yield

    @contextmanager
    def writing(self) -> Iterator[int]:
        """Store everything done inside, or nothing; yield the number of the change, acknowledged at the end."""
        n_acknowledged = read_acknowledged(self._counter)
        with self.connection.writing():
            self._check_generation(n_acknowledged)
            self._check_meta()
            generation = self._generation = self.meta("generation") + 1
            self._changed = []
            self.blocks.begin(generation - 1, to_change=True)
            yield generation
            self.blocks.note_totals()
            self._log.append(generation, self._changed)
            self.set_meta("generation", generation)
            self.set_meta(_META_SUM, _sum_of(self.connection.all_meta()))
        self.blocks.keep(generation)
        acknowledge(self._counter, generation)
        self.connection.checkpoint()

    def acknowledge_all(self) -> None:
        """Acknowledge a change whose writer died right after the commit: from now on, other changes build on it."""
        if self.meta("generation") > read_acknowledged(self._counter):
            acknowledge(self._counter, self.meta("generation"))

    def check_unchanged(self) -> None:
        self.connection.check_unchanged()

    def compact(self) -> None:
        """Give the space of deleted items back to the file system."""
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

    def rewrite_blocks(self) -> None:
        """Write all blocks again, without gaps; only inside :meth:`writing`."""
        columns = self._all_columns()
        self.blocks.clear(list(columns))
        self.blocks.replace(np.empty(0, np.int64), columns, self._generation)

    def rebuild(self) -> int:
        """Make everything anew that is derived from the items, if they are intact; only inside :meth:`writing`."""
        self._log.restart(self._generation - 1)
        self.connection.execute("REINDEX")
        for _ in self.all_rows():
            pass
        return self.meta("n_items")

    def declare(self, fields: Fields) -> None:
        """Add declared fields, whose values the items must fit; only inside :meth:`writing`."""
        ids = self.blocks.whole(IDS).values
        texts = self.texts.read(ids, self.blocks.whole(TEXTS))
        items = np.array([*texts], np.int64)
        found = described([text.metadata for text in texts.values()], items, fields)
        for name, column in found.columns.items():
            nothing = Column.repeated(None, len(ids))
            column = nothing.assigned(np.searchsorted(ids, items), column) if len(items) else nothing
            self.blocks.add_column(name, column, self._generation)
        self.set_meta("fields", fields_text(self.fields() | fields))
        self._replace_texts(items, [text.reference for text in texts.values()], found.others)

    def put(self, items: NewItems, *, present: np.ndarray) -> None:
        """Insert items in place of those that are present; only inside :meth:`writing`."""
        self._changed.append(items.ids)
        self.texts.drop(present)
        sums = self.texts.insert(items.ids, items.references, items.others)
        columns = {**items.columns, IDS: Column(items.ids), TEXTS: sums}
        order = np.argsort(items.ids, kind="stable")
        if (np.diff(order) != 1).any():
            columns = {name: column.take(order) for name, column in columns.items()}
        n_gone = self.blocks.replace(present, columns, self._generation)
        self.set_meta("n_items", self.meta("n_items") + len(items.ids) - n_gone)

    def assign(self, ids: np.ndarray, columns: Mapping[str, Column]) -> None:
        """Give stored items other values in some columns; only inside :meth:`writing`."""
        self._changed.append(ids)
        self.blocks.assign(ids, columns, self._generation)

    def describe(self, ids: np.ndarray, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Give stored items other metadata, and leave their references; only inside :meth:`writing`."""
        texts = self.texts.read(ids, self.blocks.take(ids, [TEXTS])[TEXTS])
        new = described(metadata, ids, self.fields())
        self.assign(ids, new.columns)
        references = [texts[item].reference if item in texts else None for item in ids.tolist()]
        self._replace_texts(ids, references, new.others)

    def delete(self, ids: np.ndarray) -> None:
        """Delete items; only inside :meth:`writing`."""
        self._changed.append(ids)
        self.texts.drop(ids)
        nothing = {name: Column.of([]) for name in _column_names(self.fields())}
        n_gone = self.blocks.replace(ids, nothing, self._generation)
        self.set_meta("n_items", self.meta("n_items") - n_gone)

    def read_codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all ids, ascending, and the packed codes; refuse damaged blocks, and a damaged log of changes."""
        self._log.read()
        n_items, ids = self.meta("n_items"), self.blocks.whole(IDS, keep=False).values.astype(np.int64)
        try:
            packed = self.blocks.whole(CODES, keep=False).values
        except ValueError as error:
            raise self._damaged("it holds codes of several lengths") from error
        if {len(ids), len(packed)} != {n_items} or np.any(ids[1:] <= ids[:-1]):
            raise self._damaged(f"it holds {len(ids)} ids and {len(packed)} codes where {n_items} were written")
        return ids, packed

    def changed_since(self, generation: int) -> list[int] | None:
        """Return the ids that may have changed since a generation, or None if that is not known."""
        return self._log.changed_since(generation)

    def column(self, name: str) -> Column:
        """Return a column of all items, by ascending id."""
        column = self.blocks.whole(name)
        if len(column) != self.meta("n_items"):
            raise self._damaged(f"it holds {len(column)} values of {name!r} for {self.meta('n_items')} items")
        return column

    def present(self, ids: np.ndarray) -> np.ndarray:
        """Return those of the ids that are stored."""
        return ids[self.blocks.located(ids)[0]]

    def rows(self, ids: Sequence[int] | np.ndarray) -> list[Row]:
        """Return the rows of these ids, in their order."""
        wanted, fields = np.asarray(ids, np.int64), self.fields()
        return self._rows(wanted, self.blocks.take(wanted, _column_names(fields)[1:]), fields)

    def all_rows(self) -> Iterator[Row]:
        """Yield every row by id; refuse the file if any is missing or changed."""
        self._log.read()
        fields, columns = self.fields(), self._all_columns()
        ids, n_texts = columns[IDS].values, 0
        for part in tiles(len(ids), _ROWS_AT_ONCE):
            portion = {name: column.take(part) for name, column in columns.items()}
            n_texts += int(np.count_nonzero(portion[TEXTS].filled(-1) >= 0))
            yield from self._rows(ids[part], portion, fields)
        if len(self.texts) != n_texts:
            raise self._damaged("it holds texts of items that have none")

    def check_texts(self, ids: np.ndarray | None = None) -> None:
        """Compare the texts of all items, or of some, with their checksums."""
        ids = self.column(IDS).values if ids is None else ids
        for part in tiles(len(ids), _ROWS_AT_ONCE):
            self.texts.check(ids[part], self.blocks.take(ids[part], [TEXTS])[TEXTS])

    def has_labels_besides(self, ids: np.ndarray) -> bool:
        """Return whether an item that is not among these has a label."""
        labeled = self.blocks.whole(IDS).values[self.blocks.whole(CLASSES).filled(-1) >= 0]
        return not np.isin(labeled, ids).all()

    def vector_locations(self, ids: Sequence[int] | np.ndarray) -> VectorLocations:
        """Return where the vector of each id is; only the vector itself tells whether that is right."""
        wanted = np.asarray(ids, np.int64)
        columns = self.blocks.take(wanted, [POSITIONS, VECTOR_SUMS])
        positions, sums = columns[POSITIONS].filled(-1), columns[VECTOR_SUMS].filled(-1)
        lost = wanted[(positions < 0) | (sums < 0)]
        if len(lost):
            raise self._damaged(f"it has lost the location of the vector of item {lost[0]}")
        return VectorLocations(positions, sums)

    def check_integrity(self) -> None:
        """Let SQLite examine every page, and read all items; only inside :meth:`reading`."""
        findings = [row[0] for row in self.connection.execute("PRAGMA integrity_check")]
        if findings != ["ok"]:
            raise self._damaged(findings[0])
        names = {row[0] for row in self.connection.execute("SELECT DISTINCT name FROM blocks")}
        strange = names - set(_column_names(self.fields()))
        if strange:
            raise self._damaged(f"it holds blocks of {min(map(str, strange))!r}, which is no column")
        for _ in self.all_rows():
            pass

    def _all_columns(self) -> dict[str, Column]:
        return {name: self.column(name) for name in _column_names(self.fields())}

    def _rows(self, ids: np.ndarray, columns: Mapping[str, Column], fields: Fields) -> list[Row]:
        texts, nothing = self.texts.read(ids, columns[TEXTS]), Text(None, {})
        facts = [columns[name].to_list() for name in (CODES, OWN_CODES, CLASSES, MODELS, POSITIONS, VECTOR_SUMS)]
        declared = declared_values(columns, fields, len(ids))
        rows = []
        for item, known, values in zip(ids.tolist(), declared, zip(*facts, strict=True), strict=True):
            said = texts.get(item, nothing)
            metadata = dict(sorted({**said.metadata, **known}.items())) if said.metadata else known
            rows.append(Row._make((item, *values, said.reference, metadata)))
        return rows

    def _replace_texts(
        self, ids: np.ndarray, references: Sequence[str | None], metadata: Sequence[str | None] | None
    ) -> None:
        self.texts.drop(ids)
        self.blocks.assign(ids, {TEXTS: self.texts.insert(ids, references, metadata)}, self._generation)

    def _check_generation(self, n_acknowledged: int) -> None:
        generation = self.meta("generation")
        if generation < n_acknowledged:
            raise CollectionFormatError.damaged(
                f"it has lost changes that were acknowledged. {n_acknowledged} were stored, and the database ends with "
                f"number {generation}. Its write-ahead log is damaged or missing",
                self.path.parent,
            )

    def _check_meta(self) -> None:
        """Refuse damaged meta entries, and another format: either may be new since the last transaction."""
        if self.meta("format") != FORMAT:
            raise self._damaged(f"it has become one of format {self.meta('format')}")
        if _sum_of(self.connection.all_meta()) != self.meta(_META_SUM):
            raise self._damaged("it holds meta entries that do not match their checksum")

    def _damaged(self, finding: str) -> CollectionFormatError:
        return CollectionFormatError.damaged(finding, self.path)


def _sum_of(meta: dict[str, Any]) -> int:
    """Return the checksum of all meta entries but itself."""
    pairs = sorted((str(name), repr(value)) for name, value in meta.items() if name != _META_SUM)
    return zlib.crc32(json.dumps(pairs).encode())


def _column_names(fields: Fields) -> list[str]:
    return [*COLUMNS, *map(field_column, fields)]


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

    def append(self, generation: int, changed: Sequence[np.ndarray]) -> None:
        """Note the ids that a change has touched; start a new log if the old one is full."""
        log, n_ids = self.read(), sum(map(len, changed))
        new = [(generation, item) for ids in changed for item in ids.tolist()] if n_ids <= LOG_CAPACITY else []
        if len(log.pairs) + n_ids <= LOG_CAPACITY:
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
