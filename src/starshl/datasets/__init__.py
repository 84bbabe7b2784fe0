"""Data sets by name, from a folder, the user's cache or a download, checked by the hash of their arrays."""

from .._digest import array_digest
from .dataset import Dataset
from .store import Description, cache_folder, describe, describe_all, fetch, get, locate, names

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
