"""The checksum of named arrays, whatever file holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import numpy as np

__all__ = ["array_digest", "bytes_in_pieces"]

_PIECE_BYTES = 1 << 24  # 16 MB: rows are not copied as a whole


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
