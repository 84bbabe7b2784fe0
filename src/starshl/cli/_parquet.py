"""Parquet tables, through the extra ``parquet``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .._extras import require
from ..collection.tables import list_column, stack_lists
from ._columns import choose_columns, labels_from_text
from .io import Table

__all__ = ["read_parquet", "read_parquet_labels"]


def read_parquet(
    path: Path, labels: str | None, drop: Sequence[str], keep: Sequence[str] | None, vectors: str | None = None
) -> Table:
    """Read the columns that are wanted, features in their own precision, or the one column that holds vectors."""
    schema = _schema(path)
    names = schema.names
    features, label = choose_columns(names, len(names), labels, drop, None if vectors else keep, str(path))
    if keep is None or vectors is not None:
        lists = list_column(schema, vectors, {*drop, labels}, path)
        if lists is not None:
            columns = _read(path, [lists] + ([] if label is None else [names[label]]))
            y = None if label is None else _labels(columns.column(names[label]))
            return Table(stack_lists(columns.column(lists), lists, path), None, y, lists)
    wanted = [names[column] for column in features]
    columns = _read(path, wanted + ([] if label is None else [names[label]]))
    X = np.column_stack([_numbers(columns.column(name), name, path) for name in wanted])
    y = None if label is None else _labels(columns.column(names[label]))
    return Table(np.ascontiguousarray(X), tuple(wanted), y)


def read_parquet_labels(path: Path) -> np.ndarray:
    """Read labels from the only column, or from the one called ``label`` or ``y``."""
    names = _schema(path).names
    name = next((name for name in ("label", "y") if name in names), names[0] if len(names) == 1 else None)
    if name is None:
        raise ValueError(f"{str(path)!r} has {len(names)} columns; a file of labels needs one, or one called 'label'.")
    return _labels(_read(path, [name]).column(name))


def _schema(path: Path):
    parquet = require("pyarrow.parquet", extra="parquet")
    with _damage_told(path):
        return parquet.read_schema(path)


def _read(path: Path, names: list[str]):
    parquet = require("pyarrow.parquet", extra="parquet")
    with _damage_told(path):
        return parquet.ParquetFile(path).read(columns=names)


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    arrow = require("pyarrow", extra="parquet")
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{str(path)!r} is not a readable Parquet file ({error}). Write it again.") from error


def _numbers(column, name: str, path: Path) -> np.ndarray:
    """Return a column as numbers; a null becomes NaN, which is refused later by name."""
    values = column.to_numpy()
    if values.dtype.kind in "biuf":
        return values
    raise ValueError(
        f"Column {name!r} of {str(path)!r} holds {column.type}; features must be numbers. "
        "Name the column in --labels or --drop, or convert it."
    )


def _labels(column) -> np.ndarray:
    values = column.to_pylist()
    if any(isinstance(value, float) for value in values) or not all(isinstance(v, (int, type(None))) for v in values):
        return labels_from_text(np.array(["" if value is None else str(value) for value in values], dtype=object))
    return np.array([-1 if value is None else int(value) for value in values], dtype=np.int64)
