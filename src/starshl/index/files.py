"""Index files: ordinary safetensors files, written in one go and memory-mapped on demand.

The metadata holds the format number, what the index is, and a SHA-256 of it and of the arrays. Any
safetensors reader can look inside; this module reads the layout itself because a mapped array must be
writable in private (a reader's own copy on write), which safetensors does not offer.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replacing_file
from ..exceptions import IndexFormatError

__all__ = ["FORMAT", "read_index_file", "write_index_file"]

FORMAT = 1

_DTYPES = {"I64": np.int64, "I32": np.int32, "U64": np.uint64, "U32": np.uint32, "U8": np.uint8}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_ALIGNMENT = 64


def write_index_file(path: str | os.PathLike, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write the file so that it is either complete or not there."""
    # Wide words first: each array then starts at a multiple of its own item size.
    arrays = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    text = json.dumps({"format": FORMAT, **header}, sort_keys=True)
    layout: dict[str, Any] = {"__metadata__": {"starshl-index": text, "sha256": _digest(text, arrays)}}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        dtype = _NAMES[array.dtype]
        layout[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
    head = json.dumps(layout).encode()
    head += b" " * (-(8 + len(head)) % _ALIGNMENT)
    with replacing_file(path) as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for array in arrays.values():
            for piece in _pieces(array):
                file.write(piece)


def read_index_file(
    path: str | os.PathLike, *, memory_map: bool, verify: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file written by :func:`write_index_file`, or refuse it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no index file at {str(path)!r}.")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            # A private mapping: pages are read when used, and what is written to them stays here.
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            text, digest, arrays = _parse(content, size)
            header = json.loads(text)
            newest = int(header["format"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise IndexFormatError(
                f"{str(path)!r} is not a readable index file ({error}). It is truncated, damaged or of "
                "another kind: save the index again or fetch a fresh copy."
            ) from error
    if newest > FORMAT:
        raise IndexFormatError(
            f"{str(path)!r} has format {newest}; this version of starshl reads up to {FORMAT}. Install a newer starshl."
        )
    if verify and digest != _digest(text, arrays):
        raise IndexFormatError(
            f"The contents of {str(path)!r} do not match their checksum: the file was damaged or edited "
            "after it was saved. Save the index again or fetch a fresh copy."
        )
    return header, arrays if memory_map else {name: array.copy() for name, array in arrays.items()}


def _parse(content: mmap.mmap, size: int) -> tuple[str, str, dict[str, np.ndarray]]:
    length = int.from_bytes(content[:8], "little")
    if 8 + length > size:
        raise ValueError(f"its header says {length} bytes, the file has {size}")
    layout = json.loads(content[8 : 8 + length])
    metadata = layout.pop("__metadata__")
    arrays, expected = {}, 0
    for name, entry in layout.items():
        begin, end = entry["data_offsets"]
        shape, dtype = tuple(entry["shape"]), np.dtype(_DTYPES[entry["dtype"]])
        count = int(np.prod(shape, dtype=object)) if shape else 1
        if begin != expected or end - begin != count * dtype.itemsize:
            raise ValueError(f"the entry {name!r} of its header is not consistent")
        expected = end
        if 8 + length + end > size:
            raise ValueError(f"{8 + length + end} bytes are needed, the file has {size}")
        arrays[name] = np.frombuffer(content, dtype, count, 8 + length + begin).reshape(shape)
    if 8 + length + expected != size:
        raise ValueError(f"it should end after {8 + length + expected} bytes, the file has {size}")
    return metadata["starshl-index"], metadata["sha256"], arrays


def _digest(text: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        for piece in _pieces(arrays[name]):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(array: np.ndarray):
    """Yield the bytes of an array in C order, row by row, without copying all of it."""
    for row in np.atleast_2d(array):
        yield np.ascontiguousarray(row).view(np.uint8).data
