"""Rows of arrays that no memory map reaches: a .npy behind a URL, and Zarr arrays anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._extras import require
from .arrays import read_header
from .errors import TableError
from .locations import Location, is_url, opened
from .row_source import RowSource

__all__ = ["RemoteRows", "ZarrRows"]

_LARGEST_GAP = 1 << 20  # bytes between wanted rows up to which one request for all is faster than two


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
            raise TableError(self._location, [problem], f"Give the address of one, such as {self._location}/X.")
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
