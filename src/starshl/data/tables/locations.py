"""Where rows are: files and folders by their paths, or anything that fsspec opens by its URL."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ..._common.extras import require
from ...exceptions import MissingExtraError
from .errors import TableError

#: The path of a file or folder, or a URL.
Location = str | os.PathLike[str]
_ADVICE = "Check the address and your permissions."


def is_url(location: Location) -> bool:
    """Tell whether a location is a URL, such as ``s3://bucket/rows.parquet``.

    Examples
    --------
    >>> is_url("memory://rows.npy"), is_url("rows.npy")
    (True, False)
    """
    return isinstance(location, str) and "://" in location


@contextmanager
def opened(location: Location) -> Iterator[IO[bytes]]:
    """Open a file for reading."""
    if not is_url(location):
        with Path(location).open("rb") as file:
            yield file
        return
    with _reachable(location):
        file = require("fsspec", extra="dask").open(location, "rb").open()
    with file:
        yield file


def suffix_of(location: Location) -> str:
    """Return what a location ends in; an array inside of a Zarr folder counts as Zarr.

    Examples
    --------
    >>> suffix_of("rows.NPY"), suffix_of("s3://bucket/rows.zarr/X")
    ('.npy', '.zarr')
    """
    path = PurePosixPath(str(location))
    return ".zarr" if any(part.endswith(".zarr") for part in path.parts) else path.suffix.lower()


def list_locations(location: Location, kinds: Sequence[str]) -> list[str]:
    """Return the files that a location names, by name: a file, a pattern such as ``rows-*.npy``, or a whole folder.

    Of a folder, the files of one of the ``kinds`` are taken; it must not hold several.
    """
    text = os.fspath(location)
    with _reachable(text):
        files, is_folder = _list_url(text) if is_url(text) else _list_path(text)
    if is_folder:
        present = [kind for kind in kinds if any(suffix_of(file) == kind for file in files)]
        if len(present) != 1:
            what = f"files that end in {' and in '.join(present)}" if present else "no file that is read here"
            raise TableError(text, [f"is a folder with {what}"], f"Give files of one kind: {', '.join(kinds)}.")
        files = [file for file in files if suffix_of(file) == present[0]]
    if not files:
        raise TableError(text, ["names no file"], _ADVICE)
    return sorted(files)


def _list_path(text: str) -> tuple[list[str], bool]:
    path = Path(text)
    if path.is_file() or (path.is_dir() and suffix_of(text) == ".zarr"):
        return [text], False
    if path.is_dir():
        return [str(each) for each in path.iterdir() if not each.name.startswith(".")], True
    return glob.glob(text), False


def _list_url(url: str) -> tuple[list[str], bool]:
    files, inside = require("fsspec", extra="dask").core.url_to_fs(url)
    if any(sign in inside for sign in "*?["):
        return [files.unstrip_protocol(each) for each in files.glob(inside)], False
    if files.isfile(inside) or (suffix_of(inside) == ".zarr" and files.exists(inside)):
        return [url], False
    if files.isdir(inside):
        return [files.unstrip_protocol(each) for each in files.ls(inside, detail=False)], True
    return [], False


def fingerprint(location: Location) -> dict[str, Any]:
    """Return what tells a file from a later one of the same name: its size and when it was changed, where known."""
    if not is_url(location):
        state = os.stat(location)
        return {"bytes": state.st_size, "changed": str(state.st_mtime_ns)}
    with _reachable(os.fspath(location)):
        files, inside = require("fsspec", extra="dask").core.url_to_fs(location)
        facts = files.info(inside)
    changed = next(
        (facts[name] for name in ("ETag", "etag", "mtime", "LastModified", "created") if facts.get(name)), ""
    )
    return {"bytes": facts.get("size"), "changed": str(changed)}


@contextmanager
def _reachable(location: Location) -> Iterator[None]:
    """Say what went wrong with an address in one way, whatever the library of its protocol raises."""
    try:
        yield
    except (MissingExtraError, TableError):
        raise
    except ImportError as error:  # fsspec names the library of the protocol
        raise MissingExtraError(f"{os.fspath(location)!r} cannot be opened: {error}") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise TableError(location, [f"cannot be read ({reason})"], _ADVICE) from error
