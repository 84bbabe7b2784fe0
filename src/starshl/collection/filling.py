"""A new collection that is seen only when it is full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..base import BaseHasher
from .collection import Collection
from .folder import appearing_folder

__all__ = ["appearing_collection"]


@contextmanager
def appearing_collection(folder: str | os.PathLike, hasher: BaseHasher) -> Iterator[Collection]:
    """Fill a new collection that appears complete when the block ends, or not at all."""
    with appearing_folder(Path(folder)) as made:
        # A collection makes its folder itself; what is needed of this one is its name.
        made.rmdir()
        with Collection.create(made, hasher) as collection:
            yield collection
