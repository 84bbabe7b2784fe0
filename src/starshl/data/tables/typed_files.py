"""Files whose columns have types: JSON lines, Parquet, and the arrays of NumPy and SciPy."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..._common.extras import require
from ..._common.strict_json import parse_json
from ..._common.warn import warn_caller
from .cells import is_missing_mark
from .columns import Cells, Kind, TableRows
from .errors import TableError
from .locations import Location, opened

_SPARSE_MEMBERS = {"format", "shape", "data"}  # of every file of scipy.sparse.save_npz


class JsonLinesSource:
    """A table of JSON objects; a key that a row lacks is null there."""

    has_names = True
    default_labels = "label"
    default_vectors = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows = _read_objects(path)
        names = dict.fromkeys(name for row in self._rows for name in row)
        self.kinds: Mapping[str, Kind] = {name: _json_kind(self._column(name)) for name in names}

    def describe(self, name: str) -> str:
        """Return the types of the values of a column."""
        return " or ".join(sorted({type(value).__name__ for value in self._column(name)}))

    def position_of(self, name: str) -> str:
        """Return the name; all columns have one."""
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[TableRows | None, Mapping[str, Cells]]:
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


def _json_kind(values: list[Any]) -> Kind:
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, list) for value in present):
        return "vectors" if all(_is_number(part) for value in present for part in value) else "lists"
    if not present or not all(_is_number(value) for value in present):
        return "other"
    return "floats" if any(isinstance(value, float) for value in present) else "numbers"


def _is_number(value: Any) -> bool:
    # Larger integers do not fit in a double.
    return isinstance(value, float | bool) or (isinstance(value, int) and abs(value) < 2**1000)


class ParquetSource:
    """Columns of a Parquet file; only those that are needed are read."""

    has_names = True
    default_labels = "label"
    default_vectors = None

    def __init__(self, path: Location) -> None:
        self.path = path
        parquet = require("pyarrow.parquet", extra="parquet")
        with _parquet_damage_reported(path), opened(path) as file:
            self._schema = parquet.read_schema(file)
        names = self._schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            problems = [f"has two columns called {name!r}" for name in twice]
            raise TableError(path, problems, "Give every column its own name.")
        self.kinds: Mapping[str, Kind] = {field.name: _parquet_kind(field.type) for field in self._schema}

    def describe(self, name: str) -> str:
        """Return the type of a column."""
        return str(self._schema.field(name).type)

    def position_of(self, name: str) -> str:
        """Return the name; all columns have one."""
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[TableRows | None, Mapping[str, Cells]]:
        """Read features in their own precision, and other columns as lists of Python values."""
        wanted = list(dict.fromkeys([*features, *others]))
        parquet = require("pyarrow.parquet", extra="parquet")
        with _parquet_damage_reported(self.path), opened(self.path) as file:
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


def _parquet_kind(kind: Any) -> Kind:
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
def _parquet_damage_reported(path: Location) -> Iterator[None]:
    arrow = require("pyarrow", extra="parquet")
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise TableError(path, [f"is not a readable Parquet file ({error})"], "Write it again.") from error


class ArraySource:
    """The arrays of an .npz; a matrix counts as a column of vectors. Only the arrays that are needed are expanded."""

    has_names = False
    default_labels = "y"

    def __init__(self, path: Path, headers: Mapping[str, Header]) -> None:
        self.path = path
        self._headers = headers
        self.kinds: Mapping[str, Kind] = {name: _array_kind(header) for name, header in headers.items()}
        self.default_vectors = "X"

    def describe(self, name: str) -> str:
        """Return the dtype and the shape of an array."""
        return f"an array of {self._headers[name].dtype} with shape {self._headers[name].shape}"

    def position_of(self, name: str) -> str:
        """Return the name; arrays have no numbers."""
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[TableRows | None, Mapping[str, Cells]]:
        """Read the matrix and the other arrays; what does not have one entry per row is left out with a warning."""
        if not features:
            return None, {name: self._load(name) for name in others}
        (matrix,) = features
        n_rows = self._count_rows(matrix)
        kept = [name for name in others if self._headers[name].shape == (n_rows,)]
        for name in set(others) - set(kept):
            shape = self._headers[name].shape
            warn_caller(
                f"{str(self.path)!r} has shape {shape} in {name!r} and {n_rows} rows; this array is left out.",
            )
        return self._load(matrix), {name: self._load(name) for name in kept}

    def require_entry_per_row(self, names: Sequence[str], matrix: str) -> None:
        """Refuse named arrays whose length differs from that of the matrix."""
        n_rows = self._count_rows(matrix)
        wrong = [name for name in names if self._headers[name].shape != (n_rows,)]
        if wrong:
            problems = [f"has shape {self._headers[name].shape} in {name!r} and {n_rows} rows" for name in wrong]
            raise TableError(self.path, problems, "Give one entry per row.")

    def _count_rows(self, matrix: str) -> int:
        if matrix not in self._headers:
            raise TableError(
                self.path,
                [f"holds the arrays {', '.join(map(repr, self._headers)) or 'none'} and none called {matrix!r}"],
                "Call the matrix of rows 'X', or name it as {vectors}.",
            )
        # The last two dimensions; whatever has fewer is refused once it is read.
        return next(iter(self._headers[matrix].shape[-2:]), 0)

    def _load(self, name: str) -> np.ndarray:
        with _array_damage_reported(self.path), np.load(self.path, allow_pickle=False) as archive:
            return archive[name]


class MatrixSource:
    """The one matrix of a .npy."""

    has_names = False
    default_labels = "y"
    default_vectors = "X"
    kinds: Mapping[str, Kind] = {}

    def __init__(self, path: Path) -> None:
        self.path = path
        with _array_damage_reported(path), path.open("rb") as file:
            read_header(file, path)

    def describe(self, name: str) -> str:
        """Return what the file holds."""
        return "one array"

    def position_of(self, name: str) -> str:
        """Return the name; there is nothing to name."""
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[TableRows, Mapping[str, Cells]]:
        """Read the matrix."""
        with _array_damage_reported(self.path):
            return np.load(self.path, allow_pickle=False), {}


class SparseSource(MatrixSource):
    """A sparse matrix that ``scipy.sparse.save_npz`` wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[TableRows, Mapping[str, Cells]]:
        """Read the matrix by rows; indices out of range would crash compiled code, so all are checked."""
        with _array_damage_reported(self.path):
            matrix = sparse.load_npz(self.path)
            if matrix.format in ("csr", "csc", "bsr"):
                matrix.check_format(full_check=True)
            rows = sparse.csr_matrix(matrix)
            rows.sum_duplicates()
            return rows, {}


