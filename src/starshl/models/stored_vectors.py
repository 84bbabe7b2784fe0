"""StoredVectors: many rows of numbers that are read block by block, from memory or from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._types import Rows, SamplesLike
from .._validation import check_rows
from ..kernels import Kernel
from ..tables import ArrayRows, RowSource
from .samples import Samples, Vectors, check_scale, sample_type

if TYPE_CHECKING:
    from .kernel_hasher import KernelHasher

__all__ = ["StoredVectors", "read_training_samples"]

_BLOCK_ROWS = 4096  # 32 MB if a row has 2,000 float32 numbers


class StoredVectors(Vectors):
    """Rows of a :class:`starshl.tables.RowSource`, or some of them; each block is checked when it is read.

    Parameters
    ----------
    source : RowSource
    numbers : array of shape (n,), default=None
        Which rows of the source these are, in rising order; None is all of them.
    """

    def __init__(self, source: RowSource, numbers: np.ndarray | None = None):
        self.source = source
        self.numbers = np.arange(len(source)) if numbers is None else numbers

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the numbers of rows to other processes only if they are not just all of them."""
        return type(self), (self.source, None if len(self) == len(self.source) else self.numbers)

    @property
    def values(self) -> Rows:  # type: ignore[override]  # read when asked for, not stored
        """All rows at once, for whatever cannot do with blocks."""
        return self.take(np.arange(len(self))).values

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: np.ndarray) -> Vectors:  # type: ignore[override]  # in memory, so that it can be trained on
        return Vectors(check_scale(self.source.take(self.numbers[rows]), fitting=False))

    def queries(self, rows: np.ndarray) -> Self:
        return type(self)(self.source, self.numbers[rows])

    def keep(self, rows: np.ndarray) -> Rows:
        # Not a view of what the user gave, whose next change would be one of the model.
        return self.take(rows).values.copy()

    def blocks(self, rows: np.ndarray, size: int) -> Iterator[Rows]:
        for block in self.source.blocks(self.numbers[rows], size):
            yield check_scale(block, fitting=False)

    def expand(
        self,
        kernels: Sequence[Kernel],
        support: np.ndarray,
        kept: Rows,
        weights: np.ndarray,
        coefficients: np.ndarray,
    ) -> np.ndarray:
        parts = [
            Vectors(block).expand(kernels, support, kept, weights, coefficients)
            for block in self.blocks(np.arange(len(self)), _BLOCK_ROWS)
        ]
        return np.concatenate(parts)


def read_training_samples(
    estimator: KernelHasher, X: SamplesLike, kernels: str | Sequence[Kernel], max_rows: int
) -> Samples:
    """Check what a user gave to ``fit``; of more than ``max_rows`` rows no copy is made.

    X may be a :class:`starshl.tables.RowSource`, too.
    """
    source = _as_source(X, kernels, max_rows)
    if source is None:
        return sample_type(kernels, X).read(estimator, X, fitting=True)
    if len(source) <= max_rows or isinstance(kernels, str):
        rows = source.take(np.arange(len(source)))
        return sample_type(kernels, rows).read(estimator, rows, fitting=True)
    check_rows(estimator, source.take(np.arange(2)), fitting=True)  # records the number of features
    return StoredVectors(source)


def _as_source(X: SamplesLike, kernels: str | Sequence[Kernel], max_rows: int) -> RowSource | None:
    if isinstance(X, RowSource):
        return X
    if isinstance(kernels, str) or not any(kernel.on_vectors for kernel in kernels):
        return None
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        return None
    return ArrayRows(X) if len(X) > max_rows else None
