"""Model files: a JSON header and safetensors arrays in one file, checked by SHA-256, never code.

The file is an ordinary safetensors file whose metadata holds the header, so any safetensors reader can
look inside. Nothing here knows a class: :mod:`starshl.catalog` turns the header's method name into one.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as to_safetensors

from ._files import write_atomically
from .exceptions import BundleFormatError

__all__ = ["FORMAT", "pack_values", "read_bundle", "read_checksum", "unpack_values", "write_bundle"]

FORMAT = 1

_NUMERIC_KINDS = "biuf"
_SCALARS = (bool, int, float, str, type(None))


def write_bundle(path: str | os.PathLike, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write header and arrays to ``path`` so that the file is either complete or not there."""
    arrays = {name: _as_stored(array) for name, array in arrays.items()}
    write_atomically(path, _seal({"format": FORMAT, **header}, arrays))


def read_bundle(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file written by :func:`write_bundle`, or refuse it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file at {str(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            header, checksum = _parse_header((file.metadata() or {}).get("starshl"), path)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except BundleFormatError:
        raise
    except Exception as error:  # whatever a reader may run into on bytes that anyone may have written
        raise BundleFormatError(
            f"{str(path)!r} is not a readable model file ({error}). It is truncated, damaged or of another "
            "kind: save the model again or fetch a fresh copy."
        ) from error
    if checksum != _digest(header, arrays):
        raise BundleFormatError(
            f"The contents of {str(path)!r} do not match their checksum: the file was damaged or edited "
            "after it was saved. Save the model again or fetch a fresh copy."
        )
    return header, arrays


def read_checksum(path: str | os.PathLike) -> str:
    """Return the SHA-256 that a file carries; :func:`read_bundle` is what compares it with the contents."""
    with safe_open(path, framework="numpy") as file:
        return _parse_header((file.metadata() or {}).get("starshl"), Path(path))[1]


def pack_values(values: dict[str, Any], prefix: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Split named values into what JSON holds and what safetensors holds; refuse anything else."""
    plain: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in _NUMERIC_KINDS:
            arrays[prefix + name] = value
            plain[name] = {"kind": "array", "dtype": value.dtype.str}
        elif isinstance(value, np.ndarray) and value.dtype.kind == "S":
            arrays[prefix + name] = np.frombuffer(value.tobytes(), dtype=np.uint8)
            plain[name] = {"kind": "bytes", "shape": list(value.shape), "dtype": value.dtype.str}
        elif isinstance(value, np.ndarray) and value.dtype.kind in "UO":
            plain[name] = _pack_text(prefix + name, value, arrays)
        elif isinstance(value, np.generic):
            plain[name] = {"kind": "value", "value": value.item()}
        elif isinstance(value, _SCALARS):
            plain[name] = {"kind": "value", "value": value}
        elif isinstance(value, (list, tuple)) and all(isinstance(item, _SCALARS) for item in value):
            plain[name] = {"kind": type(value).__name__, "value": list(value)}
        else:
            raise TypeError(
                f"{name} is of type {type(value).__name__}, which a model file cannot hold. "
                "Numbers, strings, lists of them and arrays of numbers or strings can be saved."
            )
    return plain, arrays


def unpack_values(plain: dict[str, Any], arrays: dict[str, np.ndarray], prefix: str = "") -> dict[str, Any]:
    """Undo :func:`pack_values`; anything but what that function makes is a damaged file."""
    try:
        return {name: _unpack_one(prefix + name, spec, arrays) for name, spec in plain.items()}
    except BundleFormatError:
        raise
    except Exception as error:
        raise BundleFormatError(f"The model file is damaged where it holds its values ({error!r}).") from error


def _unpack_one(name: str, spec: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    kind = spec["kind"]
    if kind == "array":
        return _unpack_array(name, arrays[name], np.dtype(spec["dtype"]))
    if kind == "text":
        return _unpack_text(name, spec, arrays)
    if kind == "bytes" and np.dtype(spec["dtype"]).kind == "S":
        return np.frombuffer(arrays[name].tobytes(), dtype=spec["dtype"]).reshape(spec["shape"])
    value = spec["value"]
    if kind == "value" and isinstance(value, _SCALARS):
        return value
    if kind in ("list", "tuple", "objects") and isinstance(value, list):
        return _object_array(value) if kind == "objects" else tuple(value) if kind == "tuple" else value
    raise BundleFormatError(f"The model file holds {name} as {kind!r}, a kind this version does not know.")


def _unpack_array(name: str, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.newbyteorder("<") != array.dtype:
        raise BundleFormatError(f"The model file announces {name} as {dtype} but holds {array.dtype}.")
    return array.astype(dtype, copy=False)


def _unpack_text(name: str, spec: dict[str, Any], arrays: dict[str, np.ndarray]) -> np.ndarray:
    dtype, ends = np.dtype(spec["dtype"]), arrays[name + ".ends"]
    content = arrays[name + ".utf8"].tobytes()
    starts = np.concatenate([[0], ends])[:-1]
    if dtype.kind not in "UO" or np.any(starts > ends) or (len(ends) and ends[-1] != len(content)):
        raise BundleFormatError(f"The text of {name} in the model file is damaged.")
    items = [content[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    return _object_array(items).reshape(spec["shape"]).astype(dtype)


def _pack_text(name: str, value: np.ndarray, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    items = value.ravel().tolist()
    if all(isinstance(item, str) for item in items):
        encoded = [item.encode() for item in items]
        arrays[name + ".utf8"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        arrays[name + ".ends"] = np.cumsum([len(item) for item in encoded], dtype=np.int64)
        return {"kind": "text", "shape": list(value.shape), "dtype": value.dtype.str}
    items = [item.item() if isinstance(item, np.generic) else item for item in items]
    odd = {type(item).__name__ for item in items if not isinstance(item, _SCALARS)}
    if odd or value.ndim != 1:
        raise TypeError(
            f"{name} holds samples of type {', '.join(sorted(odd)) or 'object'}, which a model file cannot "
            "hold; strings and numbers can be saved. Keep such samples yourself and use a precomputed kernel."
        )
    return {"kind": "objects", "value": items}


def _as_stored(array: np.ndarray) -> np.ndarray:
    """Return the array as safetensors holds it: rows first, little-endian."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _object_array(items: list) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _seal(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    # One metadata entry, because safetensors writes several in any order and equal models make equal files.
    text = json.dumps({"header": header, "sha256": _digest(header, arrays)}, sort_keys=True)
    return to_safetensors(arrays, metadata={"starshl": text})


def _parse_header(text: str | None, path: Path) -> tuple[dict[str, Any], str]:
    """Return the header and the checksum that it announces."""
    if text is None:
        raise BundleFormatError(
            f"{str(path)!r} is a safetensors file, but not one that starshl wrote. "
            "Open it with the program that made it."
        )
    sealed = json.loads(text)
    header = sealed.get("header") if isinstance(sealed, dict) else None
    if not isinstance(header, dict) or type(header.get("format")) is not int or header["format"] < 1:
        raise BundleFormatError(f"The header of {str(path)!r} has no format number: the file is damaged.")
    if header["format"] > FORMAT:
        raise BundleFormatError(
            f"{str(path)!r} has format {header['format']}; this version of starshl reads up to {FORMAT}. "
            "Install a newer starshl."
        )
    return header, sealed.get("sha256")


def _digest(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
