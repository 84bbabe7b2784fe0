"""Files that are either complete or not there."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing_file", "sync_folder", "write_atomically"]


def write_atomically(path: str | os.PathLike, content: bytes) -> None:
    """Write the whole content of a file."""
    with replacing_file(path) as file:
        file.write(content)


@contextmanager
def replacing_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a file beside ``path`` for writing and rename it to ``path`` at the end.

    A crash or an error, such as a full disk, leaves the old file or none, never half of the new one.
    """
    path = Path(path)
    # Checked here, or the error would name the temporary file.
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "The file to write is a folder", str(path))
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: str | os.PathLike) -> None:
    """Flush the names in a folder to the disk: without it, a power cut may undo a renaming."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
