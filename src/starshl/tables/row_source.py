"""Rows that stay where they are, in memory or in a file, and are read block by block."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._extras import require
from .errors import Cause, TableError
from .locations import Location, is_url, opened

__all__ = ["ArrayRows", "ParquetRows", "RowSource", "regrouped"]

_BATCH_ROWS = 4096  # that are read from a Parquet file at a time
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
    precision_in_memory : the dtype in which :func:`starshl.tables.read_table` returns the rows
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
        if self.path is None or not isinstance(array, np.memmap) or not isinstance(array.base, mmap.mmap):
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
            _release_pages(self.array)


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


def _release_pages(array: np.ndarray) -> None:
    """Give back the memory of pages that were read through a map; they are read again when they are needed.

    Without it, they count as memory of the process until other processes ask for it.
    """
    if getattr(array, "mode", None) != "r":  # of other maps, this might undo what was written into them
        return
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(base, "madvise"):
        base.madvise(mmap.MADV_DONTNEED)


def _is_list(kind: Any) -> bool:
    types = require("pyarrow", extra="parquet").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
