"""Vectors from outside: one check for all of them, before they meet vectors of other requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..base import BaseHasher

__all__ = ["check_vectors", "n_columns"]

# Squares of larger numbers, and their sums over many columns, might be infinite.
_LARGEST = 1e100


def n_columns(hasher: BaseHasher) -> int | None:
    """Return how many numbers a vector has for this hasher, None if it does not take vectors."""
    found = getattr(hasher, "n_features_in_", None)
    return None if found is None else int(found)


def check_vectors(vectors: Sequence[Sequence[float]] | np.ndarray, hasher: BaseHasher, name: str) -> np.ndarray:
    """Return vectors as a matrix that this hasher can encode, or say which one it cannot; ``name`` is their name."""
    width = n_columns(hasher)
    if width is None:
        raise ValueError("The hasher of this collection was not fitted on vectors, so it cannot encode these.")
    for number, vector in enumerate(vectors):
        if len(vector) != width:
            raise ValueError(
                f"{name}[{number}] has {len(vector)} numbers; the vectors of this collection have {width}. "
                "Send vectors made in the same way as those it was built with."
            )
    rows = np.asarray(cast(Any, vectors), np.float64).reshape(len(vectors), width)
    wrong = ~(np.abs(rows) <= _LARGEST).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"{name}[{int(wrong.argmax())}] holds a number that is not finite or above {_LARGEST:g} in size. Send "
            "finite numbers of ordinary size."
        )
    return rows
