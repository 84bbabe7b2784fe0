"""Open a table that is spread over many files, of which no row is read yet."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from .._threads import run_all
from .array_rows import RemoteRows, ZarrRows
from .columns import Choice, Columns, choose_columns
from .errors import TableError, shortened
from .joined_rows import JoinedRows
from .locations import Location, is_url, kind_of, list_locations
from .parquet import ParquetSource
from .reading import Table
from .row_source import ArrayRows, ParquetRows, RowSource
from .source import Cells, Rows
from .values import as_labels

__all__ = ["open_partitions"]

_KINDS = (".parquet", ".npy", ".zarr")
_N_OPENERS = 8  # threads; what takes the time is waiting for the first bytes of each file


def open_partitions(location: Location, columns: Columns | None = None) -> Table:
    """Return the rows of a file, of all files in a folder, or of those that a pattern names, as one table.

    Files are .parquet, .npy or .zarr, given by path or by any URL that fsspec opens. ``X`` is a
    :class:`JoinedRows`, which reads and checks rows when it is asked for some; of the columns, only labels are read.
    """
    columns = columns or Columns()
    files = list_locations(location, _KINDS)
    kinds = sorted({kind_of(file) for file in files})
    if len(kinds) != 1 or kinds[0] not in _KINDS:
        problem = f"names files that end in {' and in '.join(map(repr, kinds))}"
        raise TableError(location, [problem], f"Give files of one kind: {', '.join(_KINDS)}.")
    if kinds[0] == ".parquet":
        return _open_parquet(files, columns)
    if columns.labels is not None:
        raise TableError(files[0], [f"has no column {columns.labels!r}"], "Give labels in a separate file.")
    open_one = ZarrRows if kinds[0] == ".zarr" else _open_matrix
    return Table(cast(Rows, JoinedRows(run_all([partial(open_one, file) for file in files], _N_OPENERS))))


def _open_matrix(file: str) -> RowSource:
    if is_url(file):
        return RemoteRows(file)
    try:
        return ArrayRows(np.load(file, mmap_mode="r", allow_pickle=False))
    except Exception as error:  # NumPy reads a damaged header as Python, which fails in many ways
        raise TableError(file, [f"is not a readable matrix ({error})"], "Save it again with numpy.save.") from error


def _open_parquet(files: list[str], columns: Columns) -> Table:
    choice = choose_columns(ParquetSource(files[0]), columns)

    def open_one(file: str) -> RowSource:
        _require_same(file, choose_columns(ParquetSource(file), columns), files[0], choice)
        return ParquetRows(file, choice.features)

    parts = run_all([partial(open_one, file) for file in files], _N_OPENERS)
    return Table(
        cast(Rows, JoinedRows(parts)),
        None if choice.labels is None else _read_labels(files, choice.labels),
        feature_names=None if choice.is_vectors else choice.features,
        vectors=choice.features[0] if choice.is_vectors else None,
        label_column=choice.labels,
    )


def _require_same(file: str, choice: Choice, first_file: str, first: Choice) -> None:
    """Refuse a file whose columns are not those of the first one."""
    missing = [repr(name) for name in first.features if name not in choice.features]
    further = [repr(name) for name in choice.features if name not in first.features]
    problems = [f"lacks the columns {shortened(missing)}, which {first_file!r} has"] if missing else []
    problems += [f"has the columns {shortened(further)}, which {first_file!r} does not have"] if further else []
    if choice.labels != first.labels:
        problems.append(f"has its labels in {choice.labels!r}, and {first_file!r} in {first.labels!r}")
    if problems:
        raise TableError(file, problems, "All files of a source need the same columns.")


def _read_labels(files: list[str], name: str) -> np.ndarray:
    cells: list[Cells] = []
    for file in files:
        _, found = ParquetSource(file).read((), [name], allow_missing=False)
        cells.append(found[name])
    return as_labels([cell for part in cells for cell in part])
