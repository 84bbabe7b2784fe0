"""The number of the last acknowledged change, kept in a small file next to the database.

If a frame of its write-ahead log is damaged, SQLite drops it and all later ones and reports nothing: an older state
then looks like an intact database. This file reveals that. It is written after a change is committed and before the
method returns, so the database may be one change ahead of it (if the writer died in between), but never behind.

The file has two slots, each in its own sector, written alternately and in place: a power cut during a write spoils
only the older number, and a full disk still has room for it.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

from ..exceptions import CollectionError, CollectionFormatError

__all__ = ["FILE_NAME", "acknowledge", "create_counter", "read_acknowledged"]

FILE_NAME = "acknowledged"

_SECTOR = 512
_NUMBER = struct.Struct("<q")
_CHECKSUM = struct.Struct("<I")
# A reader may catch the writer in the middle of a slot once, but not several times in a row.
_READS = 3
# Where there is no fdatasync, fsync does the same and a little more.
_flush = getattr(os, "fdatasync", os.fsync)


def create_counter(path: Path) -> None:
    """Make the file of a new collection, whose first state is number 0."""
    with path.open("xb") as file:
        file.write(2 * _slot(0).ljust(_SECTOR, b"\0"))
        file.flush()
        os.fsync(file.fileno())


def acknowledge(path: Path, generation: int) -> None:
    """Write the number of a committed change to the disk."""
    slot = _slot(generation)
    try:
        handle = os.open(path, os.O_WRONLY)
        try:
            if os.pwrite(handle, slot, generation % 2 * _SECTOR) != len(slot):
                raise OSError(0, "the number was written in part")
            _flush(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise CollectionError(
            f"The change is stored, but {str(path)!r} could not be written ({error.strerror}), so damage to the "
            "log might go unnoticed. Repair the disk and open the collection again."
        ) from error


def read_acknowledged(path: Path) -> int:
    """Return the number of the last acknowledged change."""
    for _ in range(_READS):
        numbers = _numbers(path)
        if numbers:
            return max(numbers)
    raise CollectionFormatError(
        f"{str(path)!r} is damaged; without it, lost changes cannot be noticed. Restore the whole folder from a copy."
    )


def _numbers(path: Path) -> list[int]:
    """Return the numbers in the slots that are intact."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise CollectionFormatError(f"{str(path)!r} is missing. Restore the whole folder from a copy.") from error
    except OSError as error:
        raise CollectionError(f"{str(path)!r} cannot be read ({error.strerror}). Nothing was read.") from error
    length = _NUMBER.size + _CHECKSUM.size
    slots = [content[start : start + length] for start in (0, _SECTOR)]
    return [_NUMBER.unpack(slot[: _NUMBER.size])[0] for slot in slots if len(slot) == length and _is_intact(slot)]


def _is_intact(slot: bytes) -> bool:
    number, checksum = slot[: _NUMBER.size], slot[_NUMBER.size :]
    return _CHECKSUM.unpack(checksum)[0] == zlib.crc32(number)


def _slot(generation: int) -> bytes:
    number = _NUMBER.pack(generation)
    return number + _CHECKSUM.pack(zlib.crc32(number))
