"""Chunks: the codes, classes and declared fields of thousands of items in one value of the database.

A collection of a million items opens by reading a few hundred of them, and a filter on a declared field reads as few.
They are derived from the rows, in the same transaction, and can be made anew (`Store.rebuild`). Each has a checksum
over its place and the change that wrote it, and a meta entry holds the sum of these, so a chunk that is damaged,
missing, or left from an earlier state is noticed whenever chunks are read.
"""

from __future__ import annotations

import json
import operator
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np

from ..exceptions import CollectionFormatError
from .database import SUM_MODULUS, Connection
from .fields import Fields, Value, values_of
from .items import Row

#: The comparisons of filters.
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INTEGERS = ("<i1", "<i2", "<i4", "<i8")
_TYPES = {*_INTEGERS, "<f8"}
# Whole numbers below it are exact as floats, and all other floats are whole.
_EXACT = 2**53
#: The column of the ids of classes.
CLASSES = "classes"
# A change of one item writes a whole chunk: 50 kB at 128 bits.
# Tests replace it, so that a few items take several chunks.
ITEMS_PER_CHUNK = 2048
_LOWEST = -(2**63)
_CODES = "codes"
_PLACE = struct.Struct("<qq")
_ID_BYTES = 8


class Column(NamedTuple):
    """Values of items: numbers, or positions in ``words``; ``present`` tells which items have one, None if all do."""

    values: np.ndarray
    present: np.ndarray | None
    words: list[str] | None

    @classmethod
    def of(cls, values: Sequence[Value | None]) -> Self:
        """Return a column of values of one type; None stands for no value."""
        present = np.array([value is not None for value in values], np.bool_)
        known = [value for value in values if value is not None]
        words = None
        if known and isinstance(known[0], str):
            words = list(dict.fromkeys(map(str, known)))
            position = {word: number for number, word in enumerate(words)}
            known = [position[str(value)] for value in known]
        numbers = np.array(known, np.float64 if known and isinstance(known[0], float) else np.int64)
        filled = np.zeros(len(values), _narrowest(numbers))
        filled[present] = numbers
        return cls(filled, None if present.all() else present, words)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Undo :meth:`to_bytes`; raise ValueError for contents that cannot be a column."""
        end = content.index(b"\n") + 1
        header = json.loads(content[:end])
        n_items, kind, words = header["n_items"], header["type"], header["words"]
        if kind not in (_TYPES if words is None else _INTEGERS) or not isinstance(words, list | None):
            raise ValueError(f"its header is {header}")
        n_mask = -(-n_items // 8) if header["has_gaps"] else 0
        values = np.frombuffer(content, kind, offset=end + n_mask)
        if len(values) != n_items:
            raise ValueError(f"it has {len(values)} values for {n_items} items")
        present = None
        if header["has_gaps"]:
            present = np.unpackbits(np.frombuffer(content, np.uint8, n_mask, end), count=n_items).astype(np.bool_)
        # As unsigned numbers, those below zero are the largest.
        if words is not None and n_items and values.view(kind.replace("i", "u")).max() >= max(len(words), 1):
            raise ValueError("it has a place without a word")
        return cls(values, present, words)

    def to_bytes(self) -> bytes:
        """Return a line of JSON, one bit per item if some have no value, and the values."""
        header = {
            "n_items": len(self.values),
            "type": self.values.dtype.newbyteorder("<").str.replace("|", "<"),
            "has_gaps": self.present is not None,
            "words": self.words,
        }
        mask = b"" if self.present is None else np.packbits(self.present).tobytes()
        return json.dumps(header).encode() + b"\n" + mask + self.values.tobytes()

    def to_list(self) -> list[Value | None]:
        """Undo :meth:`of`, except that booleans are 0 and 1."""
        values: list[Value | None] = self.values.tolist()
        if self.words is not None:
            words = self.words or [""]
            values = [words[position] for position in self.values.tolist()]
        if self.present is not None:
            values = [value if known else None for value, known in zip(values, self.present.tolist(), strict=True)]
        return values

    def passing(self, word: str, value: Value | tuple[Value, ...]) -> np.ndarray:
        """Return which items have a value that compares with this one, or equals one of several."""
        if self.words is not None:
            known = self.words or [""]
            table = (
                [one in value for one in known]
                if isinstance(value, tuple)
                else [COMPARISONS[word](one, value) for one in known]
            )
            passing = np.array(table, np.bool_).take(self.values)
        elif isinstance(value, tuple):
            return np.any([self.passing("=", one) for one in value], axis=0)
        elif isinstance(value, str):
            # No item of this chunk has a value, or there would be words.
            return np.zeros(len(self.values), np.bool_)
        else:
            passing = _compared(COMPARISONS[word], self.values, value)
        return self.masked(passing)

    def masked(self, passing: np.ndarray) -> np.ndarray:
        """Return which items pass and have a value."""
        return passing if self.present is None else passing & self.present


#: Decoded chunks of columns by name and first id, with the change that wrote each and its checksum.
ColumnCache = dict[str, dict[int, tuple[int, int, Column]]]


def _compared(compare: Callable[[Any, Any], Any], values: np.ndarray, value: int | float) -> np.ndarray:
    """Compare as exact numbers do, whatever type holds them."""
    if value != value:
        # Nothing compares with NaN, and JSON holds none.
        return np.zeros(len(values), np.bool_)
    if isinstance(value, float) and _EXACT <= abs(value) < float("inf"):
        value = int(value) if values.dtype.kind == "i" else value
    if isinstance(value, float) and values.dtype.kind == "i":
        values = values.astype(np.float64)
    return compare(values, int(value) if isinstance(value, bool) else value)


def _narrowest(numbers: np.ndarray) -> np.dtype[Any]:
    if numbers.dtype.kind == "f":
        return np.dtype("<f8")
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    kinds = (np.dtype(kind) for kind in _INTEGERS)
    return next(kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def field_column(name: str) -> str:
    """Return the name of the column of a declared field."""
    return f"field {name}"


@dataclass(frozen=True, slots=True, eq=False)
class ChunkItems:
    """Items by ascending id: their codes, and their values in each column."""

    ids: np.ndarray
    packed: np.ndarray
    columns: dict[str, list[Value | None]]

    @classmethod
    def of(cls, rows: Sequence[Row], fields: Fields) -> ChunkItems:
        """Return what chunks hold of rows of any order."""
        ordered = sorted(rows, key=itemgetter(0))
        values = values_of(ordered, fields)
        columns: dict[str, list[Value | None]] = {CLASSES: [row.class_id for row in ordered]}
        columns |= {field_column(name): values[name] for name in fields}
        packed = np.frombuffer(b"".join([row.code for row in ordered]), np.uint8)
        ids = np.array([row.id for row in ordered], np.int64)
        return cls(ids, packed.reshape(len(ids), -1 if len(ids) else 0), columns)

    def part(self, span: slice) -> ChunkItems:
        """Return some of the items."""
        columns = {name: values[span] for name, values in self.columns.items()}
        return ChunkItems(self.ids[span], self.packed[span], columns)

    def without(self, ids: np.ndarray) -> ChunkItems:
        """Return the items whose ids are not among these."""
        kept = np.flatnonzero(~np.isin(self.ids, ids))
        if len(kept) == len(self.ids):
            return self
        columns = {name: [values[position] for position in kept.tolist()] for name, values in self.columns.items()}
        return ChunkItems(self.ids[kept], self.packed[kept], columns)

    def joined(self, other: ChunkItems) -> ChunkItems:
        """Return these items and others, whose ids are different."""
        if not len(self.ids) or not len(other.ids):
            return self if len(self.ids) else other
        ids, packed = np.concatenate([self.ids, other.ids]), np.concatenate([self.packed, other.packed])
        columns = {name: values + other.columns[name] for name, values in self.columns.items()}
        if self.ids[-1] < other.ids[0]:
            return ChunkItems(ids, packed, columns)
        order = np.argsort(ids)
        columns = {name: [values[position] for position in order.tolist()] for name, values in columns.items()}
        return ChunkItems(ids[order], packed[order], columns)


class Chunks:
    """The chunks of a database, through one connection and inside its transactions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read_codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all ids, ascending, and the packed codes; refuse damaged chunks."""
        query = "SELECT first, n_items, generation, checksum, content FROM chunks ORDER BY first"
        chunks = [_split(content, n_items) for n_items, _, content in self._checked_codes(query)]
        ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in chunks)])
        if len(ids) != self._connection.meta("n_items") or np.any(ids[1:] <= ids[:-1]):
            raise self._damaged(f"it holds the codes of {len(ids)} items where others were written")
        filled = [packed for _, packed in chunks if len(packed)]
        if len({packed.shape[1] for packed in filled}) > 1:
            raise self._damaged("it holds codes of several lengths")
        return ids, np.concatenate(filled) if filled else np.empty((0, 0), np.uint8)

    def read_column(self, name: str, cache: ColumnCache) -> list[Column]:
        """Return a column, chunk by chunk; unchanged ones come from the cache."""
        known, found, total, last = cache.get(name, {}), {}, 0, None
        # One query reads all contents at first. Later, most chunks are known, and few are read one by one.
        content = "NULL" if known else "content"
        query = f"SELECT first, generation, checksum, {content} FROM column_chunks WHERE name = ? ORDER BY first"
        for first, generation, checksum, content in self._connection.execute(query, [name]):
            if last is not None and first <= last:
                # As with codes: damaged pages could yield the same chunks forever.
                raise self._damaged(f"it holds the chunk {first} of {name!r} after the chunk {last}")
            entry = known.get(first)
            if entry is None or entry[:2] != (generation, checksum):
                entry = generation, checksum, self._column(name, first, generation, checksum, content)
            found[first], total, last = entry, total + checksum, first
        self._check_total(name, total)
        cache[name] = found
        return [column for _, _, column in found.values()]

    def holds(self, item: int) -> bool:
        """Return whether an item is in a chunk."""
        query = (
            "SELECT first, n_items, generation, checksum, content FROM chunks WHERE first <= ? "
            "ORDER BY first DESC LIMIT 1"
        )
        chunks = self._checked_codes(query, [item], total=None)
        return any(item in _split(content, n_items)[0] for n_items, _, content in chunks)

    @staticmethod
    def no_chunks(names: Sequence[str]) -> dict[str, int]:
        """Return the meta entries about chunks of a new collection with these columns."""
        return {_total_of(name): 0 for name in (_CODES, *names)}

    def clear(self, names: Sequence[str]) -> None:
        """Remove all chunks, and begin these columns."""
        self._connection.execute("DELETE FROM chunks")
        self._connection.execute("DELETE FROM column_chunks")
        for key, value in self.no_chunks(names).items():
            self._connection.set_meta(key, value)

    def sizes(self) -> list[int]:
        """Return the number of items of each chunk, by ascending id."""
        return [row[0] for row in self._connection.execute("SELECT n_items FROM chunks ORDER BY first")]

    def is_scattered(self) -> bool:
        """Return whether there are more than twice as many chunks as the items need."""
        sizes = self.sizes()
        return len(sizes) > max(2 * (sum(sizes) // ITEMS_PER_CHUNK), 1)

    def add_column(self, name: str, column: list[Value | None], generation: int) -> None:
        """Add a column with one value per item, by ascending id."""
        self._connection.execute("DELETE FROM column_chunks WHERE name = ?", [name])
        self._connection.set_meta(_total_of(name), 0)
        start = 0
        for first, n_items in self._connection.execute("SELECT first, n_items FROM chunks ORDER BY first").fetchall():
            self._write_column(name, first, column[start : start + n_items], generation)
            start += n_items

    def replace(self, changed: np.ndarray, items: ChunkItems, generation: int) -> None:
        """Remove the items with these ids, ascending, and put others in, whose ids are among them."""
        firsts = [row[0] for row in self._connection.execute("SELECT first FROM chunks ORDER BY first")] or [_LOWEST]
        owners = np.searchsorted(np.array(firsts, np.int64), changed, side="right") - 1
        for inside in np.split(changed, np.flatnonzero(np.diff(owners)) + 1) if len(changed) else []:
            owner = int(np.searchsorted(np.array(firsts, np.int64), inside[0], side="right")) - 1
            start, stop = np.searchsorted(items.ids, inside[0]), np.searchsorted(items.ids, inside[-1], side="right")
            arriving = items.part(slice(int(start), int(stop)))
            old = self._take_out(firsts[owner], list(items.columns))
            merged = arriving if old is None else old.without(inside).joined(arriving)
            self._put_in(firsts[owner], merged, generation, is_last=owner == len(firsts) - 1)

    def _put_in(self, first: int, items: ChunkItems, generation: int, *, is_last: bool) -> None:
        """Write items in place of a chunk that was taken out, as several ones if they are many."""
        n_items = len(items.ids)
        n_chunks = max(-(-n_items // ITEMS_PER_CHUNK), int(first == _LOWEST))
        # What comes after the last chunk usually keeps coming, so that one is filled; others are cut evenly.
        size = ITEMS_PER_CHUNK if is_last else -(-n_items // max(n_chunks, 1))
        for number in range(n_chunks):
            part = items.part(slice(number * size, (number + 1) * size))
            place = first if number == 0 else int(part.ids[0])
            content = part.ids.astype("<i8").tobytes() + part.packed.tobytes()
            checksum = _checksum(_codes(len(part.ids)), place, generation, content)
            self._connection.execute(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", [place, len(part.ids), generation, checksum, content]
            )
            self._add_to_total(_CODES, checksum)
            for name, values in part.columns.items():
                self._write_column(name, place, values, generation)

    def _take_out(self, first: int, names: list[str]) -> ChunkItems | None:
        """Remove a chunk and return what it held, None if there is none."""
        query = "SELECT first, n_items, generation, checksum, content FROM chunks WHERE first = ?"
        chunks = list(self._checked_codes(query, [first], total=None))
        if not chunks:
            return None
        (n_items, checksum, content), columns = chunks[0], {}
        ids, packed = _split(content, n_items)
        for name in names:
            record = self._connection.execute(
                "SELECT generation, checksum FROM column_chunks WHERE name = ? AND first = ?", [name, first]
            ).fetchone()
            if record is None:
                raise self._damaged(f"it has lost a chunk of {name!r}")
            columns[name] = self._column(name, first, *record).to_list()
            if len(columns[name]) != n_items:
                raise self._damaged(f"it holds {len(columns[name])} values of {name!r} for {n_items} items")
            self._add_to_total(name, -record[1])
        self._add_to_total(_CODES, -checksum)
        self._connection.execute("DELETE FROM chunks WHERE first = ?", [first])
        self._connection.execute("DELETE FROM column_chunks WHERE first = ?", [first])
        return ChunkItems(ids, packed, columns)

    def _checked_codes(
        self, query: str, parameters: Sequence[Any] = (), total: int | None = 0
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield number of items, checksum and content of chunks of codes; at the end, compare the sum unless None."""
        last = None
        for first, n_items, generation, checksum, content in self._connection.execute(query, parameters):
            if last is not None and first <= last:
                # Damaged pages that point to each other could otherwise yield the same chunks forever.
                raise self._damaged(f"it holds the chunk {first} after the chunk {last}")
            name = _codes(n_items)
            if not _is_intact(name, first, generation, checksum, content) or not _fits(n_items, content):
                raise self._damaged(f"it holds codes from item {first} on that do not match their checksum")
            last, total = first, None if total is None else total + checksum
            yield n_items, checksum, content
        if total is not None:
            self._check_total(_CODES, total)

    def _column(self, name: str, first: int, generation: int, checksum: int, content: Any = None) -> Column:
        """Return a chunk of a column, from its content if that was read already."""
        if content is None:
            query = "SELECT content FROM column_chunks WHERE name = ? AND first = ?"
            (content,) = self._connection.execute(query, [name, first]).fetchone() or (None,)
        try:
            if not _is_intact(name, first, generation, checksum, content):
                raise ValueError("it does not match its checksum")
            return Column.from_bytes(content)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._damaged(f"it holds a chunk of {name!r} that cannot be read ({error})") from error

    def _write_column(self, name: str, first: int, values: list[Value | None], generation: int) -> None:
        content = Column.of(values).to_bytes()
        checksum = _checksum(name, first, generation, content)
        self._connection.execute(
            "INSERT INTO column_chunks VALUES (?, ?, ?, ?, ?)", [name, first, generation, checksum, content]
        )
        self._add_to_total(name, checksum)

    def _add_to_total(self, name: str, checksum: int) -> None:
        total = self._connection.meta(_total_of(name)) + checksum
        self._connection.set_meta(_total_of(name), total % SUM_MODULUS)

    def _check_total(self, name: str, total: int) -> None:
        if total % SUM_MODULUS != self._connection.meta(_total_of(name)):
            raise self._damaged(f"it has lost a chunk of {name!r}, or holds one of an earlier state")

    def _damaged(self, finding: str) -> CollectionFormatError:
        return CollectionFormatError.derived(finding, self._connection.path)


def _split(content: bytes, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and packed codes of a chunk that fits."""
    ids = np.frombuffer(content, "<i8", n_items).astype(np.int64, copy=False)
    packed = np.frombuffer(content, np.uint8, offset=_ID_BYTES * n_items)
    return ids, packed.reshape(n_items, -1 if n_items else 0)


def _fits(n_items: Any, content: bytes) -> bool:
    if type(n_items) is not int or n_items < 0:
        return False
    n_bytes = len(content) - _ID_BYTES * n_items
    return n_bytes == 0 if n_items == 0 else n_bytes > 0 and n_bytes % n_items == 0


def _is_intact(name: str, first: Any, generation: Any, checksum: Any, content: Any) -> bool:
    numbers = (first, generation, checksum)
    if not isinstance(content, bytes) or not all(type(number) is int for number in numbers):
        return False
    return checksum == _checksum(name, first, generation, content)


def _checksum(name: str, first: int, generation: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(_PLACE.pack(first, generation) + name.encode()))


def _codes(n_items: int) -> str:
    """Return what the checksum of a chunk of codes covers besides its place."""
    return f"{_CODES} of {n_items} items"


def _total_of(name: str) -> str:
    return f"sum of {name}"
