"""A new collection, filled in portions before anyone can see it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._threads import tiles
from .._types import LabelsLike
from .._validation import as_label_array
from ..binarization.binarize import codes_of_vectors
from ..collection.filling import appearing_collection
from ..features import Extractor
from .hashing import LearnedHasher

__all__ = ["check_new", "fill_collection"]

_PORTION = 2000  # items that are stored at a time
_KEPT = "float16"


def check_new(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that exists, before any work is done."""
    if Path(folder).exists():
        raise FileExistsError(f"{os.fspath(folder)!r} exists already. Choose another folder, or remove that one first.")


def fill_collection(
    folder: str | os.PathLike[str],
    learned: LearnedHasher,
    X: np.ndarray,
    labels: LabelsLike,
    *,
    extractor: Extractor | None = None,
    title: str | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    previews: Sequence[bytes | None] | None = None,
) -> None:
    """Write a collection of all items, completely or not at all."""
    codes = codes_of_vectors(learned.hasher, X, learned.taught_by)
    columns = {"ids": ids, "metadata": metadata, "references": references, "previews": previews}
    given = None if labels is None else as_label_array(labels)
    with appearing_collection(folder, learned.hasher, vectors=_KEPT, extractor=extractor, title=title) as collection:
        for portion in tiles(len(X), _PORTION):
            part: dict[str, Any] = {name: None if all_ is None else all_[portion] for name, all_ in columns.items()}  # type: ignore[index]
            collection.add(
                X[portion],
                codes=codes[portion],
                encoder=collection.encoder,
                labels=None if given is None else given[portion],
                **part,
            )
