"""Data sets by name, from a folder, the user's cache or a download, checked by the hash of their arrays."""

from __future__ import annotations

from ..._common.files import array_digest
from .store import Dataset, Description, cache_folder, describe, describe_all, fetch, get, locate, names

__all__ = [
    "Dataset",
    "Description",
    "array_digest",
    "cache_folder",
    "describe",
    "describe_all",
    "fetch",
    "get",
    "locate",
    "names",
]
