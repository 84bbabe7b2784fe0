"""A new collection that stays invisible until it is filled."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..base import BaseHasher
from ..features import Extractor
from .collection import Collection
from .folder import appearing_folder

__all__ = ["appearing_collection"]


@contextmanager
def appearing_collection(
    folder: str | os.PathLike[str],
    hasher: BaseHasher,
    *,
    vectors: str | None = None,
    fields: Mapping[str, type | str] | None = None,
    extractor: Extractor | None = None,
    kind: str | None = None,
    title: str | None = None,
) -> Iterator[Collection]:
    """Fill a new collection that appears complete when the block ends, or not at all; options as in ``create``."""
    with appearing_folder(Path(folder)) as draft:
        # A collection makes its own folder, so only the name of this one is needed.
        draft.rmdir()
        with Collection.create(
            draft, hasher, vectors=vectors, fields=fields, extractor=extractor, kind=kind, title=title
        ) as collection:
            yield collection
