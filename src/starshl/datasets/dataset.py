"""A data set in memory, and the checksum of its arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Dataset", "array_digest"]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows, labels and what is known about them.

    Attributes
    ----------
    name : str
    X : array of shape (n_samples, n_features)
        Values as published: neither scaled, centered nor shuffled.
    y : int64 array of shape (n_samples,)
        Classes from 0.
    split : uint8 array of shape (n_samples,) or None
        The official split where there is one: 0 = train, 1 = test.
    names : tuple of str
        Names of the classes, in the order of y.
    notes : tuple of str
        What a reader of results should know, for example how the rows differ from the paper's.
    extra : mapping of further arrays of the file
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    split: np.ndarray | None
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        return len(self.names)

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"Dataset({self.name!r}, {rows:,} x {features:,} {self.X.dtype}, {self.n_classes} classes)"


def array_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of named arrays: names, types, shapes and contents, whatever file held them.

    Examples
    --------
    >>> import numpy as np
    >>> array_digest({"y": np.arange(3)}) == array_digest({"y": np.arange(3, dtype=np.int8)})
    False
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
