"""The file of kept vectors: records that are appended before a change is committed, and never changed afterward.

The database says which file is in use, how many records of it count, and which of them each item has, with what
checksum. A record counts once its change is committed. What a failed change has left behind them is overwritten by the
next one, and records of removed items stay as they are until the collection is compacted into a new file. So any state
that a reader holds finds its vectors unchanged, and what a crash leaves is never read.
"""

from __future__ import annotations

import os
import re
import struct
import warnings
import weakref
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from .._common.lazy import library
from .._common.platform import map_file, open_file, sync_folder, write_at
from .._common.threads import tiles
from .._common.validation import SamplesLike, check_choice
from ..exceptions import CollectionError, CollectionFormatError

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher

sparse = library("scipy.sparse")
#: How a number is stored, by the word that users give.
VectorDtype: TypeAlias = Literal["float16", "int8"]
VECTOR_DTYPES: dict[str, np.dtype] = {"float16": np.dtype("<f2"), "int8": np.dtype("i1")}
_LARGEST_INT8 = 127
Result = TypeVar("Result")
FIRST_FILE = "vectors-0.bin"
_NAME = re.compile(r"vectors-[0-9]{1,19}\.bin")
_ID = struct.Struct("<q")
#: Vectors that are in memory together: 32 MB if a vector has 2,000 float32 numbers.
ITEMS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """How a vector is stored: each number is its entry divided by the scale of the vector, and rounded.

    - "float16": the scale is the power of two that brings the largest entry into [1, 2). Rounding changes an entry by
      at most 2^-11 of itself, or 2^-25 of the largest one.
    - "int8": the scale is the largest entry over 127. Rounding changes an entry by at most 1/254 of the largest one.
    """

    vector_dtype: str
    n_columns: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([("scale", "<f8"), ("values", VECTOR_DTYPES[self.vector_dtype], (self.n_columns,))])

    def pack(self, vectors: np.ndarray) -> np.ndarray:
        """Return one record per row of finite numbers."""
        largest = np.abs(vectors).max(axis=1, initial=0.0)
        scales = _power_of_two(largest) if self.vector_dtype == "float16" else largest / _LARGEST_INT8
        # A vector of zeros, or one whose scale is too small for a float, is stored as zeros.
        scales[scales == 0.0] = 1.0
        scaled = vectors / scales[:, None]
        records = np.empty(len(vectors), self.dtype)
        records["scale"] = scales
        records["values"] = scaled if self.vector_dtype == "float16" else np.rint(scaled)
        return records

    def unpack(self, records: np.ndarray) -> np.ndarray:
        """Return records as rows of float64."""
        return records["values"].astype(np.float64) * records["scale"][:, None]


def _power_of_two(largest: np.ndarray) -> np.ndarray:
    """Return the largest powers of two that do not exceed positive numbers; 0 for 0."""
    exponents = np.frexp(largest)[1]
    return np.where(largest > 0, np.ldexp(1.0, exponents - 1), 0.0)


def create_vectors(folder: Path, vector_dtype: VectorDtype, hasher: BaseHasher) -> dict[str, str | int]:
    """Make the empty file of a new collection; return what the database needs to know about it."""
    check_choice(vector_dtype, "vectors", tuple(VECTOR_DTYPES))
    n_columns = hasher.vector_width
    if n_columns is None:
        raise ValueError(
            f"This {type(hasher).__name__} was not fitted on rows of numbers, so there are no vectors to keep. Leave "
            "vectors out."
        )
    layout = RecordLayout(vector_dtype, int(n_columns))
    append_records(folder / FIRST_FILE, np.empty(0, layout.dtype), 0)
    return {"vector_dtype": vector_dtype, "vector_file": FIRST_FILE, "n_columns": layout.n_columns, "n_records": 0}


class VectorLocations(NamedTuple):
    """Where vectors of items are: the numbers of their records in the file, and what their checksums must be."""

    positions: np.ndarray
    checksums: np.ndarray


class VectorsGone(CollectionFormatError):
    """The file of vectors that a state names is missing: it was compacted in the meantime, or lost."""


