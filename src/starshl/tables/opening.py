"""Open a table whose rows may stay in its file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import numpy as np

from .columns import Columns, choose_columns
from .parquet import ParquetSource
from .reading import Table, check_readable, read_table, warn_of_identifiers
from .row_source import ArrayRows, ParquetRows, RowSource
from .source import Rows
from .values import as_labels

__all__ = ["open_table"]

_LOOKED_AT = 4096  # rows in which a column of ids is searched for


def open_table(path: str | os.PathLike[str], columns: Columns | None = None, *, most_in_memory: int = 20_000) -> Table:
    """Read a table; of a .npy or .parquet with more rows than ``most_in_memory``, X is a :class:`RowSource`.

    Only the labels of such a file are read; its rows are checked when they are. All other tables, and those of which
    ids, references, metadata or cells that are no numbers are asked for, are those of :func:`read_table`.
    """
    path, columns = check_readable(path), columns or Columns()
    asks_for_more = columns.raw or columns.allow_missing or columns.others == "metadata"
    asks_for_more = asks_for_more or columns.ids is not None or columns.references is not None
    opened = None
    if not asks_for_more:
        openers = {".npy": _open_matrix, ".parquet": _open_parquet}
        opener = openers.get(path.suffix.lower())
        opened = None if opener is None else opener(path, columns)
    is_large = opened is not None and opened.X.shape[0] > most_in_memory
    return opened if opened is not None and is_large else read_table(path, columns)


def _open_matrix(path: Path, columns: Columns) -> Table | None:
    """Return the matrix of a .npy as it is on disk; None if the file holds something else, which a reader explains."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:  # NumPy reads a damaged header as Python, which fails in many ways
        return None
    if array.ndim != 2 or array.dtype.kind not in "biuf" or 0 in array.shape:
        return None
    return Table(_as_rows(ArrayRows(array)))


def _open_parquet(path: Path, columns: Columns) -> Table:
    source = ParquetSource(path)
    choice = choose_columns(source, columns)
    rows = ParquetRows(path, choice.features)
    names = None if choice.is_vectors else choice.features
    if columns.features is None and names is not None:
        warn_of_identifiers(rows.take(np.arange(min(len(rows), _LOOKED_AT))), names, source)
    _, cells = source.read((), [choice.labels] if choice.labels is not None else [], allow_missing=False)
    return Table(
        _as_rows(rows),
        None if choice.labels is None else as_labels(cells[choice.labels]),
        feature_names=names,
        vectors=choice.features[0] if choice.is_vectors else None,
        label_column=choice.labels,
    )


def _as_rows(source: RowSource) -> Rows:
    return cast(Rows, source)  # only those who open a table get rows that are not in memory
