"""Index files: ordinary safetensors files, written in one go and memory-mapped on demand.

The metadata holds the format number, what the index is, and a SHA-256 of it and of the arrays. Any
safetensors reader can open it; this module reads the layout itself because a mapped array must be writable
in private (copy on write), which safetensors does not offer.
"""

from __future__ import annotations

import json
import os
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .._common.files import array_digest, bytes_in_pieces, replacing_file
from .._common.platform import map_file
from .._common.strict_json import parse_json
from ..exceptions import IndexFormatError

FORMAT = 2
_DTYPES = {
    "I64": np.int64,
    "I32": np.int32,
    "U64": np.uint64,
    "U32": np.uint32,
    "U8": np.uint8,
    "F64": np.float64,
    "F32": np.float32,
}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_ALIGNMENT = 64  # bytes of a cache line, so that mapped arrays are aligned
# A header of ours takes less than a thousandth of this.
_MAX_HEADER_BYTES = 1 << 20


def write_index_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write the file so that it is either complete or absent."""
    # Wide words first: each array then starts at a multiple of its own item size.
    arrays = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    text = json.dumps({"format": FORMAT, **header}, sort_keys=True)
    layout: dict[str, Any] = {"__metadata__": {"starshl-index": text, "sha256": array_digest(arrays, text)}}
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
            for piece in bytes_in_pieces(array):
                file.write(piece)


def read_index_file(
    path: str | os.PathLike[str], *, memory_map: bool, verify: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file written by :func:`write_index_file`, or refuse it.

    The caller checks what the arrays hold: this function only knows where they are.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no index file at {str(path)!r}.")
    with path.open("rb") as file:
        try:
            content = memoryview(map_file(file.fileno(), private=True)) if memory_map else _read(file)
            layout, begin = _read_layout(content)
            text, digest = _read_metadata(layout.pop("__metadata__"))
            header = _object(text)
            number = _format_number(header)
            if number == FORMAT:
                arrays = _read_arrays(content[begin:], layout)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise IndexFormatError.unreadable(path, str(error)) from error
    if number != FORMAT:
        raise IndexFormatError.of_format(path, number, FORMAT)
    if verify and digest != array_digest(arrays, text):
        raise IndexFormatError.damaged("its contents do not match their checksum", path)
    return header, arrays


def _read(file: BufferedReader) -> memoryview:
    """Return the content in memory, where no later change of the file can reach it."""
    content = np.empty(os.fstat(file.fileno()).st_size, np.uint8)
    if file.readinto(content.data) != len(content):
        raise ValueError("it became shorter while it was read")
    return content.data


def _read_layout(content: memoryview) -> tuple[dict[str, Any], int]:
    """Return the safetensors header, and where the arrays begin."""
    size, length = len(content), int.from_bytes(content[:8], "little")
    if 8 + length > size:
        raise ValueError(f"its header says {length} bytes, the file has {size}")
    if length > _MAX_HEADER_BYTES:
        raise ValueError(f"its header says {length} bytes, at most {_MAX_HEADER_BYTES} are allowed")
    return _object(bytes(content[8 : 8 + length])), 8 + length


def _read_metadata(metadata: dict[str, Any]) -> tuple[str, str]:
    text, digest = metadata["starshl-index"], metadata["sha256"]
    if not isinstance(text, str) or not isinstance(digest, str):
        raise ValueError("its metadata is not text")
    text.encode()  # lone surrogates are JSON, but not text that has bytes
    return text, digest


def _read_arrays(data: memoryview, layout: dict[str, Any]) -> dict[str, np.ndarray]:
    arrays, begin = {}, 0
    for name, entry in layout.items():
        shape, dtype = _shape(entry["shape"]), np.dtype(_DTYPES[entry["dtype"]])
        end = begin + prod(shape) * dtype.itemsize
        if entry["data_offsets"] != [begin, end]:
            raise ValueError(f"the entry {name!r} of its header is not consistent")
        if end > len(data):
            raise ValueError(f"its arrays need {end} bytes, the file has {len(data)} for them")
        arrays[name] = np.frombuffer(data[begin:end], dtype).reshape(shape)
        if not arrays[name].flags.aligned:
            raise ValueError(f"the array {name!r} does not start at a multiple of its item size")
        begin = end
    if begin != len(data):
        raise ValueError(f"its arrays should end after {begin} bytes, the file has {len(data)} for them")
    return arrays


def _shape(entry: object) -> tuple[int, ...]:
    if not isinstance(entry, list) or not all(type(n) is int and n >= 0 for n in entry):
        raise ValueError(f"{entry!r} is not a shape")
    return tuple(entry)


def _object(text: str | bytes) -> dict[str, Any]:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"its header is a JSON {type(value).__name__}, not an object")
    return value


def _format_number(header: dict[str, Any]) -> int:
    number = header.get("format")
    if type(number) is not int or number < 1:
        raise ValueError("its header has no format number")
    return number
