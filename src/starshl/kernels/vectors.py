"""Kernels on rows of a matrix: the paper's cosines, polynomials and Gaussians; shifted cosines and Cauchy kernels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import check_integer, check_number
from .bandwidth import median_distance
from .base import Kernel, KernelSamples, MedianKernel
from .pairs import PairTable
from .rows import as_floats, squared_norms

__all__ = [
    "Cauchy",
    "Gaussian",
    "NormalizedLinear",
    "NormalizedPolynomial",
    "ScaledCauchy",
    "ScaledGaussian",
    "ShiftedCosine",
    "VectorKernel",
]


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
