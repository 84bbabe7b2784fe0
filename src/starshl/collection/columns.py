"""Columns: one fact about each of many items, as arrays in memory and as bytes in the database."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

#: What an item can have in a column: codes are bytes.
Value: TypeAlias = str | int | float | bool
#: The comparisons of filters.
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INTEGERS = ("<i1", "<i2", "<i4", "<u4", "<i8")  # the narrowest first; checksums need the one without a sign
_LIMITS = [(np.dtype(kind), int(np.iinfo(kind).min), int(np.iinfo(kind).max)) for kind in _INTEGERS]
_TYPES = {*_INTEGERS, "<f8"}
_BYTES = "|u1"
# Whole numbers below it are exact as floats, and all other floats are whole.
_EXACT = 2**53
# No column of a block is as long; a crafted one could claim any length.
_MOST_ITEMS = 1 << 20


class Column(NamedTuple):
    """Values of items: numbers, places in ``words`` or, in a matrix of bytes, codes.

    ``present`` tells which items have a value, None if all do. What stands in ``values`` for the others is zero.
    """

    values: np.ndarray
    present: np.ndarray | None = None
    words: list[str] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, values: Sequence[Value | None]) -> Self:
        """Return a column of values of one type; None stands for no value."""
        n_known = len(values) - values.count(None)
        known = values if n_known == len(values) else [value for value in values if value is not None]
        first, words = (known[0] if known else 0), None
        if isinstance(first, str):
            words = list(dict.fromkeys(known))
            place = {word: number for number, word in enumerate(words)}
            known = list(map(place.__getitem__, known))
        numbers = np.array(known, np.float64 if isinstance(first, float) else np.int64)
        if n_known == len(values):
            return cls(numbers.astype(_narrowest(numbers)), None, words)  # type: ignore[arg-type]
        present = np.array([value is not None for value in values], np.bool_)
        filled = np.zeros(len(values), _narrowest(numbers))
        filled[present] = numbers
        return cls(filled, present, words)  # type: ignore[arg-type]

    @classmethod
    def numbers_or_none(cls, numbers: np.ndarray) -> Self:
        """Return a column of numbers from 0, of which -1 stands for no value."""
        present = numbers >= 0
        return cls(np.where(present, numbers, 0), None if present.all() else present)

    @classmethod
    def repeated(cls, value: str | None, n_items: int) -> Self:
        """Return a column in which all items have the same text, or None."""
        values = np.zeros(n_items, np.int8)
        return cls(values, np.zeros(n_items, np.bool_)) if value is None else cls(values, None, [value])

    @classmethod
    def joined(cls, columns: Sequence[Self]) -> Self:
        """Return the values of several columns of one type; empty ones have any."""
        columns = [column for column in columns if len(column)] or columns[:1]
        if len(columns) == 1:
            return columns[0]
        present = None
        if any(column.present is not None for column in columns):
            present = np.concatenate(
                [np.ones(len(each), np.bool_) if each.present is None else each.present for each in columns]
            )
        parts, words = [column.values for column in columns], None
        if any(column.words is not None for column in columns):
            words = list(dict.fromkeys(word for column in columns for word in column.words or ()))
            place = {word: number for number, word in enumerate(words)}
            tables = [np.array([place[word] for word in column.words or ()] or [0], np.int64) for column in columns]
            parts = [table[part] for table, part in zip(tables, parts, strict=True)]
        return cls(np.concatenate(parts), present, words)

    def take(self, places: np.ndarray | slice) -> Self:
        """Return the values of some of the items."""
        present = None if self.present is None else self.present[places]
        return type(self)(self.values[places], present, self.words)

    def assigned(self, places: np.ndarray, column: Self) -> Self:
        """Return the column in which the items at these places have other values."""
        sources = np.arange(len(self))
        sources[places] = len(self) + np.arange(len(places))
        if len(places) == len(self):
            return column.take(sources - len(self))  # of any other type
        return self.joined([self, column]).take(sources)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Undo :meth:`to_bytes`; raise ValueError for contents that cannot be a column."""
        end = content.index(b"\n") + 1
        n_items, kind, width, n_stored, gaps, words = json.loads(content[:end])
        numbers = (n_items, width, n_stored)
        if any(type(each) is not int or not 0 <= each <= _MOST_ITEMS for each in numbers):
            raise ValueError(f"it claims to hold {n_items!r} values")
        if kind not in (_TYPES if words is None else _INTEGERS) and (kind, words) != (_BYTES, None):
            raise ValueError(f"its values have the type {kind!r}")
        if not isinstance(words, list | None) or (words and not all(isinstance(word, str) for word in words)):
            raise ValueError("its words are no text")
        mask = n_items if gaps is True else 0
        n_mask = -(-mask // 8)
        values = np.frombuffer(content, kind, offset=end + n_mask)
        if width:
            values = values.reshape(-1, width)
        if len(values) != n_stored or n_stored not in (n_items, min(n_items, 1)):
            raise ValueError(f"it has {len(values)} values for {n_items} items")
        # As unsigned numbers, those below zero are the largest.
        if words is not None and n_stored and values.view(kind.replace("i", "u")).max() >= max(len(words), 1):
            raise ValueError("it has a place without a word")
        present = None
        if gaps is True:
            present = np.unpackbits(np.frombuffer(content, np.uint8, n_mask, end), count=n_items).astype(np.bool_)
        elif gaps is None:
            present = np.zeros(n_items, np.bool_)
        return cls(values if n_stored == n_items else np.repeat(values, n_items, axis=0), present, words)

    def to_bytes(self) -> bytes:
        """Return a line of JSON, one bit per item if some have no value, and the values; once, if all are equal."""
        values, present, words = self.values, self.present, self.words
        if present is not None:
            present = None if present.all() else present
        if present is not None:
            values = values * present.reshape(-1, *[1] * (values.ndim - 1))
        if words is not None:
            used, values = np.unique(values if present is None else values[present], return_inverse=True)
            words = [words[place] for place in used.tolist()]
            if present is not None:
                filled = np.zeros(len(present), np.int64)
                filled[present] = values
                values = filled
        if values.ndim == 1:
            values = values.astype(_narrowest(values), copy=False)
        n_items = len(values)
        if n_items > 1 and (values == values[:1]).all():
            values = values[:1]
        gaps: bool | None = False if present is None else True if present.any() else None
        mask = np.packbits(present).tobytes() if present is not None and gaps else b""
        width = values.shape[1] if values.ndim == 2 else 0
        kind = _BYTES if width else values.dtype.newbyteorder("<").str.replace("|", "<")
        header = [n_items, kind, width, len(values), gaps, words]
        return json.dumps(header).encode() + b"\n" + mask + values.tobytes()

    def to_list(self) -> list[Any]:
        """Undo :meth:`of`, except that booleans are 0 and 1; codes are bytes."""
        if self.values.ndim == 2:
            values: list[Any] = [code.tobytes() for code in self.values]
        elif self.words is not None:
            words = self.words or [""]
            values = [words[place] for place in self.values.tolist()]
        else:
            values = self.values.tolist()
        if self.present is not None:
            values = [value if known else None for value, known in zip(values, self.present.tolist(), strict=True)]
        return values

    def filled(self, value: int) -> np.ndarray:
        """Return the numbers, with this one where an item has none."""
        numbers = self.values.astype(np.int64)
        return numbers if self.present is None else np.where(self.present, numbers, value)

    def counts(self) -> dict[Any, int]:
        """Return how many items have each value."""
        values = self.values if self.present is None else self.values[self.present]
        if values.dtype.kind == "i" and len(values) and 0 <= values.min() <= values.max() <= len(values):
            counts = np.bincount(values)
            found = np.flatnonzero(counts)
            times = counts[found]
        else:
            found, times = np.unique(values, return_counts=True)
        known = found.tolist() if self.words is None else [self.words[place] for place in found.tolist()]
        return dict(zip(known, times.tolist(), strict=True))

    def passing(self, word: str, value: Value | tuple[Value, ...]) -> np.ndarray:
        """Return which items have a value that compares with this one, or equals one of several."""
        if self.words is not None:
            compare = (lambda one, several: one in several) if isinstance(value, tuple) else COMPARISONS[word]
            return self.meeting(lambda one: compare(one, value))
        if isinstance(value, tuple):
            return np.any([self.passing("=", one) for one in value], axis=0)
        if isinstance(value, str):
            # No item has a value, or there would be words.
            return np.zeros(len(self), np.bool_)
        return self.masked(_compared(COMPARISONS[word], self.values, value))

    def meeting(self, test: Callable[[str], bool]) -> np.ndarray:
        """Return which items have a text that meets a test."""
        table = np.array([bool(test(word)) for word in self.words or ()] or [False], np.bool_)
        return self.masked(table[self.values])

    def masked(self, passing: np.ndarray) -> np.ndarray:
        """Return which items pass and have a value."""
        return passing if self.present is None else passing & self.present


def _compared(compare: Callable[[Any, Any], Any], values: np.ndarray, value: int | float) -> np.ndarray:
    """Compare as exact numbers do, whatever type holds them."""
    if value != value:
        # Nothing compares with NaN, and JSON holds none.
        return np.zeros(len(values), np.bool_)
    if isinstance(value, float) and _EXACT <= abs(value) < float("inf"):
        value = int(value) if values.dtype.kind in "iu" else value
    if isinstance(value, float) and values.dtype.kind in "iu":
        values = values.astype(np.float64)
    return compare(values, int(value) if isinstance(value, bool) else value)


def _narrowest(numbers: np.ndarray) -> np.dtype[Any]:
    if numbers.dtype.kind == "f":
        return np.dtype("<f8")
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    return next(kind for kind, lowest, highest in _LIMITS if lowest <= low and high <= highest)
