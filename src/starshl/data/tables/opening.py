"""Open a table whose rows stay where they are, in its file or in many, until somebody reads them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from ..._common.threads import run_all
from .cells import as_labels
from .columns import Cells, Columns, ResolvedColumns, TableRows, resolve_columns
from .errors import TableError, shortened
from .locations import Location, is_url, list_locations, suffix_of
from .reading import Table, check_readable, read_table, warn_of_identifiers, with_wanted_labels
from .row_source import ArrayRows, JoinedRows, ParquetRows, RemoteRows, RowSource, ZarrRows
from .typed_files import ParquetSource

PARTITION_KINDS = (".parquet", ".npy", ".zarr")
_N_OPENERS = 8  # threads; what takes the time is waiting for the first bytes of each file
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
    return with_wanted_labels(opened, columns) if opened is not None and is_large else read_table(path, columns)


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
    found = resolve_columns(source, columns)
    rows, names = ParquetRows(path, found.features), found.feature_names
    if columns.features is None and names is not None:
        warn_of_identifiers(rows.take(np.arange(min(len(rows), _LOOKED_AT))), names, source)
    _, cells = source.read((), [found.labels] if found.labels is not None else [], allow_missing=False)
    return Table(
        _as_rows(rows),
        None if found.labels is None else as_labels(cells[found.labels]),
        feature_names=names,
        vectors=found.vectors,
        label_column=found.labels,
    )


def open_partitions(location: Location, columns: Columns | None = None) -> Table:
    """Return the rows of a file, of all files in a folder, or of those that a pattern names, as one table.

    Files are .parquet, .npy or .zarr, given by path or by any URL that fsspec opens. ``X`` is a
    :class:`JoinedRows`, which reads and checks rows when it is asked for some; of the columns, only labels are read.
    """
    columns = columns or Columns()
    files = list_locations(location, PARTITION_KINDS)
    kinds = sorted({suffix_of(file) for file in files})
    if len(kinds) != 1 or kinds[0] not in PARTITION_KINDS:
        problem = f"names files that end in {' and in '.join(map(repr, kinds))}"
        raise TableError(location, [problem], f"Give files of one kind: {', '.join(PARTITION_KINDS)}.")
    if kinds[0] == ".parquet":
        return with_wanted_labels(_open_parquet_partitions(files, columns), columns)
    if columns.label_column is not None:
        raise TableError(files[0], [f"has no column {columns.label_column!r}"], "Give labels in a separate file.")
    open_one = ZarrRows if kinds[0] == ".zarr" else _open_matrix_part
    rows = JoinedRows(run_all([partial(open_one, file) for file in files], _N_OPENERS))
    return with_wanted_labels(Table(_as_rows(rows)), columns)


def _open_matrix_part(file: str) -> RowSource:
    if is_url(file):
        return RemoteRows(file)
    try:
        return ArrayRows(np.load(file, mmap_mode="r", allow_pickle=False))
    except Exception as error:  # NumPy reads a damaged header as Python, which fails in many ways
        raise TableError(file, [f"is not a readable matrix ({error})"], "Save it again with numpy.save.") from error


def _open_parquet_partitions(files: list[str], columns: Columns) -> Table:
    found = resolve_columns(ParquetSource(files[0]), columns)

    def open_one(file: str) -> RowSource:
        _require_same(file, resolve_columns(ParquetSource(file), columns), files[0], found)
        return ParquetRows(file, found.features)

    parts = run_all([partial(open_one, file) for file in files], _N_OPENERS)
    return Table(
        _as_rows(JoinedRows(parts)),
        None if found.labels is None else _read_labels(files, found.labels),
        feature_names=found.feature_names,
        vectors=found.vectors,
        label_column=found.labels,
    )


def _require_same(file: str, own: ResolvedColumns, first_file: str, first: ResolvedColumns) -> None:
    """Refuse a file whose columns are not those of the first one."""
    missing = [repr(name) for name in first.features if name not in own.features]
    further = [repr(name) for name in own.features if name not in first.features]
    problems = [f"lacks the columns {shortened(missing)}, which {first_file!r} has"] if missing else []
    problems += [f"has the columns {shortened(further)}, which {first_file!r} does not have"] if further else []
    if own.labels != first.labels:
        problems.append(f"has its labels in {own.labels!r}, and {first_file!r} in {first.labels!r}")
    if problems:
        raise TableError(file, problems, "All files of a source need the same columns.")


def _read_labels(files: list[str], name: str) -> np.ndarray:
    cells: list[Cells] = []
    for file in files:
        _, found = ParquetSource(file).read((), [name], allow_missing=False)
        cells.append(found[name])
    return as_labels([cell for part in cells for cell in part])


def _as_rows(source: RowSource) -> TableRows:
    return cast(TableRows, source)  # only those who open a table get rows that are not in memory
