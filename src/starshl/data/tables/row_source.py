"""Rows that stay where they are, in memory or in a file, and are read block by block."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..._common.extras import require
from ..._common.platform import is_file_map, release_pages
from .errors import Cause, TableError
from .locations import Location, is_url, opened
from .typed_files import read_header

_BATCH_ROWS = 4096  # that are read from a Parquet file at a time
_LARGEST_GAP = 1 << 20  # bytes between wanted rows up to which one request for all is faster than two
# What float32 holds exactly is read as float32, which takes half the memory and half the time of float64.
_FLOAT32_BYTES, _EXACT_INTEGER_BYTES = 4, 2


class RowSource(ABC):
    """A matrix of numbers that is read block by block; every block is checked when it is read.

    Parameters
    ----------
    shape : (n_rows, n_features)
    dtype : that in which the rows are stored; they are read as float32 if that holds them exactly, else as float64

    Attributes
    ----------
    stored_type : the dtype in which the rows are stored
    precision_in_memory : the dtype in which :func:`starshl.data.tables.read_table` returns the rows
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype):
        self.shape = shape
        self.stored_type = dtype
        n_bytes = dtype.itemsize
        fits_float32 = n_bytes <= _FLOAT32_BYTES if dtype.kind == "f" else n_bytes <= _EXACT_INTEGER_BYTES
        self.dtype = np.dtype(np.float32 if fits_float32 else np.float64)
        # That of the same rows from read_table: scores of other rows differ in their last digits.
        self.precision_in_memory = np.dtype(np.float32 if dtype == np.float32 else np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def path(self) -> Location | None:
        """The file that holds the rows, if one does."""
        return None

    @abstractmethod
    def _read(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        """Return the rows with these numbers, in rising order, ``size`` at a time and as they are stored."""

    def blocks(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        """Return the rows with these numbers, in rising order, as matrices of ``size`` rows of finite numbers."""
        for number, block in enumerate(self._read(rows, size)):
            floats = np.ascontiguousarray(block, dtype=self.dtype)
            # A sum is finite when all entries are, or overflows, which the slow path then sorts out.
            with np.errstate(over="ignore", invalid="ignore"):
                total = floats.sum()
            if not np.isfinite(total):
                self._refuse_bad_entries(floats, rows[number * size :])
            yield floats

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with these numbers, in rising order."""
        blocks = list(self.blocks(rows, max(len(rows), 1)))
        return blocks[0] if blocks else np.empty((0, self.shape[1]), dtype=self.dtype)

    def _refuse_bad_entries(self, block: np.ndarray, numbers: np.ndarray) -> None:
        bad = np.argwhere(~np.isfinite(block))
        if len(bad) == 0:
            return
        row, column = bad[0]
        what = "NaN" if np.isnan(block[row, column]) else "infinity (inf)"
        where = f"in column {self._name_of(int(column))}, first in row {numbers[row]}"
        if self.path is None:
            raise ValueError(
                f"Input X contains {what} {where}; every entry must be a finite number. "
                "Fill or drop such entries first, for example with sklearn.impute.SimpleImputer."
            )
        advice = "Every entry must be a finite number; rows count from 0. Fill such entries, or drop their rows."
        causes: list[Cause] = ["missing"] if what == "NaN" else ["infinite"]
        raise TableError(self.path, [f"holds {what} {where}"], advice, causes=causes)

    def _name_of(self, column: int) -> str:
        return str(column)


class ArrayRows(RowSource):
    """The rows of a matrix, which may be memory-mapped; no more than a block of it is copied.

    Parameters
    ----------
    array : array of numbers of shape (n_rows, n_features)

    Examples
    --------
    >>> rows = ArrayRows(np.arange(6, dtype=np.uint8).reshape(3, 2))
    >>> rows.take(np.array([0, 2])).tolist()
    [[0.0, 1.0], [4.0, 5.0]]
    """

    def __init__(self, array: np.ndarray):
        if array.ndim != 2 or array.dtype.kind not in "biuf" or 0 in array.shape:
            raise ValueError(
                f"The rows have shape {array.shape} and dtype {array.dtype}; they must be a matrix of numbers, "
                "(rows, features), with at least one of each."
            )
        super().__init__((array.shape[0], array.shape[1]), array.dtype)
        self.array = array

    @property
    def path(self) -> Path | None:
        filename = getattr(self.array, "filename", None)
        return None if filename is None else Path(filename)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the name of a mapped file to other processes, not its contents."""
        array = self.array
        if self.path is None or not is_file_map(array):
            return type(self), (array,)
        where = array.dtype, "r", array.offset, array.shape, "C" if array.flags.c_contiguous else "F"
        return _mapped_again, (self.path, where)

    def _read(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        array = np.asarray(self.array)
        for start in range(0, len(rows), size):
            piece = rows[start : start + size]
            # A view where the rows follow each other, so that nothing is copied.
            follows = piece[-1] - piece[0] + 1 == len(piece)
            yield array[piece[0] : piece[-1] + 1] if follows else array[piece]
            release_pages(self.array)


def _mapped_again(path: Location, where: tuple[Any, ...]) -> ArrayRows:
    dtype, mode, offset, shape, order = where
    return ArrayRows(np.memmap(path, dtype, mode, offset, shape, order))


class ParquetRows(RowSource):
    """The rows of a Parquet file: one column of lists of numbers, or several columns of numbers.

    Only the row groups that hold some of the wanted rows are read.

    Parameters
    ----------
    path : path or URL
    features : sequence of str
        The column of lists, or the columns of numbers in the order of the features.
    """

    def __init__(self, path: Location, features: Sequence[str]):
        self._path, self.features = path if is_url(path) else Path(path), tuple(features)
        with self._file() as file:
            n_rows = int(file.metadata.num_rows)
            if n_rows == 0:
                raise TableError(self._path, ["has no rows"], "Give at least one.")
            first = self._matrix(next(file.iter_batches(batch_size=1, columns=list(self.features))))
        super().__init__((n_rows, first.shape[1]), first.dtype)

    @property
    def path(self) -> Location:
        return self._path

    @contextmanager
    def _file(self) -> Iterator[Any]:
        parquet = require("pyarrow.parquet", extra="parquet")
        with opened(self._path) as stream, parquet.ParquetFile(stream) as file:
            yield file

    def _read(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        return regrouped(self._chosen(rows), size)

    def _chosen(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Return the rows with these numbers, batch by batch of the file."""
        with self._file() as file:
            lengths = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            ends = np.cumsum(lengths)
            for group in np.unique(np.searchsorted(ends, rows, side="right")).tolist():
                start = int(ends[group]) - lengths[group]
                batches = file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group], columns=list(self.features))
                for batch in batches:
                    first, last = np.searchsorted(rows, [start, start + batch.num_rows])
                    if first < last:
                        block = self._matrix(batch)
                        self._check_width(block, start)
                        yield block[rows[first:last] - start]
                    start += batch.num_rows

    def _matrix(self, batch: Any) -> np.ndarray:
        if len(self.features) > 1 or not _is_list(batch.schema.field(self.features[0]).type):
            # A null becomes NaN, which is refused later with the name of its column.
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in self.features]
            return np.column_stack(columns)
        column = batch.column(self.features[0])
        lengths = set(require("pyarrow.compute", extra="parquet").list_value_length(column).to_pylist())
        if len(lengths) != 1 or column.null_count:
            shown = sorted(length for length in lengths if length is not None)[:5]
            problem = f"has vectors of lengths {shown} in column {self.features[0]!r}, or none in some rows"
            raise TableError(self._path, [problem], "All rows need a vector, and all of the same length.")
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)

    def _check_width(self, block: np.ndarray, start: int) -> None:
        if block.shape[1] != self.shape[1]:
            problem = f"has vectors of lengths {self.shape[1]} and, from row {start}, {block.shape[1]}"
            raise TableError(self._path, [problem], "All must have the same length.")

    def _name_of(self, column: int) -> str:
        return repr(self.features[column]) if len(self.features) > 1 else str(column)


def _is_list(kind: Any) -> bool:
    types = require("pyarrow", extra="parquet").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


class RemoteRows(RowSource):
    """The rows of a .npy behind a URL; only the bytes of the wanted rows, and of small gaps between them, are read.

    Parameters
    ----------
    url : str
    """

    def __init__(self, url: str):
        self._url = url
        with opened(url) as file:
            header = read_header(file, url)
            self._offset = file.tell()
        check_matrix(url, header.shape, header.dtype)
        if header.is_fortran and min(header.shape) > 1:
            raise TableError(
                url,
                ["holds a matrix stored by columns"],
                "Blocks of rows are read from matrices stored by rows: save numpy.ascontiguousarray(X) again.",
            )
        super().__init__((header.shape[0], header.shape[1]), header.dtype)

    @property
    def path(self) -> str:
        return self._url

    def _read(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        with opened(self._url) as file:
            for start in range(0, len(rows), size):
                yield self._gather(file, rows[start : start + size])

    def _gather(self, file: Any, rows: np.ndarray) -> np.ndarray:
        row_bytes = self.shape[1] * self.stored_type.itemsize
        ends = np.flatnonzero((np.diff(rows) - 1) * row_bytes > _LARGEST_GAP) + 1
        parts = []
        for run in np.split(rows, ends):
            file.seek(self._offset + int(run[0]) * row_bytes)
            content = file.read((int(run[-1] - run[0]) + 1) * row_bytes)
            if len(content) < (int(run[-1] - run[0]) + 1) * row_bytes:
                raise TableError(self._url, [f"ends before row {run[-1]}"], "It is damaged. Save it again.")
            found = np.frombuffer(content, self.stored_type).reshape(-1, self.shape[1])
            parts.append(found[run - run[0]])
        return np.concatenate(parts)


class ZarrRows(RowSource):
    """The rows of a two-dimensional Zarr array, in a folder or behind a URL.

    Parameters
    ----------
    location : path or URL
    """

    def __init__(self, location: Location):
        self._location = location if is_url(location) else os.fspath(location)
        array = self._open()
        check_matrix(location, array.shape, array.dtype)
        super().__init__((int(array.shape[0]), int(array.shape[1])), np.dtype(array.dtype))

    @property
    def path(self) -> Location:
        return self._location

    def _open(self) -> Any:
        zarr = require("zarr", extra="dask")
        try:
            found = zarr.open(self._location, mode="r")
        except Exception as error:  # whatever its stores and codecs raise
            reason = f"{type(error).__name__}: {error}"
            raise TableError(
                self._location, [f"is not a readable Zarr array ({reason})"], "Check the address, or write it again."
            ) from error
        if not hasattr(found, "dtype"):
            names = ", ".join(sorted(found.array_keys())) or "none"
            problem = f"is a group of Zarr arrays: {names}"
            raise TableError(self._location, [problem], "Give the address of one, such as {path}/X.")
        return found

    def _read(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        array = self._open()
        for start in range(0, len(rows), size):
            piece = rows[start : start + size]
            follows = piece[-1] - piece[0] + 1 == len(piece)
            yield array[int(piece[0]) : int(piece[-1]) + 1] if follows else array.oindex[piece, :]


def check_matrix(location: Location, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse an array that is no matrix of numbers."""
    if len(shape) != 2 or np.dtype(dtype).kind not in "biuf" or 0 in shape:
        problem = f"holds an array of {dtype} with shape {tuple(shape)}"
        raise TableError(location, [problem], "Rows are a matrix of numbers, (rows, features), with at least one each.")


@dataclass(frozen=True, slots=True)
class Partition:
    """Rows ``start`` to ``stop`` of one part, which begin at row ``first`` of the whole."""

    part: int
    start: int
    stop: int
    first: int

    def __len__(self) -> int:
        return self.stop - self.start


class JoinedRows(RowSource):
    """The rows of several sources, one after the other.

    Parameters
    ----------
    parts : sequence of RowSource
        All of the same width. Errors about a row name the part's own file, and the row in it.

    Examples
    --------
    >>> from starshl.data.tables import ArrayRows
    >>> rows = JoinedRows([ArrayRows(np.zeros((2, 3))), ArrayRows(np.ones((2, 3)))])
    >>> rows.take(np.array([1, 2])).tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    >>> [len(partition) for partition in rows.partitions(10)]
    [2, 2]
    """

    def __init__(self, parts: Sequence[RowSource]):
        self.parts = tuple(parts)
        width = self.parts[0].shape[1]
        for part in self.parts:
            if part.shape[1] != width:
                raise TableError(
                    part.path or "rows",
                    [f"has {part.shape[1]} features, and {str(self.parts[0].path)!r} has {width}"],
                    "All files of a source need the same columns. Leave it out, or write it again.",
                )
        self._ends = np.cumsum([len(part) for part in self.parts])
        super().__init__((int(self._ends[-1]), width), np.result_type(*(part.stored_type for part in self.parts)))

    def partitions(self, n_rows: int) -> list[Partition]:
        """Cut each part into pieces of at most ``n_rows`` rows; no piece holds rows of two parts."""
        found = []
        for number, (part, end) in enumerate(zip(self.parts, self._ends.tolist(), strict=True)):
            begin = end - len(part)
            for start in range(0, len(part), n_rows):
                found.append(Partition(number, start, min(start + n_rows, len(part)), begin + start))
        return found

    def _read(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        return regrouped(self._chosen(rows, size), size)

    def _chosen(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        edges = np.searchsorted(rows, [0, *self._ends])
        for part, end, first, last in zip(self.parts, self._ends, edges[:-1], edges[1:], strict=True):
            if first < last:
                yield from part.blocks(rows[first:last] - (end - len(part)), size)


def regrouped(blocks: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """Return the same rows in blocks of ``size``; only the last may have fewer."""
    waiting: list[np.ndarray] = []
    for block in blocks:
        waiting.append(block)
        while sum(map(len, waiting)) >= size:
            joined = np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
            yield joined[:size]
            waiting = [joined[size:]]
    rest = [block for block in waiting if len(block)]
    if rest:
        yield np.concatenate(rest)
