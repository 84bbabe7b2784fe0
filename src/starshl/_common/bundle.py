"""Model files: a JSON header and safetensors arrays in one file, checked by SHA-256, never code.

:func:`write_bundle` and :func:`read_bundle` write and read the file: an ordinary safetensors file whose metadata holds
the header, so that any safetensors reader can look inside. :func:`pack_values` and :func:`unpack_values` turn the named
values of an object into entries of the header and arrays, and back. Reading trusts nothing in a file, and nothing here
knows a method: :mod:`starshl.hashers.catalog` turns the method's name in a header into a class.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as to_safetensors

from ..exceptions import BundleFormatError
from .files import array_digest, file_kind, write_atomically
from .strict_json import parse_json

FORMAT = 1
_NUMERIC_DTYPES = re.compile(r"[<>|][biuf][1248]")
_TEXT_DTYPES = re.compile(r"[<>]U\d{1,10}|\|O")
_BYTES_DTYPES = re.compile(r"\|S\d{1,10}")
_SCALARS = (bool, int, float, str, type(None))
_NON_FINITE = ("inf", "-inf", "nan")
_MAX_AXES = 32  # the limit of NumPy 1
# Text of fixed width takes more memory than file: every item is padded to the longest one.
_FREE_TEXT_BYTES = 1 << 26
_TEXT_BYTES_PER_FILE_BYTE = 64


def write_bundle(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write header and arrays to ``path`` so that the file is either complete or not there."""
    arrays = {name: _as_stored(array) for name, array in arrays.items()}
    write_atomically(path, _seal({"format": FORMAT, **header}, arrays))


