"""Vectors as records of fixed size: a scale, and one float16 or int8 number per column."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .._types import SamplesLike

__all__ = ["KINDS", "RecordLayout", "called_with_vectors", "dense_rows"]

#: How a number is stored, by the word that users give.
KINDS = {"float16": np.dtype("<f2"), "int8": np.dtype("i1")}
_LARGEST_INT8 = 127

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """How a vector is stored: each number is its entry divided by the scale of the vector, and rounded.

    - "float16": the scale is the power of two that brings the largest entry into [1, 2). Rounding changes an entry by
      at most 2^-11 of itself, or 2^-25 of the largest one.
    - "int8": the scale is the largest entry over 127. Rounding changes an entry by at most 1/254 of the largest one.
    """

    kind: str
    n_columns: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([("scale", "<f8"), ("values", KINDS[self.kind], (self.n_columns,))])

    def pack(self, vectors: np.ndarray) -> np.ndarray:
        """Return one record per row of finite numbers."""
        largest = np.abs(vectors).max(axis=1, initial=0.0)
        scales = _power_of_two(largest) if self.kind == "float16" else largest / _LARGEST_INT8
        # A vector of zeros, or one whose scale is too small for a float, is stored as zeros.
        scales[scales == 0.0] = 1.0
        scaled = vectors / scales[:, None]
        records = np.empty(len(vectors), self.dtype)
        records["scale"] = scales
        records["values"] = scaled if self.kind == "float16" else np.rint(scaled)
        return records

    def unpack(self, records: np.ndarray) -> np.ndarray:
        """Return records as rows of float64."""
        return records["values"].astype(np.float64) * records["scale"][:, None]


def dense_rows(X: SamplesLike, n_columns: int) -> np.ndarray:
    """Return samples as a matrix of float64 whose rows can be stored, or say what to do."""
    if hasattr(X, "toarray"):
        raise ValueError(
            "X is sparse, and this collection keeps vectors, which are dense. Pass X.toarray(), or make a collection "
            "that keeps none."
        )
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X does not hold numbers only ({error}), and this collection keeps vectors. Make a collection that keeps "
            "none, or turn the samples into vectors first."
        ) from error
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(
            f"X has shape {rows.shape}; this collection keeps vectors of {n_columns} numbers, so it must be "
            f"(n_items, {n_columns})."
        )
    if not np.isfinite(rows).all():
        raise ValueError("X holds NaN or infinity; only finite numbers can be kept. Impute or drop those rows.")
    return rows


def called_with_vectors(method: Callable[[np.ndarray], Result], vectors: np.ndarray) -> Result:
    """Return what a method of a hasher gives for kept vectors, which have the order of its columns, not their names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return method(vectors)


def _power_of_two(largest: np.ndarray) -> np.ndarray:
    """Return the largest powers of two that do not exceed positive numbers; 0 for 0."""
    exponents = np.frexp(largest)[1]
    return np.where(largest > 0, np.ldexp(1.0, exponents - 1), 0.0)
