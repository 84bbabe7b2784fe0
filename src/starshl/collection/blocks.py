"""Blocks: what a collection knows of its items, a column of a thousand items in one value of the database.

Each fact about an item stands in one column, and nowhere else: its id, its codes, its class, the model that encoded
it, where its vector is, its declared fields, and the checksum of its texts, which have a table of their own. A
collection of a million items opens by reading the ids and codes, and a filter reads the columns that it asks for.

Each block has a checksum over its place and the change that wrote it, and for each column a meta entry holds the sum of
these. So a damaged block is noticed whenever it is read, and one that is missing, or left from an earlier state,
whenever its column is.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import CollectionFormatError, UnknownIdError
from .columns import Column
from .database import SUM_MODULUS, Connection

IDS = "ids"
#: What searches compare: codes of vectors, or those that follow from labels.
CODES = "codes"
#: Codes of vectors where labels have replaced them; they come back when the label is removed.
OWN_CODES = "own codes"
#: Ids of classes in the vocabulary.
CLASSES = "classes"
#: Digests of the models that made the codes of vectors.
MODELS = "models"
#: The numbers of the records of vectors, and their checksums.
POSITIONS, VECTOR_SUMS = "vector positions", "vector checksums"
#: Checksums of references and undeclared metadata.
TEXTS = "texts"
COLUMNS = (IDS, CODES, OWN_CODES, CLASSES, MODELS, POSITIONS, VECTOR_SUMS, TEXTS)
# A change of one item writes a block again: 16 kB of codes at 128 bits.
# Tests replace it, so that a few items take several blocks.
ITEMS_PER_BLOCK = 1024
_MOST_CHARACTERS = 4_000_000  # of long texts in a block of a declared field
_LOWEST = -(2**63)
_PLACE = struct.Struct("<qq")
# From here on, whole columns are read in order rather than block by block.
_MANY_BLOCKS = 256


def field_column(name: str) -> str:
    """Return the name of the column of a declared field."""
    return f"field {name}"


class _Tag(NamedTuple):
    """What tells one content of a block from all others: its place, the change that wrote it, and the checksum."""

    first: int
    generation: int
    checksum: int


class BlockCache:
    """Decoded blocks and columns, shared by the readers of a collection.

    Each is kept with the generation in which it was last seen in the file: within it, nothing needs to be read again,
    and later, it is good as long as its tags are still those in the file.
    """

    def __init__(self) -> None:
        self.blocks: dict[tuple[str, int], tuple[int, _Tag, Column]] = {}
        self.columns: dict[str, tuple[int, list[_Tag], Column]] = {}
        self.firsts: tuple[int, np.ndarray] | None = None
        # The last change up to which all texts were compared with their checksums.
        self.texts_checked: int | None = None


class Blocks:
    """The blocks of a database, through one connection and inside its transactions."""

    def __init__(self, connection: Connection, cache: BlockCache) -> None:
        self._connection = connection
        self._cache = cache
        # That of the transaction; None if it is about to change what the blocks hold.
        self._generation: int | None = None
        self._changed_totals: Counter[str] = Counter()
        # The first ids of the blocks, as far as a transaction that makes the next generation knows them.
        self._own_firsts: np.ndarray | None = None

    @staticmethod
    def no_blocks(names: Sequence[str]) -> dict[str, int]:
        """Return the meta entries about blocks of a new collection with these columns."""
        return {_total_of(name): 0 for name in names}

    def begin(self, generation: int, *, to_change: bool = False) -> None:
        """Note which generation the transaction sees, and whether it is about to make the next one."""
        self._generation, self._own_firsts = generation, None
        self._changed_totals.clear()
        if to_change:
            known, self._generation = self._cache.firsts, None
            self._own_firsts = known[1] if known is not None and known[0] == generation else None

    def note_totals(self) -> None:
        """Note the checksums of what was written."""
        for name, difference in self._changed_totals.items():
            total = self._connection.meta(_total_of(name)) + difference
            self._connection.set_meta(_total_of(name), total % SUM_MODULUS)
        self._changed_totals.clear()

    def keep(self, generation: int) -> None:
        """Note that what was written is stored as this generation."""
        if self._own_firsts is not None:
            self._cache.firsts = generation, self._own_firsts

    def whole(self, name: str, *, keep: bool = True) -> Column:
        """Return a column of all items, by ascending id; unchanged blocks come from memory, where ``keep`` puts all."""
        generation, known = self._generation, self._cache.columns.get(name)
        if known is not None and known[0] == generation:
            return known[2]
        tags = [_Tag(*record) for record in self._tags(name)]
        self._check_tags(name, tags)
        if known is not None and known[1] == tags:
            column = known[2]
        elif known is None and len(tags) > 1:
            column = self._read_all(name, tags)
        else:
            column = Column.joined([self._decoded(name, tag) for tag in tags] or [Column.of([])])
        if keep and generation is not None:
            self._cache.columns[name] = generation, tags, column
        return column

    def located(self, ids: np.ndarray) -> tuple[np.ndarray, list[tuple[int, np.ndarray, np.ndarray]]]:
        """Return which of the ids there are, and for each block, its place among them and in the ids.

        Each entry is the first id of a block, places in the block, and the places in ``ids`` of the same items.
        """
        order = np.argsort(ids, kind="stable")
        firsts, ascending = self._firsts(), ids[order]
        held = np.zeros(len(ids), np.bool_)
        found: list[tuple[int, np.ndarray, np.ndarray]] = []
        if not len(firsts):
            return held, found
        owners = np.searchsorted(firsts, ascending, side="right") - 1
        for span in _runs(owners):
            first = int(firsts[owners[span.start]])
            places, present = _places(self._block(IDS, first).values, ascending[span])
            held[order[span]] = present
            found.append((first, places[present], order[span][present]))
        return held, found

    def take(self, ids: np.ndarray, names: Sequence[str]) -> dict[str, Column]:
        """Return columns of items, in the order of their ids."""
        generation = self._generation
        kept = [self._cache.columns.get(name) for name in (IDS, *names)]
        if all(entry is not None and entry[0] == generation for entry in kept) or self._is_much(ids):
            places, held = _places(self.whole(IDS).values, ids)
            self._check_held(ids, held)
            return {name: self.whole(name).take(places) for name in names}
        held, found = self.located(ids)
        self._check_held(ids, held)
        back = np.empty(len(ids), np.int64)
        back[np.concatenate([np.empty(0, np.int64), *(sources for _, _, sources in found)])] = np.arange(len(ids))
        return {
            name: Column.joined(
                [self._block(name, first).take(places) for first, places, _ in found] or [Column.of([])]
            ).take(back)
            for name in names
        }

    def sizes(self) -> list[int]:
        """Return the number of items of each block, by ascending id."""
        return [len(self._block(IDS, int(first))) for first in self._firsts()]

    def is_scattered(self, n_items: int) -> bool:
        """Return whether there are more than twice as many blocks as the items need."""
        return len(self._firsts()) > max(2 * (n_items // ITEMS_PER_BLOCK), 1)

    def clear(self, names: Sequence[str]) -> None:
        """Remove all blocks, and begin these columns."""
        self._connection.execute("DELETE FROM blocks")
        self._own_firsts = None
        self._changed_totals.clear()
        for key, value in self.no_blocks(names).items():
            self._connection.set_meta(key, value)

    def add_column(self, name: str, column: Column, generation: int) -> None:
        """Add a column with one value per item, by ascending id."""
        self._connection.set_meta(_total_of(name), 0)
        start = 0
        for first in self._firsts().tolist():
            n_items = len(self._block(IDS, first))
            self._write(name, first, column.take(slice(start, start + n_items)), generation)
            start += n_items

    def assign(self, ids: np.ndarray, columns: Mapping[str, Column], generation: int) -> None:
        """Give items, all of which are there, other values in some columns."""
        for first, places, sources in self.located(ids)[1]:
            for name, column in columns.items():
                old = self._block(name, first)
                new = old.assigned(places, column.take(sources))
                if old.to_bytes() != new.to_bytes():
                    self._remove(name, first)
                    self._write(name, first, new, generation)

    def replace(self, gone: np.ndarray, columns: Mapping[str, Column], generation: int) -> int:
        """Remove items, where they are there, and put others in, by ascending id; return how many were removed."""
        arriving = columns[IDS].values
        changed, names = np.union1d(gone, arriving) if len(gone) else arriving, list(columns)
        firsts, n_gone = self._firsts(), 0
        known = firsts if len(firsts) else np.array([_LOWEST])
        owners = np.searchsorted(known, changed, side="right") - 1
        for span in _runs(owners):
            owner, inside = int(owners[span.start]), changed[span]
            first = int(known[owner])
            start, stop = np.searchsorted(arriving, inside[0]), np.searchsorted(arriving, inside[-1], side="right")
            merged = {name: column.take(slice(int(start), int(stop))) for name, column in columns.items()}
            if len(firsts):
                old = {name: self._block(name, first) for name in names}
                if len({len(column) for column in old.values()}) > 1:
                    raise self._damaged(f"it holds columns of several lengths from item {first} on")
                stays = np.flatnonzero(~np.isin(old[IDS].values, inside))
                n_gone += len(old[IDS]) - len(stays)
                ids = np.concatenate([old[IDS].values[stays], merged[IDS].values])
                order = np.argsort(ids, kind="stable")
                merged = {name: Column.joined([old[name].take(stays), merged[name]]).take(order) for name in names}
                for name in names:
                    self._remove(name, first)
            n_blocks = self._put_in(first, merged, generation, is_last=owner == len(known) - 1)
            if n_blocks != 1 or not len(firsts):
                self._own_firsts = None
        return n_gone

    def _put_in(self, first: int, columns: Mapping[str, Column], generation: int, *, is_last: bool) -> int:
        """Write items in place of a block that was taken out, as several ones if they are many; return how many."""
        ids = columns[IDS].values
        most = _most_items(columns)
        n_blocks = max(-(-len(ids) // most), int(first == _LOWEST))
        # What comes after the last block usually keeps coming, so that one is filled; others are cut evenly.
        size = most if is_last else -(-len(ids) // max(n_blocks, 1))
        for number in range(n_blocks):
            span = slice(number * size, (number + 1) * size)
            place = first if number == 0 else int(ids[span.start])
            for name, column in columns.items():
                self._write(name, place, column.take(span), generation)
        return n_blocks

    def _write(self, name: str, first: int, column: Column, generation: int) -> None:
        content = column.to_bytes()
        checksum = _checksum(name, first, generation, content)
        statement = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?)"
        self._connection.execute(statement, [name, first, generation, checksum, content])
        self._changed_totals[name] += checksum

    def _remove(self, name: str, first: int) -> None:
        """Remove a block that was read."""
        query = "DELETE FROM blocks WHERE name = ? AND first = ? RETURNING checksum"
        self._changed_totals[name] -= self._connection.execute(query, [name, first]).fetchone()[0]

    def _check_held(self, ids: np.ndarray, held: np.ndarray) -> None:
        """Refuse ids that are not there, which is damage if their block is missing."""
        if not held.all():
            self._check_tags(IDS, [_Tag(*record) for record in self._tags(IDS)])
            raise UnknownIdError(int(ids[~held][0]))

    def _is_much(self, ids: np.ndarray) -> bool:
        """Return whether these items are in so many blocks that whole columns are read sooner."""
        n_blocks = len(self._firsts())
        return n_blocks > 0 and 2 * len(ids) > max(n_blocks, _MANY_BLOCKS)

    def _firsts(self) -> np.ndarray:
        generation, known = self._generation, self._cache.firsts
        if generation is not None and known is not None and known[0] == generation:
            return known[1]
        if self._own_firsts is not None:
            return self._own_firsts
        query = "SELECT first FROM blocks WHERE name = ? ORDER BY first"
        firsts = np.array([record[0] for record in self._connection.execute(query, [IDS])], np.int64)
        if generation is None:
            self._own_firsts = firsts
        else:
            self._cache.firsts = generation, firsts
        return firsts

    def _block(self, name: str, first: int) -> Column:
        """Return a block, from memory if it has not changed."""
        generation, known = self._generation, self._cache.blocks.get((name, first))
        if known is not None and known[0] == generation:
            return known[2]
        query = "SELECT first, generation, checksum FROM blocks WHERE name = ? AND first = ?"
        record = self._connection.execute(query, [name, first]).fetchone()
        if record is None:
            raise self._damaged(f"it has lost a block of {name!r}")
        tag = _Tag(*record)
        column = self._decoded(name, tag)
        if generation is not None:
            self._cache.blocks[name, first] = generation, tag, column
        return column

    def _decoded(self, name: str, tag: _Tag) -> Column:
        known = self._cache.blocks.get((name, tag.first))
        if known is not None and known[1] == tag:
            return known[2]
        query = "SELECT content FROM blocks WHERE name = ? AND first = ?"
        (content,) = self._connection.execute(query, [name, tag.first]).fetchone() or (None,)
        return self._column(name, tag, content)

    def _read_all(self, name: str, tags: list[_Tag]) -> Column:
        """Return a column by reading all of its blocks in order."""
        query = "SELECT content FROM blocks WHERE name = ? ORDER BY first"
        # No more than there are tags: see `_tags`.
        contents = self._connection.execute(query, [name]).fetchmany(len(tags))
        contents += [(None,)] * (len(tags) - len(contents))
        return Column.joined([self._column(name, tag, content) for tag, (content,) in zip(tags, contents, strict=True)])

    def _column(self, name: str, tag: _Tag, content: Any) -> Column:
        try:
            if not isinstance(content, bytes) or tag.checksum != _checksum(name, tag.first, tag.generation, content):
                raise ValueError("it does not match its checksum")
            return Column.from_bytes(content)
        except (ValueError, TypeError, RecursionError, struct.error) as error:
            raise self._damaged(f"it holds a block of {name!r} that cannot be read ({error})") from error

    def _tags(self, name: str) -> Iterator[tuple[int, int, int]]:
        """Yield first id, generation and checksum of the blocks of a column; refuse any other order."""
        query = "SELECT first, generation, checksum FROM blocks WHERE name = ? ORDER BY first"
        last = None
        for record in self._connection.execute(query, [name]):
            if type(record[0]) is not int or (last is not None and record[0] <= last):
                # Damaged pages that point to each other could otherwise yield the same blocks forever.
                raise self._damaged(f"it holds the block {record[0]} of {name!r} after the block {last}")
            last = record[0]
            yield record

    def _check_tags(self, name: str, tags: list[_Tag]) -> None:
        expected = self._connection.meta(_total_of(name)) + self._changed_totals[name]
        sums = [tag.checksum for tag in tags]
        if not all(type(each) is int for each in sums) or (sum(sums) - expected) % SUM_MODULUS:
            raise self._damaged(f"it has lost a block of {name!r}, or holds one of an earlier state")

    def _damaged(self, finding: str) -> CollectionFormatError:
        return CollectionFormatError.damaged(finding, self._connection.path)


def _runs(owners: np.ndarray) -> list[slice]:
    """Return the spans of equal numbers."""
    if not len(owners):
        return []
    ends = [*(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _places(held: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of ids among others, which ascend, and which of them are there."""
    if not len(held):
        return np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
    places = np.minimum(np.searchsorted(held, ids), len(held) - 1)
    return places, held[places] == ids


def _most_items(columns: Mapping[str, Column]) -> int:
    """Return how many of these items a block may hold: fewer where their texts are long."""
    n_characters = sum(sum(map(len, column.words or ())) for column in columns.values())
    n_items = len(columns[IDS])
    if n_characters * ITEMS_PER_BLOCK <= _MOST_CHARACTERS * n_items:
        return ITEMS_PER_BLOCK
    return max(1, _MOST_CHARACTERS * n_items // n_characters)


def _checksum(name: str, first: int, generation: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(_PLACE.pack(first, generation) + name.encode()))


def _total_of(name: str) -> str:
    return f"sum of {name}"
