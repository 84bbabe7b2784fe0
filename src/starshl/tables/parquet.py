"""Parquet tables, through the extra ``parquet``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._extras import require
from .errors import TableError
from .locations import Location, opened
from .source import Cells, Kind, Rows

__all__ = ["ParquetSource"]


class ParquetSource:
    """Columns of a Parquet file; only those that are needed are read."""

    has_names = True
    default_labels = "label"
    default_vectors = None

    def __init__(self, path: Location) -> None:
        self.path = path
        parquet = require("pyarrow.parquet", extra="parquet")
        with _damage_reported(path), opened(path) as file:
            self._schema = parquet.read_schema(file)
        names = self._schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            problems = [f"has two columns called {name!r}" for name in twice]
            raise TableError(path, problems, "Give every column its own name.")
        self.kinds: Mapping[str, Kind] = {field.name: _kind(field.type) for field in self._schema}

    def describe(self, name: str) -> str:
        """Return the type of a column."""
        return str(self._schema.field(name).type)

    def position_of(self, name: str) -> str:
        """Return the name; all columns have one."""
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[Rows | None, Mapping[str, Cells]]:
        """Read features in their own precision, and other columns as lists of Python values."""
        wanted = list(dict.fromkeys([*features, *others]))
        parquet = require("pyarrow.parquet", extra="parquet")
        with _damage_reported(self.path), opened(self.path) as file:
            table = parquet.ParquetFile(file).read(columns=wanted)
            columns = {name: table.column(name).to_pylist() for name in others}
            if not features:
                return None, columns
            if self.kinds[features[0]] == "vectors":
                return self._stacked(table.column(features[0]), features[0]), columns
            # A null becomes NaN, which is refused later with the name of its column.
            return np.column_stack([table.column(name).to_numpy() for name in features]), columns

    def _stacked(self, column: Any, name: str) -> np.ndarray:
        column = column.combine_chunks()
        if column.null_count or len(column) == 0:
            n_missing = column.null_count or "all"
            raise TableError(self.path, [f"has no vector in {n_missing} rows of column {name!r}"], "Drop such rows.")
        lengths = set(require("pyarrow.compute", extra="parquet").list_value_length(column).to_pylist())
        if len(lengths) != 1:
            problem = f"has vectors of lengths {sorted(lengths)[:5]} in column {name!r}"
            raise TableError(self.path, [problem], "All must have the same length.")
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def _kind(kind: Any) -> Kind:
    types = require("pyarrow", extra="parquet").types
    if types.is_floating(kind):
        return "floats"
    if types.is_integer(kind) or types.is_boolean(kind):
        return "numbers"
    of_lists = (
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    if not any(check(kind) for check in of_lists):
        return "other"
    return "vectors" if types.is_floating(kind.value_type) or types.is_integer(kind.value_type) else "lists"


@contextmanager
def _damage_reported(path: Location) -> Iterator[None]:
    arrow = require("pyarrow", extra="parquet")
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise TableError(path, [f"is not a readable Parquet file ({error})"], "Write it again.") from error
