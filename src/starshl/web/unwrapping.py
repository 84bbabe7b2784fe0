"""The hashers inside of a hasher: behind the preprocessing, and the one that decides the class."""

from __future__ import annotations

from typing import Any

__all__ = ["bare_hasher", "class_hasher"]


def bare_hasher(hasher: Any) -> Any:
    """Return the hasher behind the preprocessing, or the hasher itself."""
    return getattr(hasher, "hasher_", hasher)


def class_hasher(hasher: Any) -> Any:
    """Return the hasher that decides the class of a hybrid one, or the bare hasher."""
    bare = bare_hasher(hasher)
    return getattr(bare, "class_hasher_", bare)
