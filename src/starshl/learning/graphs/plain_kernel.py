"""Kernels between the rows of a sample that know nothing of their graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from ..._common.files import array_digest
from ..._common.validation import Rows
from ..kernels.banks import compute_grams
from ..kernels.kernel import Kernel
from ..kernels.vectors import Gaussian, ShiftedCosine, median_distance
from ..linalg import inverse_of_kernel
from .neighbor_graph import NeighborGraph

LABEL_RIDGE = 0.1  # of a given label with the plain kernel
_FACTOR = 0.5  # bandwidth of the plain kernel in median distances
_FACTORS, _POWERS = (0.5, 1.0, 2.0), (4, 16)  # of kernels on labeled rows alone
_FLOAT64_UP_TO = 4096  # rows; above, float32 halves memory and time and changes scores by less than 1e-3
_KERNEL_CACHE = "plain_kernel"

#: The kernel between rows at some positions and at others.
Block = Callable[[np.ndarray, np.ndarray], np.ndarray]


class PlainKernel(ABC):
    """A kernel between the rows of a sample that knows nothing of their graph."""

    n_rows: int

    @abstractmethod
    def block(self, rows: np.ndarray | None, columns: np.ndarray) -> np.ndarray:
        """Return the kernel between some rows (None: all) and some others, shape (n_rows, n_columns)."""

    @abstractmethod
    def gram(self) -> np.ndarray:
        """Return the kernel between all rows."""

    @property
    @abstractmethod
    def kernels(self) -> list[Block]:
        """Kernels between some rows and some others, among which labels choose."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What tells this kernel from those of other rows."""


class RowsKernel(PlainKernel):
    """The Gaussian kernel of rows, of half their median distance."""

    def __init__(self, rows: Rows):
        self.n_rows = rows.shape[0]
        self.rows = rows

    @cached_property
    def kernel(self) -> Gaussian:
        return Gaussian(_FACTOR * median_distance(self.rows))

    @cached_property
    def _compared(self) -> Rows:
        return self.rows if self.n_rows <= _FLOAT64_UP_TO else self.rows.astype(np.float32, copy=False)

    @cached_property
    def kernels(self) -> list[Block]:
        """Gaussians of half to two median distances, and powers of the shifted cosine."""
        median = self.kernel.sigma / _FACTOR
        chosen = [Gaussian(factor * median) for factor in _FACTORS] + [ShiftedCosine(power) for power in _POWERS]
        return [partial(self._between, kernel) for kernel in chosen]

    def _between(self, kernel: Kernel, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return kernel(self._compared[rows], self._compared[columns])

    def linear(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return products of rows that are centered and of length one on average."""
        mean, size = self._center_and_size
        left, right = self._compared[rows], self._compared[columns]
        products = left @ right.T
        dense = products.toarray() if hasattr(products, "toarray") else np.array(products)
        dense = dense.astype(np.float64)
        dense += mean @ mean - np.asarray(left @ mean)[:, None] - np.asarray(right @ mean)
        return dense / size

    @cached_property
    def _center_and_size(self) -> tuple[np.ndarray, float]:
        mean = np.asarray(self.rows.mean(axis=0), np.float64).ravel()
        squares = self.rows.multiply(self.rows) if hasattr(self.rows, "multiply") else self.rows.astype(np.float64) ** 2
        return mean, float(squares.sum()) / self.n_rows - float(mean @ mean) or 1.0

    def block(self, rows: np.ndarray | None, columns: np.ndarray) -> np.ndarray:
        return self.kernel(self._compared if rows is None else self._compared[rows], self._compared[columns])

    def gram(self) -> np.ndarray:
        return compute_grams([self.kernel], self._compared)[0]

    @cached_property
    def key(self) -> str:
        if isinstance(self.rows, np.ndarray):
            return array_digest({"rows": self.rows})
        return array_digest({name: getattr(self.rows, name) for name in ("data", "indices", "indptr")})


class GivenKernel(PlainKernel):
    """A kernel matrix that was given."""

    def __init__(self, kernel: np.ndarray):
        self.n_rows = len(kernel)
        self.kernel = kernel

    @property
    def kernels(self) -> list[Block]:
        return [self.block]

    def block(self, rows: np.ndarray | None, columns: np.ndarray) -> np.ndarray:
        return self.kernel[:, columns] if rows is None else self.kernel[np.ix_(rows, columns)]

    def gram(self) -> np.ndarray:
        return self.kernel.astype(np.float64 if self.n_rows <= _FLOAT64_UP_TO else np.float32)

    @property
    def key(self) -> str:
        return array_digest({"kernel": self.kernel})


def share_kernel(plain: PlainKernel, graph: NeighborGraph) -> None:
    """Let rows share one fitted kernel over all calls with their graph: its median distance takes most of a second."""
    if not isinstance(plain, RowsKernel):
        return
    cached_key, kernel = graph.cache.get(_KERNEL_CACHE, (None, None))
    if cached_key == plain.key:
        plain.kernel = kernel
    else:
        graph.cache[_KERNEL_CACHE] = plain.key, plain.kernel


def inverse_with_ridge(gram: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """Return (gram + diag(ridge))^-1, which overwrites the matrix."""
    matrix = np.ascontiguousarray(gram)
    matrix[np.diag_indices_from(matrix)] += ridge.astype(matrix.dtype)
    return inverse_of_kernel(matrix)
