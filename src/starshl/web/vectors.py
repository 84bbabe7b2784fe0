"""Vectors from outside: one check for all of them, before they meet vectors of other requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..base import BaseHasher

__all__ = ["LARGEST", "check_vectors", "n_columns", "wrong_length"]

# Squares of larger numbers, and their sums over many columns, might be infinite.
LARGEST = 1e100


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
            raise wrong_length(f"{name}[{number}]", len(vector), width)
    rows = np.asarray(cast(Any, vectors), np.float64).reshape(len(vectors), width)
    wrong = ~(np.abs(rows) <= LARGEST).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"{name}[{int(wrong.argmax())}] holds a number that is not finite or above {LARGEST:g} in size. Send "
            "finite numbers of ordinary size."
        )
    return rows


def wrong_length(name: str, length: int, width: int) -> ValueError:
    """Return the error for a vector that has more or fewer numbers than those of a collection."""
    return ValueError(
        f"{name} has {length} numbers; the vectors of this collection have {width}. Send vectors made in the same way "
        "as those it was built with."
    )
