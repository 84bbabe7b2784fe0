"""Kernels on rows of a matrix: the paper's cosines, polynomials and Gaussians; shifted cosines and Cauchy kernels.

Their lengths are absolute, or multiples of the median distance between training rows, which is computed here, too.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..._common.threads import run_all, single_threaded_blas
from ..._common.validation import Rows, check_integer, check_number
from .distances import DistanceTiles, PairTable, as_floats, distinct_rows, squared_norms
from .kernel import Kernel, KernelSamples, MedianKernel

_ALL_PAIRS_UP_TO = 2048  # rows, or two million pairs: plenty for a median


class VectorKernel(Kernel):
    """A kernel that is a function of inner products and norms, so that a bank shares their computation."""

    takes_sparse: ClassVar[bool] = True

    @abstractmethod
    def evaluate(self, table: PairTable) -> np.ndarray:
        """Return the kernel between the two blocks of a table."""

    def __call__(self, A: KernelSamples, B: KernelSamples) -> np.ndarray:
        return self.evaluate(PairTable(as_floats(A), as_floats(B)))


@dataclass(frozen=True)
class NormalizedLinear(VectorKernel):
    """The cosine of the angle between two rows; zero wherever a row is zero."""

    largest_diagonal: ClassVar[float] = 1.0

    def evaluate(self, table: PairTable) -> np.ndarray:
        return table.cosines.copy()

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        return (squared_norms(as_floats(samples)) > 0).astype(np.float64)


@dataclass(frozen=True)
class NormalizedPolynomial(VectorKernel):
    """(a.b + bias)^degree, divided by its value's root on each diagonal."""

    degree: int = 2
    bias: float = 1.0
    largest_diagonal: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_integer(self.degree, "degree", low=1)
        check_number(self.bias, "bias", low=0)

    def evaluate(self, table: PairTable) -> np.ndarray:
        # Normalizing before taking the power keeps large rows from overflowing.
        cosines = _rescale(table.inner + table.inner.dtype.type(self.bias), *map(self._scale, table.norms))
        return _power(cosines, self.degree)

    def _scale(self, norms: np.ndarray) -> np.ndarray:
        shifted = norms + self.bias
        return np.divide(1.0, np.sqrt(shifted), out=np.zeros_like(shifted), where=shifted > 0)

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        return (squared_norms(as_floats(samples)) + self.bias > 0).astype(np.float64)


@dataclass(frozen=True)
class ShiftedCosine(VectorKernel):
    """((1 + cosine of the angle between two rows) / 2)^power; the cosine is zero wherever a row is zero."""

    power: int = 4
    largest_diagonal: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_integer(self.power, "power", low=1)

    def evaluate(self, table: PairTable) -> np.ndarray:
        halves = table.cosines + 1
        halves /= 2
        return _power(halves, self.power)

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        return np.where(squared_norms(as_floats(samples)) > 0, 1.0, 0.5**self.power)


@dataclass(frozen=True)
class Gaussian(VectorKernel):
    """exp(-|a - b|^2 / (2 sigma^2)), with an absolute bandwidth sigma."""

    sigma: float = 1.0
    largest_diagonal: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_number(self.sigma, "sigma", low=0, strict=True)

    def evaluate(self, table: PairTable) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(_times(table.squared_distances, -0.5 / self.sigma / self.sigma))

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        return np.ones(np.shape(samples)[0])


@dataclass(frozen=True)
class Cauchy(VectorKernel):
    """1 / (1 + |a - b|^2 / scale^2), with an absolute scale; far rows keep more of it than of a Gaussian."""

    scale: float = 1.0
    largest_diagonal: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_number(self.scale, "scale", low=0, strict=True)

    def evaluate(self, table: PairTable) -> np.ndarray:
        with np.errstate(over="ignore"):
            return 1 / (1 + _times(table.squared_distances, 1.0 / self.scale / self.scale))

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        return np.ones(np.shape(samples)[0])


@dataclass(frozen=True)
class _ScaledKernel(MedianKernel):
    """A kernel whose one length is ``factor`` times the median distance between training rows."""

    factor: float = 1.0
    takes_sparse: ClassVar[bool] = True
    of_length: ClassVar[type[Gaussian] | type[Cauchy]]

    def __post_init__(self) -> None:
        check_number(self.factor, "factor", low=0, strict=True)

    def fit(
        self, samples: KernelSamples, sample_weight: np.ndarray | None = None, median: float | None = None
    ) -> Gaussian | Cauchy:
        return self.of_length(self.factor * (median or median_distance(samples, sample_weight)))

    def __call__(self, A: KernelSamples, B: KernelSamples) -> np.ndarray:
        raise TypeError(f"A {type(self).__name__} has no length before fit; evaluate the kernel that fit returns.")


