"""Model files: a JSON header and safetensors arrays in one file, checked by SHA-256, never code.

The file is an ordinary safetensors file whose metadata holds the header, so any safetensors reader can
look inside. Nothing here knows a class: :mod:`starshl.catalog` turns the header's method name into one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as to_safetensors

from ._digest import array_digest
from ._file_kinds import file_kind
from ._files import write_atomically
from ._json import parse_json
from .exceptions import BundleFormatError

__all__ = ["FORMAT", "read_bundle", "read_checksum", "write_bundle"]

FORMAT = 1


def write_bundle(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write header and arrays to ``path`` so that the file is either complete or not there."""
    arrays = {name: _as_stored(array) for name, array in arrays.items()}
    write_atomically(path, _seal({"format": FORMAT, **header}, arrays))


def read_bundle(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file written by :func:`write_bundle`, or refuse it."""
    path = Path(path)
    header, checksum, arrays = _read(path, with_arrays=True)
    if checksum != _digest(header, arrays):
        raise BundleFormatError(
            f"The contents of {str(path)!r} do not match their checksum: the file was damaged or edited "
            "after it was saved. Save the model again or fetch a fresh copy."
        )
    return header, arrays


def read_checksum(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 that a file carries, without comparing it with the contents."""
    return _read(Path(path), with_arrays=False)[1]


def _read(path: Path, *, with_arrays: bool) -> tuple[dict[str, Any], str, dict[str, np.ndarray]]:
    if path.is_dir():
        raise FileNotFoundError(f"There is no model file at {str(path)!r}: it is a folder, and a model is one file.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file at {str(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            header, checksum = _parse_header((file.metadata() or {}).get("starshl"), path)
            names = file.keys() if with_arrays else []
            return header, checksum, {name: file.get_tensor(name) for name in names}
    except BundleFormatError:
        raise
    except Exception as error:  # a file that anyone may have written can fail anywhere in a reader
        raise BundleFormatError(_not_a_model(path, error)) from error


def _not_a_model(path: Path, error: Exception) -> str:
    """Say what the file seems to be; what safetensors says of it is about bytes, not about files."""
    kind = file_kind(path)
    if kind is None:
        reason = f" ({error})" if isinstance(error, ValueError) else ""  # said here, about a header that was read
        return (
            f"{str(path)!r} is not a readable model file{reason}: it is truncated, damaged or of another kind. Save "
            "the model again, or fetch a fresh copy."
        )
    return f"{str(path)!r} is not a readable model file: it seems to be {kind}. Give a file that a fitted model saved."


def _parse_header(text: str | None, path: Path) -> tuple[dict[str, Any], str]:
    """Return the header and the checksum that it announces."""
    if text is None:
        raise BundleFormatError(
            f"{str(path)!r} is a safetensors file, but not one that starshl wrote. "
            "Open it with the program that made it."
        )
    sealed = parse_json(text)
    if not isinstance(sealed, dict) or sealed.keys() != {"header", "sha256"}:
        raise ValueError("its metadata is not a header and a checksum")
    header, checksum = sealed["header"], sealed["sha256"]
    number = header.get("format") if isinstance(header, dict) else None
    # The type itself: True is an integer to Python, and 1.0 equals 1.
    if type(number) is not int or number < 1 or not isinstance(checksum, str):
        raise ValueError("its header has no format number, or it has no checksum")
    if number > FORMAT:
        raise BundleFormatError(
            f"{str(path)!r} has format {number}; this version of starshl reads up to {FORMAT}. Install a newer starshl."
        )
    return header, checksum


def _seal(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    # One metadata entry, because safetensors writes several in any order and equal models make equal files.
    text = json.dumps({"header": header, "sha256": _digest(header, arrays)}, sort_keys=True, allow_nan=False)
    return to_safetensors(arrays, metadata={"starshl": text})


def _digest(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    return array_digest(arrays, head=json.dumps(header, sort_keys=True, allow_nan=False) + "\n")


def _as_stored(array: np.ndarray) -> np.ndarray:
    """Return the array as safetensors holds it: C order, little-endian."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
