"""What a file seems to be, from its first bytes and its name."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["file_kind"]

_LOOKED_AT = 4096  # bytes from the beginning

_BEGINNINGS = (
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"PAR1", "a Parquet table"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"II*\0", "a picture (TIFF)"),
    (b"MM\0*", "a picture (TIFF)"),
    (b"%PDF", "a PDF"),
    (b"\x1f\x8b", "a file compressed by gzip"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
)
_BY_NAME = {
    ".npz": "a NumPy archive (.npz)",
    ".onnx": "an ONNX model",
    ".csv": "a table in text (.csv)",
    ".tsv": "a table in text (.tsv)",
    ".jsonl": "a table of JSON lines (.jsonl)",
    ".json": "a JSON file",
    ".html": "a page in HTML",
}


def file_kind(path: str | os.PathLike[str]) -> str | None:
    """Return what a file seems to be, with its article; None if it does not look like anything that is known here."""
    path = Path(path)
    with path.open("rb") as file:
        content = file.read(_LOOKED_AT)
    if not content:
        return "an empty file"
    suffix = path.suffix.lower()
    if content.startswith(b"PK\x03\x04") and suffix == ".npz":
        return _BY_NAME[suffix]
    known = next((kind for beginning, kind in _BEGINNINGS if content.startswith(beginning)), None)
    if known is not None or suffix == ".onnx":
        return known or _BY_NAME[suffix]
    return _BY_NAME.get(suffix, "a text file") if _is_text(content) else None


def _is_text(content: bytes) -> bool:
    if any(byte < 32 and byte not in b"\t\n\r\f" for byte in content):
        return False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(content) - 4  # the end may cut a character in two
    return True
