"""JSON lines: one object per row, whose keys are the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._json import parse_json
from .cells import is_missing_mark
from .errors import TableError
from .source import Cells, Kind, Rows

__all__ = ["JsonLinesSource"]


class JsonLinesSource:
    """A table of JSON objects; a key that a row lacks is null there."""

    has_names = True
    default_labels = "label"
    default_vectors = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows = _read_objects(path)
        names = dict.fromkeys(name for row in self._rows for name in row)
        self.kinds: Mapping[str, Kind] = {name: _kind(self._column(name)) for name in names}

    def describe(self, name: str) -> str:
        """Return the types of the values of a column."""
        return " or ".join(sorted({type(value).__name__ for value in self._column(name)}))

    def position_of(self, name: str) -> str:
        """Return the name; all columns have one."""
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[Rows | None, Mapping[str, Cells]]:
        """Return features as numbers, null as NaN, and other columns as they are."""
        columns = {name: self._column(name) for name in others}
        if not features:
            return None, columns
        if self.kinds[features[0]] == "vectors":
            return self._stacked(features[0]), columns
        return np.column_stack([self._numbers(name) for name in features]), columns

    def _column(self, name: str) -> list[Any]:
        values = [row.get(name) for row in self._rows]
        is_mark = [isinstance(value, str) and is_missing_mark(value) for value in values]
        others = [value for value, mark in zip(values, is_mark, strict=True) if not mark and value is not None]
        if not any(is_mark) or not others or not all(_is_number(value) for value in others):
            return values
        return [None if mark else value for value, mark in zip(values, is_mark, strict=True)]

    def _numbers(self, name: str) -> np.ndarray:
        if self.kinds[name] not in ("floats", "numbers"):
            problem = f"has {self.describe(name)} in column {name!r}"
            raise TableError(self.path, [problem], "Features must be numbers.", droppable=[name])
        return np.array([np.nan if value is None else float(value) for value in self._column(name)])

    def _stacked(self, name: str) -> np.ndarray:
        lengths = {-1 if row is None else len(row) for row in self._column(name)}
        if len(lengths) != 1 or -1 in lengths:
            shown = sorted("none" if length < 0 else str(length) for length in lengths)[:5]
            problem = f"has vectors of lengths {', '.join(shown)} in column {name!r}"
            raise TableError(self.path, [problem], "All must have the same length.")
        return np.array(self._column(name), dtype=np.float64)


def _read_objects(path: Path) -> list[dict[str, Any]]:
    rows = []
    with path.open(encoding="utf-8-sig") as file:
        try:
            for line in file:
                if line.strip():
                    rows.append(parse_json(line))
        except ValueError as error:
            problem = f"is not a readable file of JSON lines (row {len(rows)}: {error})"
            raise TableError(path, [problem], "Write one JSON object per line.") from error
    wrong = next((number for number, row in enumerate(rows) if not isinstance(row, dict)), None)
    if wrong is not None:
        problem = f"holds {type(rows[wrong]).__name__} in row {wrong}"
        raise TableError(path, [problem], "Write one JSON object per line.")
    if not rows:
        raise TableError(path, ["has no rows"], "Write one JSON object per line.")
    return rows


def _kind(values: list[Any]) -> Kind:
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, list) for value in present):
        return "vectors" if all(_is_number(part) for value in present for part in value) else "lists"
    if not present or not all(_is_number(value) for value in present):
        return "other"
    return "floats" if any(isinstance(value, float) for value in present) else "numbers"


def _is_number(value: Any) -> bool:
    # Larger integers do not fit in a double.
    return isinstance(value, float | bool) or (isinstance(value, int) and abs(value) < 2**1000)
