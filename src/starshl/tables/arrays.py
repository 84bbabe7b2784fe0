"""Array files: a .npy with one matrix, an .npz with a matrix ``X`` and others, and SciPy's sparse matrices."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from scipy import sparse

from .errors import TableError
from .locations import Location
from .source import Cells, Kind, Rows

__all__ = ["ArraySource", "MatrixSource", "SparseSource", "open_archive", "read_header"]

_SPARSE_MEMBERS = {"format", "shape", "data"}  # of every file of scipy.sparse.save_npz


class Header(NamedTuple):
    """What an array file says about its array before any of it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype
    is_fortran: bool = False


class ArraySource:
    """The arrays of an .npz; a matrix counts as a column of vectors. Only the arrays that are needed are expanded."""

    has_names = False
    default_labels = "y"

    def __init__(self, path: Path, headers: Mapping[str, Header]) -> None:
        self.path = path
        self._headers = headers
        self.kinds: Mapping[str, Kind] = {name: _kind(header) for name, header in headers.items()}
        self.default_vectors = "X"

    def describe(self, name: str) -> str:
        """Return the dtype and the shape of an array."""
        return f"an array of {self._headers[name].dtype} with shape {self._headers[name].shape}"

    def position_of(self, name: str) -> str:
        """Return the name; arrays have no numbers."""
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[Rows | None, Mapping[str, Cells]]:
        """Read the matrix and the other arrays; what does not have one entry per row is left out with a warning."""
        if not features:
            return None, {name: self._load(name) for name in others}
        (matrix,) = features
        n_rows = self._count_rows(matrix)
        kept = [name for name in others if self._headers[name].shape == (n_rows,)]
        for name in set(others) - set(kept):
            shape = self._headers[name].shape
            warnings.warn(
                f"{str(self.path)!r} has shape {shape} in {name!r} and {n_rows} rows; this array is left out.",
                stacklevel=4,
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
                "Call the matrix of rows 'X', or name it as `vectors`.",
            )
        # The last two dimensions; whatever has fewer is refused once it is read.
        return next(iter(self._headers[matrix].shape[-2:]), 0)

    def _load(self, name: str) -> np.ndarray:
        with _damage_reported(self.path), np.load(self.path, allow_pickle=False) as archive:
            return archive[name]


class MatrixSource:
    """The one matrix of a .npy."""

    has_names = False
    default_labels = "y"
    default_vectors = "X"
    kinds: Mapping[str, Kind] = {}

    def __init__(self, path: Path) -> None:
        self.path = path
        with _damage_reported(path), path.open("rb") as file:
            read_header(file, path)

    def describe(self, name: str) -> str:
        """Return what the file holds."""
        return "one array"

    def position_of(self, name: str) -> str:
        """Return the name; there is nothing to name."""
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[Rows, Mapping[str, Cells]]:
        """Read the matrix."""
        with _damage_reported(self.path):
            return np.load(self.path, allow_pickle=False), {}


class SparseSource(MatrixSource):
    """A sparse matrix that ``scipy.sparse.save_npz`` wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[Rows, Mapping[str, Cells]]:
        """Read the matrix by rows; indices out of range would crash compiled code, so all are checked."""
        with _damage_reported(self.path):
            matrix = sparse.load_npz(self.path)
            if matrix.format in ("csr", "csc", "bsr"):
                matrix.check_format(full_check=True)
            rows = sparse.csr_matrix(matrix)
            rows.sum_duplicates()
            return rows, {}


def open_archive(path: Path) -> ArraySource | SparseSource:
    """Open an .npz without reading its arrays."""
    headers = {}
    with _damage_reported(path), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                headers[member.filename.removesuffix(".npy")] = _read_header(file, member.file_size)
    return SparseSource(path) if headers.keys() >= _SPARSE_MEMBERS else ArraySource(path, headers)


def read_header(file: IO[bytes], location: Location) -> Header:
    """Read shape and dtype of the array of an open .npy, or say that it is damaged."""
    with _damage_reported(location):
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


def _kind(header: Header) -> Kind:
    is_number = header.dtype.kind in "biuf"
    if len(header.shape) in (2, 3):
        return "vectors" if is_number else "other"
    return "numbers" if is_number else "other"


@contextmanager
def _damage_reported(path: Location) -> Iterator[None]:
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
