"""Snapshots: one file per state of a collection, which restores it here or on another machine.

A file is a tar archive of the files of the collection, and a manifest with their checksums at its end.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .._common.files import draft_folder, replacing_file
from .._common.platform import sync_folder
from .._common.strict_json import parse_json
from ..client.answers import Snapshot
from ..collection.collection import Collection
from ..collection.folder import is_own_file
from .errors import ConflictError, UnknownError
from .searcher import Searcher

_MANIFEST = "manifest.json"
_FORMAT = 1
_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20
_LARGEST_MANIFEST = 1 << 16
_MOST_FILES = 100  # a collection has far fewer
# The writer's lock, SQLite's index of its log, and drafts belong to a process, not to a state.
_OF_A_PROCESS = re.compile(r"writer\.lock|.*-shm|.*\.draft|\..*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_ENDING = ".starsnap"


class SnapshotFolder:
    """The snapshots of one collection, in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def delete_drafts(self) -> None:
        """Delete what a crash has left of snapshots that were not finished."""
        for draft in self.folder.glob(f".*{_ENDING}.*.partial"):
            draft.unlink(missing_ok=True)

    def list(self) -> list[Snapshot]:
        """Return all snapshots, the newest last."""
        found = [path for path in self.folder.glob(f"*{_ENDING}") if _NAME.fullmatch(path.stem) and _is_plain(path)]
        return sorted((_info(path) for path in found), key=lambda info: (info.created, info.name))

    def path(self, name: str) -> Path:
        """Return the file of a snapshot that exists."""
        path = self._path_of(name)
        if not _is_plain(path):
            raise UnknownError(f"There is no snapshot {name!r}. List the snapshots to see their names.")
        return path

    def make(self, searcher: Searcher, name: str | None = None) -> Snapshot:
        """Write a snapshot of the current state; in the meantime, changes wait, but searches do not."""
        target = self._new_path(name or time.strftime("%Y%m%d-%H%M%S", time.gmtime()))

        def write() -> None:
            with searcher.opened() as collection, _new_file(target) as file:
                write_archive(file, collection.folder)

        searcher.writer.run_exclusively(write).result()
        return _info(target)

    @contextmanager
    def receive(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file to write a snapshot from elsewhere to; it appears if it is complete and intact."""
        target = self._new_path(name)
        with _new_file(target) as file:
            yield file
            file.flush()
            # Closing a file closes its handle, and this one is still needed.
            with open(os.dup(file.fileno()), "rb") as copy:
                copy.seek(0)
                for _ in read_archive(copy):
                    pass

    def delete(self, name: str) -> None:
        """Delete a snapshot."""
        self.path(name).unlink()

    def restore(self, searcher: Searcher, name: str, *, before: Callable[[], None] | None = None) -> int:
        """Replace a collection by a snapshot, once that is known to be intact; return the number of items.

        Files and folders that others have put into its folder stay.
        ``before`` is called when nothing but the replacement is left to do.
        """
        path = self.path(name)
        draft = draft_folder(searcher.folder)
        try:
            with path.open("rb") as file:
                for member, content in read_archive(file):
                    with (draft / member).open("xb") as copy:
                        shutil.copyfileobj(content, copy)
                        copy.flush()
                        os.fsync(copy.fileno())
            # The first one who opens it for writing moves the log into the file.
            Collection(draft).close()
            with Collection(draft, read_only=True) as collection:
                n_items = collection.verify()
            sync_folder(draft)
            if before is not None:
                before()
            searcher.replace_folder(lambda: _replace(searcher.folder, draft)).result()
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return n_items

    def _path_of(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name[:120]!r} cannot name a snapshot. Use up to 100 letters, digits, hyphens and underscores, of "
                "which the first is a letter or digit."
            )
        return self.folder / f"{name}{_ENDING}"

    def _new_path(self, name: str) -> Path:
        path = self._path_of(name)
        if path.exists():
            raise _exists(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        return path


@contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """Yield a file that appears at the end, unless another one of its name has appeared before."""
    try:
        with replacing_file(target, must_be_new=True) as file:
            yield file
    except FileExistsError as error:
        raise _exists(target) from error


def _exists(target: Path) -> ConflictError:
    return ConflictError(f"There is a snapshot {target.stem!r} already. Choose another name, or delete that one.")


def _info(path: Path) -> Snapshot:
    status = path.stat()
    return Snapshot(path.stem, status.st_size, status.st_mtime)


def recover_folder(folder: Path) -> None:
    """Put a collection back that a crash in the middle of a restore has left aside."""
    if _is_folder(_aside(folder)) and not folder.exists():
        _aside(folder).rename(folder)
        sync_folder(folder.parent)


def delete_leftovers(folder: Path) -> None:
    """Delete what crashes have left beside a collection; only for the one who may write to it."""
    name = re.escape(folder.name)
    left_by_crash = re.compile(rf"\.{name}\.(job-\w{{8}}|[0-9a-f]{{12}}\.partial|before-restore)")
    for left in folder.parent.iterdir():
        if not left_by_crash.fullmatch(left.name):
            continue
        if not _is_folder(left):
            left.unlink(missing_ok=True)
        elif left == _aside(folder):
            _discard(left, folder)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _replace(folder: Path, new: Path) -> None:
    """Put a new folder in the place of another one; a crash leaves the old one, the new one, or the old one aside."""
    aside = _aside(folder)
    folder.rename(aside)
    try:
        new.rename(folder)
    except BaseException:
        aside.rename(folder)
        raise
    sync_folder(folder.parent)
    _discard(aside, folder)


def _discard(aside: Path, folder: Path) -> None:
    """Delete a collection that was replaced, but hand on what others had put into its folder."""
    for path in aside.iterdir():
        if not is_own_file(path.name) and not (folder / path.name).exists():
            path.rename(folder / path.name)
    sync_folder(folder)
    shutil.rmtree(aside, ignore_errors=True)


def _is_folder(path: Path) -> bool:
    """Return whether a folder is there; behind a link from elsewhere, there may be a folder of the user."""
    return path.is_dir() and not path.is_symlink()


def _is_plain(path: Path) -> bool:
    """Return whether a file is there under this name alone; a link from elsewhere would hand out any file."""
    return path.is_file() and not path.is_symlink() and path.stat().st_nlink == 1


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.before-restore")


def write_archive(target: BinaryIO, folder: Path) -> None:
    """Write all files of a collection, which must not change in the meantime."""
    parts = [path for path in sorted(folder.iterdir()) if _is_part(path.name) and path.is_file()]
    checksums = {path.name: _append(target, path) for path in parts}
    manifest = json.dumps({"format": _FORMAT, "sha256": checksums}, indent=1).encode()
    _append_bytes(target, _MANIFEST, manifest)
    target.write(bytes(2 * _BLOCK))


def _is_part(name: str) -> bool:
    """Return whether a file of this name is part of the state of a collection; what others put beside it is not."""
    return is_own_file(name) and not _OF_A_PROCESS.fullmatch(name)


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
    if header.type != tarfile.REGTYPE or header.size < 0 or not (_is_part(header.name) or header.name == _MANIFEST):
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
