"""Vectors from outside: one check for all of them, before they meet vectors of other requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..base import BaseHasher
from ..collection.prepared_rows import kept_width, takes_cells

__all__ = ["LARGEST", "check_vectors", "n_columns", "wrong_length"]

# Squares of larger numbers, and their sums over many columns, might be infinite.
LARGEST = 1e100
_SHOWN = 20  # columns named in a message


def n_columns(hasher: BaseHasher) -> int | None:
    """Return how many numbers a vector has for this hasher, None if it does not take vectors."""
    return kept_width(hasher)


def check_vectors(vectors: Sequence[Sequence[float]] | np.ndarray, hasher: BaseHasher, name: str) -> np.ndarray:
    """Return vectors as a matrix that this hasher can encode, or say which one it cannot; ``name`` is their name."""
    width = n_columns(hasher)
    if width is None:
        raise ValueError("The hasher of this collection was not fitted on vectors, so it cannot encode these.")
    if isinstance(vectors, np.ndarray) and vectors.dtype == object:
        return vectors  # cells of a table, which were checked
    for number, vector in enumerate(vectors):
        if len(vector) != width and takes_cells(hasher):
            example = _example(hasher)
            sent = f"as `row` of each item: {example}" if name == "items" else f"as `rows`: [{example}]"
            raise ValueError(
                f"{name}[{number}] has {len(vector)} numbers. This collection takes rows of a table, {sent}. Send "
                f"these, or prepared vectors of {width} numbers."
            )
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


def _example(hasher: BaseHasher) -> str:
    """Return how a row of a table is sent."""
    names = [str(name) for name in getattr(hasher, "feature_names_in_", ())]
    if not names:
        return f"a list of {hasher.n_features_in_} values, text or numbers"
    shown = ", ".join(f'"{each}": ...' for each in names[:_SHOWN])
    return f"{{{shown}{', ...' if len(names) > _SHOWN else ''}}}"


def wrong_length(name: str, length: int, width: int) -> ValueError:
    """Return the error for a vector that has more or fewer numbers than those of a collection."""
    return ValueError(
        f"{name} has {length} numbers; the vectors of this collection have {width}. Send vectors made in the same way "
        "as those it was built with."
    )