class VectorFile:
    """The kept vectors of one or more states, mapped into memory; every vector is compared with its checksum."""

    def __init__(self, folder: Path, name: str, layout: RecordLayout) -> None:
        if not _NAME.fullmatch(name):
            raise CollectionFormatError.damaged(f"{name!r} cannot be the name of its vectors", folder)
        self.name = name
        self.layout = layout
        self._path = folder / name
        self._handle = self._opened()
        weakref.finalize(self, os.close, self._handle)
        self._mapped = np.empty(0, layout.dtype)

    def read(self, ids: Sequence[int], locations: VectorLocations) -> np.ndarray:
        """Return the vectors of items as float64, given where each is."""
        return self.layout.unpack(self.records(ids, locations))

    def records(self, ids: Sequence[int], locations: VectorLocations) -> np.ndarray:
        """Return the records of items, or refuse the file if one is not what was stored."""
        positions = locations.positions
        n_records = int(positions.max()) + 1 if len(positions) else 0
        self.check_length(n_records)
        records = self._mapping(n_records)[positions]
        wrong = np.flatnonzero(checksums(ids, records) != locations.checksums)
        if len(wrong):
            item = ids[int(wrong[0])]
            raise CollectionFormatError.damaged(f"the vector of item {item} does not match its checksum", self._path)
        return records

    def find(self, wanted: Container[bytes], n_records: int) -> dict[int, bytes]:
        """Return which of the first ``n_records`` are among these contents, each with its content."""
        self.check_length(n_records)
        mapped, width = self._mapping(n_records), self.layout.dtype.itemsize
        found = {}
        for part in tiles(n_records, ITEMS_AT_ONCE):
            content = mapped[part].tobytes()
            for position, offset in enumerate(range(0, len(content), width), part.start):
                record = content[offset : offset + width]
                if record in wanted:
                    found[position] = record
        return found

    def check_length(self, n_records: int) -> None:
        """Refuse a file that does not hold this many records."""
        size, needed = os.fstat(self._handle).st_size, n_records * self.layout.dtype.itemsize
        if size < needed:
            raise CollectionFormatError.damaged(f"it has {size} bytes, and its vectors need {needed}", self._path)

    def _mapping(self, n_records: int) -> np.ndarray:
        """Return at least this many records of the file, whose length was checked."""
        mapped = self._mapped
        if len(mapped) < n_records:
            length = n_records * self.layout.dtype.itemsize
            self._mapped = mapped = np.frombuffer(map_file(self._handle, length), self.layout.dtype)
        return mapped

    def _opened(self) -> int:
        try:
            return open_file(self._path, os.O_RDONLY)
        except FileNotFoundError as error:
            raise VectorsGone.damaged(f"its file of vectors {str(self._path)!r} is missing") from error
        except OSError as error:
            raise CollectionError(
                f"{str(self._path)!r} cannot be read ({error.strerror}). Nothing was read."
            ) from error


def batches(ids: list[int]) -> Iterator[list[int]]:
    """Yield ids in portions whose vectors fit in memory."""
    for part in tiles(len(ids), ITEMS_AT_ONCE):
        yield ids[part]


def checksums(ids: Sequence[int], records: np.ndarray) -> np.ndarray:
    """Return the checksum of each record, which also covers the id that it belongs to."""
    width, content = records.dtype.itemsize, memoryview(records.tobytes())
    starts = range(0, len(content), width)
    sums = (
        zlib.crc32(content[start : start + width], zlib.crc32(_ID.pack(item)))
        for item, start in zip(ids, starts, strict=True)
    )
    return np.fromiter(sums, np.int64, len(ids))


def append_records(path: Path, records: np.ndarray, n_records: int) -> None:
    """Write records behind the first ``n_records`` of a file, made if it is missing, and flush them to the disk."""
    content = memoryview(records.tobytes())
    try:
        is_new = not path.exists()
        handle = open_file(path, os.O_RDWR | os.O_CREAT)
        try:
            offset = n_records * records.dtype.itemsize
            while content:
                n_written = write_at(handle, content, offset)
                content, offset = content[n_written:], offset + n_written
            os.fsync(handle)
        except OSError:
            # Room on a full disk is worth more than half of a change that was not stored.
            with suppress(OSError):
                os.ftruncate(handle, n_records * records.dtype.itemsize)
            raise
        finally:
            os.close(handle)
        if is_new:
            sync_folder(path.parent)
    except OSError as error:
        raise CollectionError(
            f"{str(path)!r} could not be written ({error.strerror}). Free some space or repair the disk. Nothing of "
            "this change was stored."
        ) from error


def new_file_name(generation: int) -> str:
    """Return the name of a file that a change of this number begins."""
    return f"vectors-{generation}.bin"


def discard_other_vectors(folder: Path, name: str) -> None:
    """Delete the files of vectors that are not in use; the name is empty if none is."""
    for path in folder.glob("vectors-*.bin"):
        if path.name != name:
            path.unlink()


def trim(path: Path, layout: RecordLayout, n_records: int) -> None:
    """Cut off what a change that failed has left behind the records that count."""
    length = n_records * layout.dtype.itemsize
    if path.stat().st_size > length:
        os.truncate(path, length)


def kept_rows(hasher: BaseHasher, X: SamplesLike, n_columns: int) -> np.ndarray:
    """Return what is kept of rows, or compared with what is kept: a matrix of float64.

    Rows of a table hold more than numbers; a collection keeps what the steps of its hasher make of them.
    """
    if not hasher.takes_cells or hasher.for_rows(X) is not hasher:
        return dense_rows(X, n_columns)
    rows = hasher.prepare(X)
    return dense_rows(rows.toarray() if sparse.issparse(rows) else rows, n_columns)


def dense_rows(X: SamplesLike, n_columns: int) -> np.ndarray:
    """Return samples as a matrix of float64 whose rows can be stored, or say what to do."""
    if hasattr(X, "toarray"):
        raise ValueError(
            "X is sparse, and this collection keeps vectors, which are dense. Pass X.toarray(), or make a collection "
            "that keeps none."
        )
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X does not hold numbers only ({error}), and this collection keeps vectors. Make a collection that keeps "
            "none, or turn the samples into vectors first."
        ) from error
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(
            f"X has shape {rows.shape}; this collection keeps vectors of {n_columns} numbers, so it must be "
            f"(n_items, {n_columns})."
        )
    if not np.isfinite(rows).all():
        raise ValueError("X holds NaN or infinity; only finite numbers can be kept. Impute or drop those rows.")
    return rows


def called_with_vectors(method: Callable[[np.ndarray], Result], vectors: np.ndarray) -> Result:
    """Return what a method of a hasher gives for kept vectors, which have the order of its columns, not their names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return method(vectors)
