"""Snapshots: one file per state of a collection, which restores it here or on another machine."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .._files import draft_folder, replacing_file, sync_folder
from ..answers import Snapshot
from ..collection import Collection
from ..collection.folder import is_own_file
from .archive import read_archive, write_archive
from .errors import ConflictError, UnknownError
from .searcher import Searcher

__all__ = ["SnapshotFolder", "clear_leftovers", "put_back"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_ENDING = ".starsnap"


class SnapshotFolder:
    """The snapshots of one collection, in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def clear_drafts(self) -> None:
        """Delete what a crash has left of snapshots that were not finished."""
        for draft in self.folder.glob(f".*{_ENDING}.*.partial"):
            draft.unlink(missing_ok=True)

    def list(self) -> list[Snapshot]:
        """Return all snapshots, the newest last."""
        found = [path for path in self.folder.glob(f"*{_ENDING}") if _NAME.fullmatch(path.stem) and path.is_file()]
        return sorted((_info(path) for path in found), key=lambda info: (info.created, info.name))

    def path(self, name: str) -> Path:
        """Return the file of a snapshot that exists."""
        path = self._place(name)
        if not path.is_file():
            raise UnknownError(f"There is no snapshot {name!r}. List the snapshots to see their names.")
        return path

    def make(self, searcher: Searcher, name: str | None = None) -> Snapshot:
        """Write a snapshot of the current state; in the meantime, changes wait, but searches do not."""
        target = self._new_place(name or time.strftime("%Y%m%d-%H%M%S", time.gmtime()))

        def write() -> None:
            with searcher.opened() as collection, _new_file(target) as file:
                write_archive(file, collection.folder)

        searcher.undisturbed(write).result()
        return _info(target)

    @contextmanager
    def receive(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file to write a snapshot from elsewhere to; it appears if it is complete and intact."""
        target = self._new_place(name)
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

    def _place(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name[:120]!r} cannot name a snapshot. Use up to 100 letters, digits, hyphens and underscores, of "
                "which the first is a letter or digit."
            )
        return self.folder / f"{name}{_ENDING}"

    def _new_place(self, name: str) -> Path:
        place = self._place(name)
        if place.exists():
            raise _taken(place)
        self.folder.mkdir(parents=True, exist_ok=True)
        return place


def put_back(folder: Path) -> None:
    """Put a collection back that a crash in the middle of a restore has left aside."""
    if _aside(folder).exists() and not folder.exists():
        _aside(folder).rename(folder)
        sync_folder(folder.parent)


def clear_leftovers(folder: Path) -> None:
    """Delete what crashes have left beside a collection; only for the one who may write to it."""
    name = re.escape(folder.name)
    left_by_crash = re.compile(rf"\.{name}\.(job-\w{{8}}|[0-9a-f]{{12}}\.partial|before-restore)")
    for left in folder.parent.iterdir():
        if not left_by_crash.fullmatch(left.name):
            continue
        if left == _aside(folder):
            _discard(left, folder)
        elif left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


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


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.before-restore")


@contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """Yield a file that appears at the end, unless another one of its name has appeared before."""
    try:
        with replacing_file(target, must_be_new=True) as file:
            yield file
    except FileExistsError as error:
        raise _taken(target) from error


def _taken(target: Path) -> ConflictError:
    return ConflictError(f"There is a snapshot {target.stem!r} already. Choose another name, or delete that one.")


def _info(path: Path) -> Snapshot:
    status = path.stat()
    return Snapshot(path.stem, status.st_size, status.st_mtime)
