"""Gray pictures as PNG files, with nothing but zlib."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

__all__ = ["encode_png", "png_data_uri"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode_png(image: np.ndarray) -> bytes:
    """Return an 8-bit gray PNG of a uint8 array of shape (height, width).

    Examples
    --------
    >>> import numpy as np
    >>> encode_png(np.zeros((2, 3), np.uint8))[1:4]
    b'PNG'
    """
    image = np.ascontiguousarray(image)
    if image.ndim != 2 or image.dtype != np.uint8 or not image.size:
        raise ValueError(
            f"The image is {image.dtype} of shape {image.shape}; it must be uint8 of shape (height, width). Convert it."
        )
    height, width = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, gray, no interlace
    # Every line begins with the number of its filter; 0 leaves the bytes as they are.
    lines = np.hstack([np.zeros((height, 1), np.uint8), image]).tobytes()
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")


def png_data_uri(image: np.ndarray) -> str:
    """Return the PNG as an address that an HTML page can hold itself."""
    return "data:image/png;base64," + base64.b64encode(encode_png(image)).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