def open_archive(path: Path) -> ArraySource | SparseSource:
    """Open an .npz without reading its arrays."""
    headers = {}
    with _array_damage_reported(path), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                headers[member.filename.removesuffix(".npy")] = _read_header(file, member.file_size)
    return SparseSource(path) if headers.keys() >= _SPARSE_MEMBERS else ArraySource(path, headers)


class Header(NamedTuple):
    """What an array file says about its array before any of it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype
    is_fortran: bool = False


def read_header(file: IO[bytes], location: Location) -> Header:
    """Read shape and dtype of the array of an open .npy, or say that it is damaged."""
    with _array_damage_reported(location):
        n_bytes = file.seek(0, os.SEEK_END)
        file.seek(0)
        return _read_header(file, n_bytes)


def _read_header(file: IO[bytes], n_bytes: int) -> Header:
    """Read shape and dtype of an array; refuse more entries than the file has bytes for."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"arrays of format {version} are not read here")
    shape, is_fortran, dtype = readers[version](file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > n_bytes:
        raise ValueError(f"an array of shape {shape} does not fit into {n_bytes} bytes")
    return Header(shape, dtype, is_fortran)


def _array_kind(header: Header) -> Kind:
    is_number = header.dtype.kind in "biuf"
    if len(header.shape) in (2, 3):
        return "vectors" if is_number else "other"
    return "numbers" if is_number else "other"


@contextmanager
def _array_damage_reported(path: Location) -> Iterator[None]:
    try:
        yield
    except (MemoryError, TableError):
        raise
    except Exception as error:  # a damaged file raises whatever zipfile, zlib, struct and tokenize raise
        raise TableError(
            path,
            [f"is not a readable array file ({error})"],
            "It is damaged, or holds Python objects. Save arrays of numbers or text again with numpy.save or "
            "numpy.savez.",
        ) from error
