"""Files that are either complete or not there."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["draft_folder", "replacing_file", "sync_folder", "write_atomically"]


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write the whole content of a file."""
    with replacing_file(path) as file:
        file.write(content)


@contextmanager
def replacing_file(path: str | os.PathLike[str], *, must_be_new: bool = False) -> Iterator[BinaryIO]:
    """Open a file next to ``path`` for writing and rename it to ``path`` at the end.

    A crash or an error, such as a full disk, leaves the old file or none, never half of the new one. If it
    ``must_be_new``, a file that has appeared at ``path`` in the meantime stays, and FileExistsError is raised.
    """
    path = Path(path)
    # Checked here, or the error would name the temporary file.
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "The file to write is a folder", str(path))
    temporary, handle = _draft_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if must_be_new:
            _name_once(temporary, path)
        else:
            os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)  # an error of a full disk names no file
        raise
    sync_folder(path.parent)


def _name_once(temporary: Path, path: Path) -> None:
    """Rename a file to a name that must be free; unlike a renaming, a link never replaces a file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # Not every file system has links.
        if path.exists():
            raise FileExistsError(errno.EEXIST, "There is such a file already", str(path)) from None
        os.replace(temporary, path)
    else:
        temporary.unlink()


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Flush the names in a folder to the disk: without it, a power cut may undo a renaming."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def draft_folder(folder: Path) -> Path:
    """Make an empty hidden folder next to ``folder``, to be filled and then renamed to it."""
    while True:
        draft = _draft_name(folder)
        try:
            draft.mkdir()
            return draft
        except FileExistsError:
            continue


def _draft_file(path: Path) -> tuple[Path, int]:
    # The kernel applies the umask to 0o666. Asking for the umask means setting it, for all threads at once.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        draft = _draft_name(path)
        try:
            return draft, os.open(draft, flags, 0o666)
        except FileExistsError:
            continue


def _draft_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
