"""A column of a block: one value per item as a typed array, which a filter compares at once."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from .fields import Value

__all__ = ["COMPARISONS", "Column"]

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


class Column(NamedTuple):
    """Values of items: numbers, or places in ``words``; ``present`` tells which items have one, None if all do."""

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
            place = {word: number for number, word in enumerate(words)}
            known = [place[str(value)] for value in known]
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
            values = [words[place] for place in self.values.tolist()]
        if self.present is not None:
            values = [value if known else None for value, known in zip(values, self.present.tolist(), strict=True)]
        return values

    def passing(self, word: str, value: Value | list[Value]) -> np.ndarray:
        """Return which items have a value that compares with this one, or equals one of a list."""
        if self.words is not None:
            known = self.words or [""]
            table = (
                [one in value for one in known]
                if isinstance(value, list)
                else [COMPARISONS[word](one, value) for one in known]
            )
            passing = np.array(table, np.bool_).take(self.values)
        elif isinstance(value, list):
            return np.any([self.passing("=", one) for one in value], axis=0)
        elif isinstance(value, str):
            # No item of this block has a value, or there would be words.
            return np.zeros(len(self.values), np.bool_)
        else:
            passing = _compared(COMPARISONS[word], self.values, value)
        return passing if self.present is None else passing & self.present


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
