"""Kernel expansions over fixed rows as parts of a graph: every kernel on vectors that this package has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..exceptions import NotExpressibleError
from ..learning.kernels.graph_gaussian import FittedGraphGaussian
from ..learning.kernels.kernel import Kernel
from ..learning.kernels.vectors import Cauchy, Gaussian, NormalizedLinear, NormalizedPolynomial, ShiftedCosine
from ..learning.kernels.views import OnColumns, by_columns
from .graph import Value, squared_norms


def kernel_expansion(
    rows: Value, kernels: Sequence[Kernel], support: np.ndarray, weights: np.ndarray, coefficients: np.ndarray
) -> Value:
    r"""Return :math:`\sum_m \theta_{bm} \sum_s \eta_{bs} k_m(x_s, x)`, shape (n, n_bits).

    Parameters
    ----------
    rows : the rows x
    kernels : fitted kernels
    support : array of shape (n_support, n_features)
    weights : array of shape (n_bits, n_kernels), or (n_kernels,) if all functions share them
    coefficients : array of shape (n_bits, n_support)
    """
    for kernel in kernels:
        _check(kernel)
    used = np.flatnonzero(np.atleast_2d(weights).any(axis=0)).tolist()
    kernels, weights = [kernels[m] for m in used], weights[..., used]
    total: Value | None = None
    for group in by_columns(kernels):
        own = (_columns(rows, group.reader), np.asarray(group.read(support), dtype=np.float64))
        for part in _group_expansion(*own, group.kernels, weights[..., group.positions], coefficients):
            total = part if total is None else total + part
    if total is None:  # no kernel has a weight
        return (rows * 0.0).sum(axis=1) + np.zeros(len(coefficients))
    return total


def _check(kernel: Kernel) -> None:
    inner = kernel.kernel if isinstance(kernel, OnColumns) else kernel
    if type(inner) not in _FORMULAS and not isinstance(inner, FittedGraphGaussian):
        raise NotExpressibleError(
            f"The kernel {_name(inner)} cannot be written as an ONNX graph; those on vectors in "
            "starshl.learning.kernels can. Fit a hasher with one of these, for example kernels='rich'. If you fit it "
            "to the codebook of this hasher, it searches the same codes."
        )


def _name(kernel: Kernel) -> str:
    function = getattr(kernel, "function", None)
    return type(kernel).__name__ if function is None else repr(getattr(function, "__name__", function))


def _columns(rows: Value, reader: OnColumns | None) -> Value:
    if reader is None:
        return rows
    taken = rows.take(reader.columns)
    return taken if reader.scales is None else taken * reader.scales


def _group_expansion(
    rows: Value, support: np.ndarray, kernels: Sequence[Kernel], weights: np.ndarray, coefficients: np.ndarray
) -> list[Value]:
    """Return the terms of the expansion of kernels that read the same columns."""
    pairs = PairValues(rows, support)
    plain = [m for m, kernel in enumerate(kernels) if not isinstance(kernel, FittedGraphGaussian)]
    values = [_FORMULAS[type(kernels[m])](kernels[m], pairs) for m in plain]
    if weights.ndim == 1:  # one mixture for all functions: sum the kernels, then multiply once
        mixture = [value * float(weights[m]) for m, value in zip(plain, values, strict=True)]
        parts = [_sum(mixture) @ coefficients.T] if mixture else []
    else:
        parts = [value @ (weights[:, m, None] * coefficients).T for m, value in zip(plain, values, strict=True)]
    for m, kernel in enumerate(kernels):
        if isinstance(kernel, FittedGraphGaussian):
            parts += _graph_gaussian(kernel, rows, support, np.atleast_2d(weights)[:, m, None] * coefficients)
    return parts


def _graph_gaussian(kernel: FittedGraphGaussian, rows: Value, support: np.ndarray, columns: np.ndarray) -> list[Value]:
    """Return the Gaussian part of a kernel bent by a graph, and what the graph takes away from it."""
    gaussian, scale = Gaussian(kernel.sigma), kernel.scale
    taken = columns @ (kernel.correction @ gaussian(kernel.rows, support)).T
    return [
        _gaussian(gaussian, PairValues(rows, support)) @ (scale * columns).T,
        _gaussian(gaussian, PairValues(rows, kernel.rows)) @ (-scale * taken).T,
    ]


class PairValues:
    """Inner products and squared distances between rows and fixed ones, from one matrix product.

    Both are relative to the mean of the fixed rows, so that rows far from zero lose no digits.
    """

    def __init__(self, rows: Value, support: np.ndarray):
        self.rows, self.support = rows, np.asarray(support, dtype=np.float64)
        self.origin = self.support.mean(axis=0)

    @cached_property
    def _products(self) -> Value:
        return self._centered @ (self.support - self.origin).T

    @cached_property
    def _centered(self) -> Value:
        return self.rows - self.origin

    @cached_property
    def squared_distances(self) -> Value:
        norms = np.sum((self.support - self.origin) ** 2, axis=1)
        return (self._products * -2.0 + squared_norms(self._centered) + norms).apply("Max", 0.0)

    @cached_property
    def norms(self) -> tuple[Value, np.ndarray]:
        """Squared norms of the rows, (n, 1), and of the fixed ones, (n_support,)."""
        return squared_norms(self.rows), np.sum(self.support**2, axis=1)

    @cached_property
    def inner(self) -> Value:
        shift = self.support @ self.origin - self.origin @ self.origin
        return self._products + self.rows @ self.origin[:, None] + shift

    @cached_property
    def cosines(self) -> Value:
        """Cosines of the angles between rows, zero wherever a row is zero."""
        return self.normalized(self.inner, 0.0)

    def normalized(self, products: Value, bias: float) -> Value:
        """Return products divided by the roots of both norms plus a bias, zero where these are zero."""
        rows, others = self.norms
        lengths = (rows + bias).apply("Sqrt") if bias else rows.apply("Sqrt")
        is_zero = lengths.equals(0.0)
        inverse = is_zero.where(lengths * 0.0, 1.0 / (lengths + is_zero.cast(lengths.dtype)))
        root = np.sqrt(others + bias)
        return products * inverse * np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)


def _gaussian(kernel: Any, pairs: PairValues) -> Value:
    return (pairs.squared_distances * _finite(-0.5 / kernel.sigma / kernel.sigma, pairs)).apply("Exp")


def _cauchy(kernel: Any, pairs: PairValues) -> Value:
    return 1.0 / (pairs.squared_distances * _finite(1.0 / kernel.scale / kernel.scale, pairs) + 1.0)


def _linear(kernel: Any, pairs: PairValues) -> Value:
    return pairs.cosines


def _polynomial(kernel: Any, pairs: PairValues) -> Value:
    return _power(pairs.normalized(pairs.inner + kernel.bias, kernel.bias), kernel.degree)


def _shifted_cosine(kernel: Any, pairs: PairValues) -> Value:
    return _power((pairs.cosines + 1.0) * 0.5, kernel.power)


_FORMULAS: dict[type, Callable[[Any, PairValues], Value]] = {
    Gaussian: _gaussian,
    Cauchy: _cauchy,
    NormalizedLinear: _linear,
    NormalizedPolynomial: _polynomial,
    ShiftedCosine: _shifted_cosine,
}


def _finite(rate: float, pairs: PairValues) -> float:
    """Return a rate that does not turn the distance zero of equal rows into NaN."""
    largest = float(np.finfo(pairs.rows.dtype).max)
    return float(np.clip(rate, -largest, largest))


def _power(values: Value, power: int) -> Value:
    """Return values^power by repeated squaring."""
    result, square = None, values
    while power:
        if power % 2:
            result = square if result is None else result * square
        power //= 2
        square = square * square if power else square
    assert result is not None
    return result


def _sum(values: Sequence[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