@dataclass(frozen=True)
class ScaledGaussian(_ScaledKernel):
    """A Gaussian whose bandwidth is ``factor`` times the median distance between training rows."""

    of_length = Gaussian


@dataclass(frozen=True)
class ScaledCauchy(_ScaledKernel):
    """A Cauchy kernel whose scale is ``factor`` times the median distance between training rows."""

    of_length = Cauchy


def median_distance(X: ArrayLike | Rows, sample_weight: np.ndarray | None = None) -> float:
    """Return the weighted median of the positive Euclidean distances between rows (1.0 if there is none).

    A pair weighs the product of its rows' weights, so a row of weight 2 counts as two equal rows. Beyond
    2,048 distinct rows the median is that of 2,048 rows taken at equal steps of weight along a fixed random
    direction, which neither the order of the rows nor repeating all of them changes. Distances have the precision of
    the rows.
    """
    rows, weights = merge_equal_rows(X, sample_weight)
    if len(weights) > _ALL_PAIRS_UP_TO:
        rows, weights = _rows_at_equal_steps(rows, weights)
    if len(weights) < 2:
        return 1.0
    squared = _distances_of_pairs(rows.astype(as_floats(X).dtype))
    if np.all(weights == weights[0]):
        middle = (len(squared) - 1) // 2
        return float(np.sqrt(np.partition(squared, middle)[middle]))
    first, second = np.triu_indices(len(weights), 1)
    order = np.argsort(squared, kind="stable")
    cumulative = np.cumsum((weights[first] * weights[second])[order])
    return float(np.sqrt(squared[order[np.searchsorted(cumulative, cumulative[-1] / 2)]]))


def _distances_of_pairs(rows: Rows) -> np.ndarray:
    """Return the squared distances of all pairs of rows, in the order of ``numpy.triu_indices``."""
    table = DistanceTiles(rows, stored=False)
    squared = np.empty((table.n_rows, table.n_rows), dtype=rows.dtype)

    def fill(first: int, second: int) -> None:
        squared[table.blocks[first], table.blocks[second]] = table.tile(first, second)

    numbers = range(table.n_blocks)
    with single_threaded_blas():
        run_all([partial(fill, first, second) for first in numbers for second in numbers[first:]])
    return np.concatenate([row[i + 1 :] for i, row in enumerate(squared)])


def _rows_at_equal_steps(rows: Rows, weights: np.ndarray) -> tuple[Rows, np.ndarray]:
    direction = np.random.RandomState(0).standard_normal(rows.shape[1])
    order = np.argsort(rows @ direction, kind="stable")
    cumulative = np.cumsum(weights[order])
    steps = (np.arange(_ALL_PAIRS_UP_TO) + 0.5) / _ALL_PAIRS_UP_TO * cumulative[-1]
    chosen, counts = np.unique(order[np.searchsorted(cumulative, steps)], return_counts=True)
    return rows[chosen], counts.astype(np.float64)


def merge_equal_rows(X: ArrayLike | Rows, sample_weight: np.ndarray | None = None) -> tuple[Rows, np.ndarray]:
    """Return the distinct rows of positive weight, in float64, and their total weights."""
    rows = as_floats(X)
    weights = np.ones(rows.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not np.all(weights > 0):
        used = np.flatnonzero(weights > 0)
        rows, weights = rows[used], weights[used]
    rows, number = distinct_rows(rows)
    return rows, np.bincount(number, weights, minlength=rows.shape[0])


def _times(distances: np.ndarray, rate: float) -> np.ndarray:
    """Return rate * distances; an infinite rate would turn the distance zero of equal rows into NaN."""
    largest = float(np.finfo(distances.dtype).max)
    return distances * distances.dtype.type(np.clip(rate, -largest, largest))


def _power(values: np.ndarray, power: int) -> np.ndarray:
    """Return values^power by repeated squaring, which is many times faster than NumPy's own power."""
    result, square = None, values
    while True:
        if power % 2:
            result = square if result is None else result * square
        power //= 2
        if power == 0:
            assert result is not None
            return result
        square = square * square


def _rescale(products: np.ndarray, row_scales: np.ndarray, column_scales: np.ndarray) -> np.ndarray:
    scaled = products * row_scales.astype(products.dtype)[:, None]
    scaled *= column_scales.astype(products.dtype)[None, :]
    return scaled