def read_bundle(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file written by :func:`write_bundle`, or refuse it."""
    path = Path(path)
    header, checksum, arrays = _read(path, with_arrays=True)
    if checksum != _digest(header, arrays):
        raise BundleFormatError.damaged("its contents do not match their checksum", path)
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
        raise _not_a_model(path, error) from error


def _not_a_model(path: Path, error: Exception) -> BundleFormatError:
    """Say what the file seems to be; what safetensors says of it is about bytes, not about files."""
    kind = file_kind(path)
    if kind is None:
        is_ours = isinstance(error, ValueError)  # said below, about a header that was read
        return BundleFormatError.unreadable(path, str(error) if is_ours else "its bytes are not those of one")
    return BundleFormatError(
        "{file} is not a readable model file: it seems to be {kind}",
        advice="Give a file that a fitted model saved.",
        file=repr(str(path)),
        kind=kind,
    )


def _parse_header(text: str | None, path: Path) -> tuple[dict[str, Any], str]:
    """Return the header and the checksum that it announces."""
    if text is None:
        raise BundleFormatError(
            "{file} is a safetensors file, but not one that starshl wrote",
            advice="Open it with the program that made it.",
            file=repr(str(path)),
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
        raise BundleFormatError.of_format(path, number, FORMAT)
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


class Packable(Protocol):
    """An object that consists of named values which a file can hold."""

    def pack(self) -> dict[str, Any]:
        """Return the values from which :meth:`unpack` rebuilds the object."""

    @classmethod
    def unpack(cls, values: dict[str, Any]) -> Self:
        """Return the object, or raise for values that no object has."""


PackableClass = TypeVar("PackableClass", bound=type[Packable])
_PACKABLE: dict[str, type[Packable]] = {}


def packable(cls: PackableClass) -> PackableClass:
    """Let files hold objects of a class, as values under its name: only classes of this package are ever rebuilt."""
    _PACKABLE[cls.__name__] = cls
    return cls


def pack_values(values: Mapping[str, Any], prefix: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Split named values into what JSON holds and what safetensors holds; refuse anything else."""
    plain: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for name, value in values.items():
        plain[name] = _pack_one(name, prefix + name, value, arrays)
    _check_text_size(plain, arrays, TypeError)
    return plain, arrays


def unpack_values(plain: Any, arrays: Mapping[str, np.ndarray], prefix: str = "") -> dict[str, Any]:
    """Undo :func:`pack_values`; anything that function does not write is a damaged file."""
    try:
        _check_text_size(plain, arrays, BundleFormatError.damaged)
        return {name: _unpack_one(prefix + name, spec, arrays) for name, spec in plain.items()}
    except BundleFormatError:
        raise
    except Exception as error:
        raise BundleFormatError.damaged(f"its values cannot be read ({error!r})") from error


def _pack_one(name: str, key: str, value: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(value, np.ndarray) and _NUMERIC_DTYPES.fullmatch(value.dtype.str):
        arrays[key] = value
        return {"kind": "array", "dtype": value.dtype.str}
    if isinstance(value, np.ndarray) and value.dtype.kind == "S":
        arrays[key] = np.frombuffer(value.tobytes(), dtype=np.uint8)
        return {"kind": "bytes", "shape": list(value.shape), "dtype": value.dtype.str}
    if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
        return _pack_text(key, value, arrays)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _SCALARS):
        return {"kind": "value", "value": _pack_scalar(value)}
    if isinstance(value, (list, tuple)) and all(isinstance(item, _SCALARS) for item in value):
        return {"kind": type(value).__name__, "value": [_pack_scalar(item) for item in value]}
    if _PACKABLE.get(type(value).__name__) is type(value):
        plain, own = pack_values(value.pack(), key + ".")
        arrays |= own
        return {"kind": "object", "class": type(value).__name__, "values": plain}
    what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"of type {type(value).__name__}"
    raise TypeError(
        f"{name} is {what}, which a model file cannot hold. "
        "Numbers, strings, lists of them and arrays of numbers or strings can be saved."
    )


def _pack_text(key: str, value: np.ndarray, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    items = value.ravel().tolist()
    if all(isinstance(item, str) for item in items):
        encoded = [item.encode() for item in items]
        arrays[key + ".utf8"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        arrays[key + ".ends"] = np.cumsum([len(item) for item in encoded], dtype=np.int64)
        return {"kind": "text", "shape": list(value.shape), "dtype": value.dtype.str}
    items = [item.item() if isinstance(item, np.generic) else item for item in items]
    unknown = {type(item).__name__ for item in items if not isinstance(item, _SCALARS)}
    if unknown or value.ndim != 1:
        raise TypeError(
            f"{key} holds samples of type {', '.join(sorted(unknown)) or 'object'}, which a model file cannot "
            "hold; strings and numbers can be saved. Keep such samples yourself and use a precomputed kernel."
        )
    return {"kind": "objects", "value": [_pack_scalar(item) for item in items]}


def _pack_scalar(value: Any) -> Any:
    # JSON has no word for infinity or NaN.
    return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _unpack_one(key: str, spec: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    kind = spec["kind"]
    if kind == "array":
        return _unpack_array(key, spec, arrays)
    if kind == "text":
        return _unpack_text(key, spec, arrays)
    if kind == "bytes":
        return _unpack_bytes(key, spec, arrays)
    if kind == "value":
        return _unpack_scalar(spec["value"])
    if kind in ("list", "tuple", "objects") and isinstance(spec["value"], list):
        items = [_unpack_scalar(item) for item in spec["value"]]
        return _object_array(items) if kind == "objects" else tuple(items) if kind == "tuple" else items
    if kind == "object" and spec["class"] in _PACKABLE:
        return _PACKABLE[spec["class"]].unpack(unpack_values(spec["values"], arrays, key + "."))
    raise BundleFormatError.damaged(f"it holds {key} as {kind!r}, a kind that this version does not know")


def _unpack_scalar(value: Any) -> Any:
    if isinstance(value, dict) and list(value) == ["float"] and value["float"] in _NON_FINITE:
        return float(value["float"])
    if not isinstance(value, _SCALARS):
        raise BundleFormatError.damaged(f"it holds a {type(value).__name__} where a single value belongs")
    return value


def _unpack_array(key: str, spec: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    dtype = _dtype_of(key, spec, _NUMERIC_DTYPES)
    array = arrays[key]
    if dtype.newbyteorder("<") != array.dtype:
        raise BundleFormatError.damaged(f"it announces {key} as {dtype}, but holds {array.dtype}")
    return array.astype(dtype, copy=False)


def _unpack_bytes(key: str, spec: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    dtype, shape = _dtype_of(key, spec, _BYTES_DTYPES), _shape_of(key, spec)
    content = _byte_array(key, arrays)
    if math.prod(shape) * dtype.itemsize != len(content):
        raise BundleFormatError.damaged(f"it announces {key} as {spec['dtype']} x {shape}, but holds another size")
    return np.frombuffer(content, dtype=dtype, count=math.prod(shape)).reshape(shape).copy()


def _unpack_text(key: str, spec: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    dtype, shape = _dtype_of(key, spec, _TEXT_DTYPES), _shape_of(key, spec)
    content, ends = _byte_array(key + ".utf8", arrays), arrays[key + ".ends"]
    if ends.dtype != np.int64 or ends.shape != (math.prod(shape),):
        raise BundleFormatError.damaged(f"it announces {key} with shape {shape}, but holds another number of items")
    bounds = np.concatenate([[0], ends])
    # Compared, not subtracted: a difference of crafted ends can overflow.
    if np.any(bounds[1:] < bounds[:-1]) or bounds[-1] != len(content):
        raise BundleFormatError.damaged(f"the items in the text of {key} do not follow each other")
    items = [content[start:end].decode() for start, end in pairwise(bounds.tolist())]
    if dtype.kind == "U" and 4 * max(map(len, items), default=0) > dtype.itemsize:
        raise BundleFormatError.damaged(f"it announces {key} as {dtype}, but holds longer text")
    return _object_array(items).reshape(shape).astype(dtype)


def _check_text_size(plain: Any, arrays: Mapping[str, np.ndarray], error: Callable[[str], Exception]) -> None:
    """Refuse text of a fixed width that takes far more memory than its letters."""
    needed = 0
    for spec in plain.values():
        if spec["kind"] == "text" and spec["dtype"] != "|O":
            needed += math.prod(_shape_of("text", spec)) * _dtype_of("text", spec, _TEXT_DTYPES).itemsize
    stored = sum(array.nbytes for array in arrays.values())
    if needed > _FREE_TEXT_BYTES + _TEXT_BYTES_PER_FILE_BYTE * stored:
        raise error(
            f"Text of fixed width takes {needed:,} bytes of memory for {stored:,} bytes of content, more than a "
            "model file may ask for. Use arrays of dtype object for text of very different lengths."
        )


def _dtype_of(key: str, spec: dict[str, Any], allowed: re.Pattern[str]) -> np.dtype:
    text = spec["dtype"]
    if not isinstance(text, str) or not allowed.fullmatch(text):
        raise BundleFormatError.damaged(f"it announces {key} as {text!r}, which does not go with its kind")
    return np.dtype(text)


def _shape_of(key: str, spec: dict[str, Any]) -> tuple[int, ...]:
    shape = spec["shape"]
    if not isinstance(shape, list) or len(shape) > _MAX_AXES or not all(type(n) is int and n >= 0 for n in shape):
        raise BundleFormatError.damaged(f"it announces {key} with shape {str(shape)[:60]}, which is not a shape")
    return tuple(shape)


def _byte_array(key: str, arrays: Mapping[str, np.ndarray]) -> bytes:
    array = arrays[key]
    if array.dtype != np.uint8 or array.ndim != 1:
        raise BundleFormatError.damaged(f"it holds {key} as {array.dtype}, which is not a row of bytes")
    return array.tobytes()


def _object_array(items: list[Any]) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
