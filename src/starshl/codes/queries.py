"""EncodedQueries: all that an index needs to know of queries, in one value."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from .._common.words import counted
from .binary import BinaryCodes


@dataclass(frozen=True, slots=True, eq=False)
class EncodedQueries:
    """Queries as ``hasher.encode_queries`` makes them; each index reads the parts that it compares.

    Parameters
    ----------
    codes : BinaryCodes
    posteriors : array of shape (n_queries, n_classes), default=None
        How likely each query is of each class, in the order of ``hasher.classes_``; None if the hasher cannot tell.
    vectors : array of shape (n_queries, n_features), default=None
        The queries themselves, for indexes that compare vectors.
    numbers : array of shape (n_classes,), default=None
        The position of each class of the posteriors in the codebook, where there is one: hashers that share a codebook
        may know different classes of it.
    """

    codes: BinaryCodes
    posteriors: np.ndarray | None = None
    vectors: np.ndarray | None = None
    numbers: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.codes, BinaryCodes):
            raise TypeError(
                f"codes is a {type(self.codes).__name__}; it must be BinaryCodes. Get queries from "
                "hasher.encode_queries(X)."
            )
        for name in ("posteriors", "vectors"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _check_rows(given, name, len(self.codes)))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | np.ndarray) -> EncodedQueries:
        """Select queries."""
        posteriors = None if self.posteriors is None else self.posteriors[rows]
        vectors = None if self.vectors is None else self.vectors[rows]
        return replace(self, codes=self.codes[rows], posteriors=posteriors, vectors=vectors)


def _check_rows(given: ArrayLike, name: str, n_codes: int) -> np.ndarray:
    try:
        rows = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{name} has rows of different lengths ({error}). Give rows of equal length.") from error
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {rows.dtype}; it must hold numbers. Get queries from hasher.encode_queries(X).")
    if rows.ndim != 2 or len(rows) != n_codes:
        raise ValueError(
            f"{name} has shape {rows.shape}; with {counted(n_codes, 'code')} it must be ({n_codes}, n). Give one row "
            "per code."
        )
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} holds NaN or infinity; queries are finite numbers. Impute or drop those rows.")
    return rows.astype(np.float32, copy=False) if name == "posteriors" else rows
