"""Kernel mixtures: weighted sums of kernels, evaluated together from squared distances.

Compiled loops do that; but compiling them takes seconds, so for few fixed rows NumPy does it in nearly the same time.
:class:`FusedKernels` is a list of kernels in the form that the loops want, and :class:`KernelMixture` a weighted sum of
them between any rows and fixed ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np

from ..._common.threads import tiles
from ..._common.validation import Rows
from ._fused_loops import evaluate_each, sum_between, sum_block
from .distances import PairTable, squared_distances_from_norms, squared_norms
from .kernel import Kernel, checked_block
from .vectors import Cauchy, Gaussian, NormalizedLinear, NormalizedPolynomial, ShiftedCosine, VectorKernel
from .views import ColumnGroup, by_columns, reads_columns

_Arrays: TypeAlias = tuple[np.ndarray, ...]
WeightedSum: TypeAlias = tuple[_Arrays, _Arrays, _Arrays, _Arrays, float]
"""Parameters and weights of dot-product kernels, shifted cosines, Cauchy kernels and Gaussians, and the cutoff."""
_MAX_SQUARINGS = 4  # one after the other
_OF_DISTANCES = (Gaussian, Cauchy)
_OF_DOT_PRODUCTS = (NormalizedLinear, NormalizedPolynomial, ShiftedCosine)
_FLOAT32_NORM_RATIO = 100.0  # of the longest row to the shortest, up to which float32 has digits enough
# A Gaussian of e^-cutoff or less is no different from zero beside a diagonal of one.
_CUTOFF = {np.dtype(np.float32): 23.0, np.dtype(np.float64): 46.0}
# Fixed rows from which on sums are left to the compiled loops. Tests replace it.
COMPILED_FROM = 2048
_ROWS_AT_ONCE = 64  # whose values stay in the cache while NumPy computes every kernel on them
_LOWEST_EXPONENT = {np.dtype(np.float32): -86.0, np.dtype(np.float64): -708.0}
_PIECE = 512  # fixed rows that others meet in one pass of the compiled loops


@dataclass(frozen=True, slots=True)
class RowScales:
    """Squared norms of rows, and what normalizes dot-product kernels and cosines on them, (n_dots + 1, n_rows)."""

    norms: np.ndarray
    scales: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """What the compiled loops take."""
        return self.norms, self.scales

    def take(self, rows: slice | np.ndarray) -> RowScales:
        return RowScales(self.norms[rows], np.ascontiguousarray(self.scales[:, rows]))


def norm_range(squared: np.ndarray) -> np.ndarray:
    """Return the smallest and the largest of the squared norms that are not zero, or two zeros if all are."""
    positive = squared[squared > 0]
    return np.array([positive.min(), positive.max()]) if len(positive) else np.zeros(2)


class FusedKernels:
    """A list of kernels, and weighted sums of them, in the form that the compiled loops want.

    ``n_fixed`` is the number of rows that others meet, which decides once for all whether loops or NumPy take sums.
    """

    def __init__(self, kernels: Sequence[Kernel], dtype: np.dtype, n_fixed: int):
        self.n_kernels = len(kernels)
        self.is_compiled = n_fixed >= COMPILED_FROM
        self.dtype = np.dtype(dtype)
        self.dots = [
            m for m, kernel in enumerate(kernels) if isinstance(kernel, NormalizedLinear | NormalizedPolynomial)
        ]
        self.biases = np.array([getattr(kernels[m], "bias", 0.0) for m in self.dots], dtype=self.dtype)
        self.degrees = np.array([getattr(kernels[m], "degree", 1) for m in self.dots], dtype=np.int64)
        powers = {m: kernel.power for m, kernel in enumerate(kernels) if isinstance(kernel, ShiftedCosine)}
        self.cosines = sorted(powers, key=powers.__getitem__)
        self.powers = np.array([powers[m] for m in self.cosines], dtype=np.int64)
        largest = float(np.finfo(self.dtype).max)
        cauchys = {m: kernel.scale for m, kernel in enumerate(kernels) if isinstance(kernel, Cauchy)}
        self.cauchys = list(cauchys)
        self.cauchy_rates = np.array([min(1.0 / s / s, largest) for s in cauchys.values()], dtype=self.dtype)
        sigmas = {m: kernel.sigma for m, kernel in enumerate(kernels) if isinstance(kernel, Gaussian)}
        rates = {m: min(0.5 / sigma / sigma, largest) for m, sigma in sigmas.items()}
        self.gaussians = sorted(rates, key=rates.__getitem__)
        self.rates = np.array([rates[m] for m in self.gaussians], dtype=np.float64)
        self.cutoff = self.dtype.type(_CUTOFF[self.dtype])

    @staticmethod
    def covers(kernels: Sequence[Kernel], *blocks: Rows) -> bool:
        """Tell whether the compiled loops know all these kernels and compute them exactly enough on these rows.

        Dot products are recovered from distances, which costs digits where norms differ widely; float32 has few.
        """
        if not all(type(kernel) in _OF_DISTANCES + _OF_DOT_PRODUCTS for kernel in kernels):
            return False
        is_narrow = any(block.dtype == np.float32 for block in blocks)
        return not is_narrow or not FusedKernels.needs_float64(kernels, *map(squared_norms, blocks))

    @staticmethod
    def needs_float64(kernels: Sequence[Kernel], *norms: np.ndarray) -> bool:
        """Tell whether float32 is not exact enough for some kernel on rows of these squared norms."""
        if all(isinstance(kernel, _OF_DISTANCES) for kernel in kernels):
            return False
        shortest, longest = norm_range(np.concatenate(norms))
        return bool(longest > _FLOAT32_NORM_RATIO**2 * shortest)

    def scales(self, rows: Rows, norms: np.ndarray | None = None) -> RowScales:
        """Return what the dot-product kernels need to know of some rows, whose squared norms may be known."""
        norms = squared_norms(rows) if norms is None else norms
        shifted = norms + np.append(self.biases, 0.0).astype(np.float64)[:, None]
        scales = np.divide(1.0, np.sqrt(shifted), out=np.zeros_like(shifted), where=shifted > 0)
        scales[-1] /= 2.0
        return RowScales(norms.astype(self.dtype), scales.astype(self.dtype))

    @property
    def order(self) -> list[int]:
        """The positions of the kernels in the order of :meth:`evaluate`."""
        return [*self.dots, *self.cosines, *self.cauchys, *self.gaussians]

    def evaluate(self, squared: np.ndarray, rows: RowScales, columns: RowScales, out: np.ndarray) -> None:
        """Fill ``out`` with every kernel over a block of squared distances, (n_kernels, n_rows, n_columns).

        The kernels are in ``order``.
        """
        weighted = self.weighted(np.ones(self.n_kernels))
        if self.is_compiled:
            evaluate_each(squared, rows.arrays, columns.arrays, weighted, out)
            return
        with np.errstate(over="ignore", invalid="ignore"):
            for part in tiles(len(squared), _ROWS_AT_ONCE):
                targets = iter(out[:, part])
                for _ in _each_kernel(squared[part], rows.take(part), columns, weighted, targets):
                    pass
                for rest in targets:
                    rest[:] = 0

    def n_negligible(self, squared: np.ndarray) -> int:
        """Return how many kernels, the last ones in ``order``, are zero on a whole block of squared distances."""
        rates = self.rates.astype(self.dtype)
        return int(np.sum(rates * squared.min(initial=np.inf) >= self.cutoff))

    def add_up(
        self,
        squared: np.ndarray,
        rows: RowScales,
        columns: RowScales,
        weighted: WeightedSum,
        top: int,
        left: int,
        out: np.ndarray,
    ) -> None:
        """Write a weighted sum over a block to out[top:, left:] and, mirrored, to out[left:, top:]."""
        if self.is_compiled:
            sum_block(squared, rows.arrays, columns.arrays, weighted, top, left, out)
            return
        values = self.sum_between(squared, rows, columns, weighted)
        if top == left:  # rounding is not symmetric, a kernel must be
            values = np.triu(values) + np.triu(values, 1).T
        n_rows, n_columns = values.shape
        out[top : top + n_rows, left : left + n_columns] = values
        out[left : left + n_columns, top : top + n_rows] = values.T

    def sum_between(
        self, squared: np.ndarray, rows: RowScales, columns: RowScales, weighted: WeightedSum
    ) -> np.ndarray:
        """Return a weighted sum over a block of squared distances."""
        total = np.empty_like(squared)
        if self.is_compiled:
            sum_between(squared, rows.arrays, columns.arrays, weighted, total)
            return total
        with np.errstate(over="ignore", invalid="ignore"):
            for part in tiles(len(squared), _ROWS_AT_ONCE):
                own = total[part]
                own[:] = 0
                targets = repeat(np.empty_like(own))
                for weight, values in _each_kernel(squared[part], rows.take(part), columns, weighted, targets):
                    if weight != 0:
                        own += weight * values
        return total

    def weighted(self, weights: np.ndarray) -> WeightedSum:
        """Return the argument of the compiled loops that says which sum is asked for; weights of zero cost nothing."""
        weights = np.asarray(weights, dtype=self.dtype)
        dots = (self.biases, self.degrees, weights[self.dots])
        cauchys = (self.cauchy_rates, weights[self.cauchys])
        powers, cosine_weights = _nonzero(self.powers, weights[self.cosines])
        rates, gaussian_weights = _nonzero(self.rates, weights[self.gaussians])
        # The loops begin with the cosine itself, of power one.
        cosines = powers, _squarings([1.0, *powers])[1:], cosine_weights
        gaussians = rates.astype(self.dtype), _squarings(rates.tolist()), gaussian_weights
        return dots, cosines, cauchys, gaussians, self.cutoff


def _each_kernel(
    squared: np.ndarray, rows: RowScales, columns: RowScales, weighted: WeightedSum, targets: Iterator[np.ndarray]
) -> Iterator[tuple[np.floating[Any], np.ndarray]]:
    """Yield weight and values of each kernel, as the compiled loops compute them; Gaussians end where all are zero.

    Values stand in the next of the targets, which may all be one array.
    """
    dots, cosines, cauchys, gaussians, cutoff = weighted
    half, values = squared.dtype.type(0.5), squared
    if len(dots[2]) or len(cosines[2]):
        twice = rows.norms[:, None] + (columns.norms - squared)  # the dot products
    for p, (bias, degree, weight) in enumerate(zip(*dots, strict=True)):
        values = next(targets)
        np.multiply(half * twice + bias, rows.scales[p][:, None] * columns.scales[p], out=values)
        if degree == 2:
            np.multiply(values, values, out=values)
        elif degree > 2:
            np.power(values, degree, out=values)
        yield weight, values
    for q, (power, n_squarings, weight) in enumerate(zip(*cosines, strict=True)):
        before, values = values, next(targets)
        if q == 0 or n_squarings < 0:
            np.multiply(twice, rows.scales[-1][:, None] * columns.scales[-1], out=values)
            before = np.add(values, half, out=values)
        if n_squarings < 0:
            np.power(values, power, out=values)
        else:
            _square(before, n_squarings, values)
        yield weight, values
    for rate, weight in zip(*cauchys, strict=True):
        values = next(targets)
        np.multiply(squared, rate, out=values)
        values += 1
        np.reciprocal(values, out=values)
        yield weight, values
    nearest, lowest = squared.min(initial=np.inf), squared.dtype.type(_LOWEST_EXPONENT[squared.dtype])
    for rate, n_squarings, weight in zip(*gaussians, strict=True):
        if rate * nearest >= cutoff:
            return
        before, values = values, next(targets)
        if n_squarings < 0:
            np.multiply(squared, -rate, out=values)
            np.exp(np.maximum(values, lowest, out=values), out=values)
        else:
            _square(before, n_squarings, values)
        yield weight, values


def _square(values: np.ndarray, n_times: int, out: np.ndarray) -> None:
    if n_times == 0:
        out[:] = values
    for _ in range(n_times):
        values = np.multiply(values, values, out=out)


def _nonzero(parameters: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    used = np.flatnonzero(weights)
    return parameters[used], weights[used]


def _squarings(rates: list[float]) -> np.ndarray:
    """Return for each rate how often the kernel before it must be squared to give its own, or -1.

    Squaring doubles the relative error, so after a few squarings a kernel is computed anew.
    """
    steps = np.full(len(rates), -1, dtype=np.int64)
    n_squared = 0
    for m in range(1, len(rates)):
        power = np.log2(rates[m] / rates[m - 1])
        if abs(power - round(power)) < 1e-9 and n_squared + power <= _MAX_SQUARINGS:
            steps[m] = round(power)
        n_squared = n_squared + steps[m] if steps[m] >= 0 else 0
    return steps


class KernelMixture:
    r"""The kernel mixture :math:`k_\theta(x, z) = \sum_m \theta_m k_m(x, z)` between any rows and fixed ones.

    What the compiled loops need to know of the fixed rows is computed once.

    Parameters
    ----------
    kernels : fitted kernels
    weights : array of shape (n_kernels,); kernels of weight zero are not evaluated
    landmarks : the fixed rows z, or samples of any type that the kernels take
    """

    def __init__(self, kernels: Sequence[Kernel], weights: np.ndarray, landmarks: Rows):
        used = np.flatnonzero(weights).tolist()
        self.kernels = [kernels[m] for m in used]
        self.weights = np.asarray(weights, dtype=np.float64)[used]
        self.landmarks = landmarks
        self.n_landmarks = landmarks.shape[0]
        self._parts: list[tuple[ColumnGroup, KernelMixture]] = []
        if reads_columns(self.kernels):
            groups = by_columns(self.kernels)
            self._parts = [(g, KernelMixture(g.kernels, self.weights[g.positions], g.read(landmarks))) for g in groups]
        self._norms = squared_norms(landmarks) if FusedKernels.covers(self.kernels) else None
        self._norm_range = norm_range(np.empty(0) if self._norms is None else self._norms)
        self._compiled: dict[np.dtype, _CompiledMixture] = {}

    def __call__(self, rows: Rows) -> np.ndarray:
        """Return the mixture, shape (n_rows, n_landmarks), in the precision of the rows."""
        total = np.empty((rows.shape[0], self.n_landmarks), dtype=_precision(rows))
        for piece, values in self.pieces(rows):
            total[:, piece] = values
        return total

    def pieces(self, rows: Rows) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the mixture between the rows and some of the fixed ones, after where these stand, until all had a turn.

        float32 rows whose lengths differ too widely for the compiled loops are taken in float64.
        """
        if self._parts:
            yield from self._sums_of_parts(rows)
            return
        if self._norms is None:
            yield slice(0, self.n_landmarks), self._one_by_one(rows)
            return
        norms, dtype = squared_norms(rows), _precision(rows)
        if dtype == np.float32 and FusedKernels.needs_float64(self.kernels, norms, self._norm_range):
            dtype = np.dtype(np.float64)
        if dtype not in self._compiled:  # two threads may both compute it, with the same result
            self._compiled[dtype] = _CompiledMixture(self, self._norms, dtype)
        yield from self._compiled[dtype].pieces(rows, norms)

    def _sums_of_parts(self, rows: Rows) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the sums of mixtures that each read their own columns."""
        dtype, read = _precision(rows), [(group.read(rows), part) for group, part in self._parts]
        if any(part._norms is None for _, part in read):  # whose pieces are of another size
            total = np.zeros((rows.shape[0], self.n_landmarks), dtype=dtype)
            for own, part in read:
                total += part(own)
            yield slice(0, self.n_landmarks), total
            return
        for pieces in zip(*(part.pieces(own) for own, part in read), strict=True):
            values = pieces[0][1].astype(dtype, copy=False)
            for _, others in pieces[1:]:
                values += others
            yield pieces[0][0], values

    def _one_by_one(self, rows: Rows) -> np.ndarray:
        """Return the mixture of kernels that the compiled loops do not know."""
        dtype = _precision(rows)
        total = np.zeros((rows.shape[0], self.n_landmarks), dtype=dtype)
        table = PairTable(rows, self.landmarks)
        for kernel, weight in zip(self.kernels, self.weights, strict=True):
            if isinstance(kernel, VectorKernel):
                values = kernel.evaluate(table)
            else:
                values = checked_block(kernel, kernel(rows, self.landmarks), *total.shape)
            total += dtype.type(weight) * values.astype(dtype, copy=False)
        return total


class _CompiledMixture:
    """The same by compiled loops, in one precision."""

    def __init__(self, mixture: KernelMixture, norms: np.ndarray, dtype: np.dtype):
        self.fused = FusedKernels(mixture.kernels, dtype, mixture.n_landmarks)
        self.weighted = self.fused.weighted(mixture.weights)
        landmarks = mixture.landmarks.astype(dtype, copy=False)
        scales = self.fused.scales(landmarks, norms)
        self.parts = [
            (piece, landmarks[piece], norms[piece], scales.take(piece)) for piece in tiles(landmarks.shape[0], _PIECE)
        ]

    def pieces(self, rows: Rows, norms: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        rows = rows.astype(self.fused.dtype, copy=False)
        scales = self.fused.scales(rows, norms)
        for piece, landmarks, own_norms, own_scales in self.parts:
            squared = squared_distances_from_norms(rows, landmarks, (norms, own_norms))
            yield piece, self.fused.sum_between(squared, scales, own_scales, self.weighted)


def _precision(rows: Rows) -> np.dtype:
    return np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
