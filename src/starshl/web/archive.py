"""The file of a snapshot: a plain tar of the collection's files, closed by a manifest with their checksums.

Any tar program can unpack it. Here it is read header by header, and only ordinary files with plain names are accepted:
no links, no paths, no extended headers, no compression, so nothing can be written elsewhere and nothing can swell.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .._json import parse_json
from ..collection.folder import is_own_file

__all__ = ["read_archive", "write_archive"]

_MANIFEST = "manifest.json"
_FORMAT = 1
_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20
_LARGEST_MANIFEST = 1 << 16
_MOST_FILES = 100  # a collection has far fewer
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,90}")
# The writer's lock, SQLite's index of its log, and drafts belong to a process, not to a state.
_OF_A_PROCESS = re.compile(r"writer\.lock|.*-shm|.*\.draft|\..*")


def write_archive(target: BinaryIO, folder: Path) -> None:
    """Write all files of a collection, which must not change in the meantime."""
    checksums = {path.name: _append(target, path) for path in sorted(folder.iterdir()) if _is_part(path)}
    manifest = json.dumps({"format": _FORMAT, "sha256": checksums}, indent=1).encode()
    _append_bytes(target, _MANIFEST, manifest)
    target.write(bytes(2 * _BLOCK))


def _is_part(path: Path) -> bool:
    """Return whether a file is part of the state of a collection; what others put into its folder is not."""
    return is_own_file(path.name) and not _OF_A_PROCESS.fullmatch(path.name) and path.is_file()


def read_archive(source: BinaryIO) -> Iterator[tuple[str, BinaryIO]]:
    """Yield the name and the content of each file; at the end, refuse an archive that is not what was written.

    Each content must be read before the next one; what is left unread is skipped, but still checked.
    """
    checksums: dict[str, str] = {}
    while True:
        name, size = _read_header(source)
        if name == _MANIFEST:
            _check_manifest(source, size, checksums)
            return
        if name in checksums or len(checksums) == _MOST_FILES:
            raise ValueError(
                f"The snapshot holds {name!r} twice, or more than {_MOST_FILES} files, so it was not made by starshl. "
                "Send a snapshot of a collection."
            )
        content = _Content(source, size)
        yield name, content  # type: ignore[misc]  # it has what copyfileobj needs of a file
        checksums[name] = content.finish()


class _Content(io.RawIOBase):
    """The next bytes of a file, hashed as they are read."""

    def __init__(self, source: BinaryIO, size: int) -> None:
        self._source = source
        self._left = size
        self._padding = -size % _BLOCK
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        content = self._source.read(wanted)
        if len(content) < wanted:
            raise ValueError("The snapshot ends too early: it is incomplete. Make or send it again.")
        self._left -= len(content)
        self._hash.update(content)
        return content

    def finish(self) -> str:
        while self._left:
            self.read(_CHUNK)
        self._source.read(self._padding)
        return self._hash.hexdigest()


def _read_header(source: BinaryIO) -> tuple[str, int]:
    block = source.read(_BLOCK)
    try:
        header = tarfile.TarInfo.frombuf(block, "ascii", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as error:
        raise ValueError(f"The snapshot is incomplete or not a snapshot at all ({error}).") from error
    if header.type != tarfile.REGTYPE or not _FILE_NAME.fullmatch(header.name) or header.size < 0:
        raise ValueError(
            f"The snapshot holds {header.name[:80]!r}, so it was not made by starshl. Nothing was unpacked."
        )
    return header.name, header.size


def _check_manifest(source: BinaryIO, size: int, checksums: dict[str, str]) -> None:
    if size > _LARGEST_MANIFEST:
        raise ValueError(
            f"The manifest of the snapshot has {size} bytes, so it was not made by starshl. Send a snapshot of a "
            "collection."
        )
    manifest = parse_json(_Content(source, size).read())
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ValueError(
            "The snapshot has a format that this version of starshl does not read. Install a newer starshl."
        )
    if manifest.get("sha256") != checksums:
        raise ValueError("The files of the snapshot do not match their checksums: it is damaged. Use another one.")


def _append(target: BinaryIO, path: Path) -> str:
    """Write a file to the archive; return its checksum."""
    size = path.stat().st_size
    target.write(_header(path.name, size))
    with path.open("rb") as file:
        content = _Content(file, size)
        while chunk := content.read(_CHUNK):
            target.write(chunk)
        checksum = content.finish()
    target.write(bytes(-size % _BLOCK))
    return checksum


def _append_bytes(target: BinaryIO, name: str, content: bytes) -> None:
    target.write(_header(name, len(content)) + content + bytes(-len(content) % _BLOCK))


def _header(name: str, size: int) -> bytes:
    header = tarfile.TarInfo(name)
    header.size, header.mode = size, 0o600
    return header.tobuf(tarfile.GNU_FORMAT, "ascii", "strict")
