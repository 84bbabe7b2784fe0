"""MixtureTo: one weighted sum of kernels between any rows and fixed ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._threads import tiles
from .._types import Rows
from .bank import checked_block
from .base import Kernel
from .columns import ColumnGroup, by_columns, reads_columns
from .mix import KernelMix
from .pairs import PairTable, squared_distances
from .rows import squared_norms
from .vectors import VectorKernel

__all__ = ["MixtureTo"]

_PIECE = 512  # fixed rows that others meet in one pass of the compiled loops


class MixtureTo:
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
        self._parts: list[tuple[ColumnGroup, MixtureTo]] = []
        if reads_columns(self.kernels):
            groups = by_columns(self.kernels)
            self._parts = [(g, MixtureTo(g.kernels, self.weights[g.positions], g.read(landmarks))) for g in groups]
        self._norms = squared_norms(landmarks) if KernelMix.covers(self.kernels) else None
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
        if dtype == np.float32 and KernelMix.needs_float64(self.kernels, norms, self._norms):
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

    def __init__(self, mixture: MixtureTo, norms: np.ndarray, dtype: np.dtype):
        self.landmarks = mixture.landmarks.astype(dtype, copy=False)
        self.norms = norms
        self.mix = KernelMix(mixture.kernels, dtype)
        self.weighted = self.mix.weighted(mixture.weights)
        self.scales = self.mix.scales(self.landmarks, norms)

    def pieces(self, rows: Rows, norms: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        rows = rows.astype(self.mix.dtype, copy=False)
        scales = self.mix.scales(rows, norms)
        for piece in tiles(self.landmarks.shape[0], _PIECE):
            squared = squared_distances(rows, self.landmarks[piece], (norms, self.norms[piece]))
            yield piece, self.mix.sum_between(squared, scales, self.scales.take(piece), self.weighted)


def _precision(rows: Rows) -> np.dtype:
    return np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
