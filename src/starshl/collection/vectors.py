"""The file of kept vectors: records that are appended before a change is committed, and never changed afterward.

The database says which file is in use, how many of its slots are taken, and which slot and checksum each item has.
A slot is taken once its change is committed. What a failed change has left behind the last taken slot is overwritten by
the next one, and slots of removed items stay as they are until the collection is compacted into a new file. So any
state that a reader holds finds its vectors unchanged, and what a crash leaves is never read.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import weakref
import zlib
from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from .._files import sync_folder
from .._validation import check_choice
from ..base import BaseHasher
from ..exceptions import CollectionError, CollectionFormatError
from .prepared_rows import kept_width
from .quantization import KINDS, RecordLayout

__all__ = [
    "FIRST_FILE",
    "VectorFile",
    "VectorsGone",
    "append_records",
    "create_vectors",
    "discard_other_vectors",
    "new_file_name",
    "sums",
    "trim",
]

FIRST_FILE = "vectors-0.bin"

_NAME = re.compile(r"vectors-[0-9]{1,19}\.bin")
_ID = struct.Struct("<q")
_SLOTS_AT_ONCE = 4096  # compared with others


def create_vectors(folder: Path, kind: str, hasher: BaseHasher) -> dict[str, str | int]:
    """Make the empty file of a new collection; return the facts about it that the database needs."""
    check_choice(kind, "vectors", tuple(KINDS))
    n_columns = kept_width(hasher)
    if n_columns is None:
        raise ValueError(
            f"This {type(hasher).__name__} was not fitted on rows of numbers, so there are no vectors to keep. Leave "
            "vectors out."
        )
    layout = RecordLayout(kind, int(n_columns))
    append_records(folder / FIRST_FILE, np.empty(0, layout.dtype), 0)
    return {"vector_kind": kind, "vector_file": FIRST_FILE, "n_columns": layout.n_columns, "n_slots": 0}


class VectorsGone(CollectionFormatError):
    """The file of vectors that a state names is missing: it was compacted in the meantime, or lost."""


class VectorFile:
    """The kept vectors of one or more states, mapped into memory; every vector is compared with its checksum."""

    def __init__(self, folder: Path, name: str, layout: RecordLayout) -> None:
        if not _NAME.fullmatch(name):
            raise CollectionFormatError(
                f"{name!r} cannot name vectors of {str(folder)!r}: the collection is damaged. Restore it from a copy."
            )
        self.name = name
        self.layout = layout
        self._path = folder / name
        self._handle = self._opened()
        weakref.finalize(self, os.close, self._handle)
        self._mapped = np.empty(0, layout.dtype)

    def read(self, ids: Sequence[int], places: dict[int, tuple[int, int]]) -> np.ndarray:
        """Return the vectors of items as float64, given the slot and the checksum of each."""
        return self.layout.unpack(self.records(ids, places))

    def records(self, ids: Sequence[int], places: dict[int, tuple[int, int]]) -> np.ndarray:
        """Return the records of items, or refuse the file if one is not what was stored."""
        slots = np.array([places[item][0] for item in ids], np.int64)
        if len(slots) and slots.min() < 0:
            raise self._damaged(ids[int(slots.argmin())])
        n_slots = int(slots.max()) + 1 if len(slots) else 0
        self.check_length(n_slots)
        records = self._mapping(n_slots)[slots]
        for item, found in zip(ids, sums(ids, records), strict=True):
            if found != places[item][1]:
                raise self._damaged(item)
        return records

    def places_of(self, wanted: Container[bytes], n_slots: int) -> dict[int, bytes]:
        """Return the slots, of the first ``n_slots``, that hold one of these records, and which."""
        self.check_length(n_slots)
        mapped, width = self._mapping(n_slots), self.layout.dtype.itemsize
        found = {}
        for start in range(0, n_slots, _SLOTS_AT_ONCE):
            content = mapped[start : min(start + _SLOTS_AT_ONCE, n_slots)].tobytes()
            for slot, place in enumerate(range(0, len(content), width), start):
                record = content[place : place + width]
                if record in wanted:
                    found[slot] = record
        return found

    def check_length(self, n_slots: int) -> None:
        """Refuse a file that does not hold this many slots."""
        size, needed = os.fstat(self._handle).st_size, n_slots * self.layout.dtype.itemsize
        if size < needed:
            raise CollectionFormatError(
                f"{str(self._path)!r} has {size} bytes, and its vectors need {needed}: the file is damaged. Restore "
                "the whole folder from a copy."
            )

    def _mapping(self, n_slots: int) -> np.ndarray:
        """Return at least this many records of the file, whose length was checked."""
        mapped = self._mapped
        if len(mapped) < n_slots:
            length = n_slots * self.layout.dtype.itemsize
            pages = mmap.mmap(self._handle, length, access=mmap.ACCESS_READ)
            self._mapped = mapped = np.frombuffer(pages, self.layout.dtype)
        return mapped

    def _opened(self) -> int:
        try:
            return os.open(self._path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError as error:
            raise VectorsGone(
                f"The file of vectors {str(self._path)!r} is missing. Restore the whole folder from a copy."
            ) from error
        except OSError as error:
            raise CollectionError(
                f"{str(self._path)!r} cannot be read ({error.strerror}). Nothing was read."
            ) from error

    def _damaged(self, item: int) -> CollectionFormatError:
        return CollectionFormatError(
            f"The vector of item {item} in {str(self._path)!r} does not match its checksum: the file is damaged. "
            "Restore the whole folder from a copy."
        )


def sums(ids: Sequence[int], records: np.ndarray) -> list[int]:
    """Return the checksum of each record, which also covers the id that it belongs to."""
    width, content = records.dtype.itemsize, memoryview(records.tobytes())
    starts = range(0, len(content), width)
    return [
        zlib.crc32(content[start : start + width], zlib.crc32(_ID.pack(item)))
        for item, start in zip(ids, starts, strict=True)
    ]


def append_records(path: Path, records: np.ndarray, n_slots: int) -> None:
    """Write records behind the first ``n_slots`` of a file, made if it is missing, and flush them to the disk."""
    content = memoryview(records.tobytes())
    try:
        is_new = not path.exists()
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            place = n_slots * records.dtype.itemsize
            while content:
                n_written = os.pwrite(handle, content, place)
                content, place = content[n_written:], place + n_written
            os.fsync(handle)
        except OSError:
            # Room on a full disk is worth more than half of a change that was not stored.
            with suppress(OSError):
                os.ftruncate(handle, n_slots * records.dtype.itemsize)
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


def trim(path: Path, layout: RecordLayout, n_slots: int) -> None:
    """Cut off what a change that failed has left behind the slots in use."""
    length = n_slots * layout.dtype.itemsize
    if path.stat().st_size > length:
        os.truncate(path, length)
