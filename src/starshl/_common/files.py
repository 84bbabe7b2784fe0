"""Files and folders that appear complete or not at all, what kind a file seems to be, and checksums of arrays."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .platform import open_file, sync_folder

_KIND_BYTES = 4096  # at the beginning of a file, which tell what it seems to be
_BEGINNINGS = (
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"PAR1", "a Parquet table"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"II*\0", "a picture (TIFF)"),
    (b"MM\0*", "a picture (TIFF)"),
    (b"%PDF", "a PDF"),
    (b"\x1f\x8b", "a file compressed by gzip"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
)
_BY_NAME = {
    ".npz": "a NumPy archive (.npz)",
    ".onnx": "an ONNX model",
    ".csv": "a table in text (.csv)",
    ".tsv": "a table in text (.tsv)",
    ".jsonl": "a table of JSON lines (.jsonl)",
    ".json": "a JSON file",
    ".html": "a page in HTML",
}
_PIECE_BYTES = 1 << 24  # 16 MB: rows are not copied as a whole


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


def refuse_existing(path: str | os.PathLike[str], advice: str) -> None:
    """Refuse to make a file or folder where there is one; ``advice`` is a sentence of what to do."""
    if Path(path).exists():
        raise FileExistsError(f"{os.fspath(path)!r} exists already. {advice}")


@contextmanager
def atomic_folder(folder: Path, advice: str) -> Iterator[Path]:
    """Fill a folder next to the target and rename it at the end, so that it appears complete or not at all.

    If there is such a folder, it stays as it is, and the error gives this ``advice``.
    """
    refuse_existing(folder, advice)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_folder(folder)
    try:
        yield draft
        sync_folder(draft)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync_folder(folder.parent)


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
    while True:
        draft = _draft_name(path)
        try:
            return draft, open_file(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            continue


def _draft_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")


def file_kind(path: str | os.PathLike[str]) -> str | None:
    """Return what a file seems to be, with its article; None if it does not look like anything that is known here."""
    path = Path(path)
    with path.open("rb") as file:
        content = file.read(_KIND_BYTES)
    if not content:
        return "an empty file"
    suffix = path.suffix.lower()
    if content.startswith(b"PK\x03\x04") and suffix == ".npz":
        return _BY_NAME[suffix]
    known = next((kind for beginning, kind in _BEGINNINGS if content.startswith(beginning)), None)
    if known is not None or suffix == ".onnx":
        return known or _BY_NAME[suffix]
    return _BY_NAME.get(suffix, "a text file") if _is_text(content) else None


def _is_text(content: bytes) -> bool:
    if any(byte < 32 and byte not in b"\t\n\r\f" for byte in content):
        return False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(content) - 4  # the end may cut a character in two
    return True


def array_digest(arrays: Mapping[str, np.ndarray], head: str = "") -> str:
    """Return the SHA-256 of a text and of named arrays: names, types, shapes and contents.

    Examples
    --------
    >>> import numpy as np
    >>> array_digest({"y": np.arange(3)}) == array_digest({"y": np.arange(3, dtype=np.int8)})
    False
    """
    digest = hashlib.sha256(head.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.newbyteorder('<').str} {array.shape}\n".encode())
        for piece in bytes_in_pieces(array):
            digest.update(piece)
    return digest.hexdigest()


def bytes_in_pieces(array: np.ndarray) -> Iterator[memoryview]:
    """Yield the little-endian bytes of an array in C order without copying all of it at once."""
    if array.nbytes == 0:
        return
    rows = array.reshape(1) if array.ndim == 0 else array
    step = max(1, _PIECE_BYTES * len(rows) // rows.nbytes)
    for start in range(0, len(rows), step):
        piece = rows[start : start + step]
        piece = np.ascontiguousarray(piece, dtype=piece.dtype.newbyteorder("<"))
        yield piece.reshape(-1).view(np.uint8).data
