"""Arrays from a file of PyTorch tensors, without PyTorch and without running anything that the file says.

Such a file is five pickles and then the numbers. The pickles are read by an unpickler that knows three names and
refuses all others: two are replaced by functions of this module, the third makes an empty dictionary.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections import OrderedDict
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..exceptions import BundleFormatError

__all__ = ["read_tensors"]

_MAGIC = 0x1950A86A20F9469CFC6C  # of the format that PyTorch wrote before 1.6
_PROTOCOL = 1001
_STORAGES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}
_N_ELEMENTS = struct.Struct("<q")


class _Storage(NamedTuple):
    key: str
    dtype: np.dtype
    size: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_tensors(content: bytes) -> dict[str, np.ndarray]:
    """Return the named tensors of a file as arrays."""
    file = io.BytesIO(content)
    try:
        if _Unpickler(file).load() != _MAGIC or _Unpickler(file).load() != _PROTOCOL:
            raise ValueError("it begins with something else")
        _Unpickler(file).load()  # the sizes of numbers on the machine that wrote it
        tensors = _Unpickler(file).load()
        keys = _Unpickler(file).load()
        storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
        numbers = {key: _read_numbers(file, storages[key]) for key in keys}
        return {name: _as_array(tensor, numbers[tensor.storage.key]) for name, tensor in tensors.items()}
    except Exception as error:  # a file that anyone may have made can fail anywhere
        raise BundleFormatError(f"This is not a file of PyTorch tensors that can be read ({error}).") from error


class _Unpickler(pickle.Unpickler):
    """Reads plain values and descriptions of tensors; every other name in the file is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _describe
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise ValueError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, size, _ = pid
        if kind != "storage":
            raise ValueError(f"it refers to a {kind}")
        return _Storage(key, dtype, size)


def _describe(storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> _Tensor:
    return _Tensor(storage, offset, shape, strides)


def _read_numbers(file: BinaryIO, storage: _Storage) -> np.ndarray:
    (size,) = _N_ELEMENTS.unpack(file.read(_N_ELEMENTS.size))
    if size != storage.size:
        raise ValueError(f"it has {size} numbers where it announces {storage.size}")
    content = file.read(size * storage.dtype.itemsize)
    return np.frombuffer(content, storage.dtype, size)


def _as_array(tensor: _Tensor, numbers: np.ndarray) -> np.ndarray:
    if min(tensor.offset, *tensor.shape, *tensor.strides, 0) < 0:
        raise ValueError("a tensor has a negative size")
    last = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True))
    if last >= len(numbers):
        raise ValueError("a tensor reaches beyond its numbers")
    steps = [step * numbers.itemsize for step in tensor.strides]
    return np.lib.stride_tricks.as_strided(numbers[tensor.offset :], tensor.shape, steps).copy()
