"""Kernel ridge regression over landmarks with blocks of rows as the tasks of an engine.

Rows are read where the tasks run. What comes back to this process is one score per row and class, and coefficients of
landmarks; matrices with a row and a column per landmark stay where they are. Blocks have the same rows as on a single
machine, so their own sums have the same bytes; the sums over all blocks are taken in another order, and differ in the
last bits of float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

import numpy as np

from .._engine import Engine, place_value
from .._threads import tiles
from .._types import Rows
from ..kernels import Kernel, LandmarkMap
from ..solvers import RidgeSums, StreamedSolution
from .landmark_problem import BLOCK_ROWS, LandmarkProblem, scores_without_themselves
from .ridge_training import RidgeSolution
from .samples import Samples

__all__ = ["SpreadProblem"]

_TASK_BLOCKS = 8  # of 4,096 rows that one task sums up


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one task: their numbers among all samples, classes and weights."""

    rows: np.ndarray | slice
    index: np.ndarray
    weights: np.ndarray | float

    def __len__(self) -> int:
        return len(self.index)

    def blocks(self, samples: Samples) -> Iterator[tuple[Rows, np.ndarray, np.ndarray]]:
        """Return the rows with their classes and weights, block by block."""
        rows = np.arange(self.rows.start, self.rows.stop) if isinstance(self.rows, slice) else self.rows
        index, weights = self.index.astype(np.int64), np.broadcast_to(self.weights, len(self))
        for place, block in zip(tiles(len(rows), BLOCK_ROWS), samples.blocks(rows, BLOCK_ROWS), strict=True):
            yield block, index[place], weights[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadProblem(LandmarkProblem):
    """A regression whose rows are read by the tasks of an engine; ``placed`` is a handle of all samples."""

    engine: Engine
    placed: Any

    @classmethod
    def of(cls, problem: LandmarkProblem, engine: Engine) -> Self:
        """Return the same problem with its blocks as tasks."""
        same = {each.name: getattr(problem, each.name) for each in fields(LandmarkProblem)}
        return cls(**same, engine=engine, placed=place_value(engine, problem.training.samples))

    def for_blocks(self, function: Callable[..., np.ndarray], rows: np.ndarray, *shared: Any) -> Iterator[np.ndarray]:
        """Yield what a function returns for the blocks of some rows of the fit, in order; several blocks are a task."""
        there = place_value(self.engine, shared)
        return self.engine.map(partial(_apply, function), self._pieces(rows), self.placed, there)

    def sums(
        self, features: LandmarkMap, rows: np.ndarray, report: Callable[[int], None] = lambda n_read: None
    ) -> RidgeSums:
        """Return what a regression on some rows of the fit needs to know of them."""
        placed = self._place_map(features.mixture.landmarks)
        sums: RidgeSums = self.engine.fetch(self._total(placed, rows, report))
        return sums

    def solve(self, landmarks: np.ndarray) -> RidgeSolution:
        """Return the solution on all rows, with leave-one-out scores."""
        engine, everything = self.engine, np.arange(len(self.rows))
        features = self._place_map(self.training.samples.keep(self.rows[landmarks]))
        with self.progress(landmarks, "learning") as report:
            sums = self._total(features, everything, report)
        found = engine.place(_solved, sums, self.mixture.ridge, self.mixture.constant)
        del sums
        dual, intercept, judge = engine.fetch(engine.place(_folded, features, found))
        whitened = engine.place(_whitened, features, found)
        del features, found
        function, there = partial(_apply_to_placed, scores_without_themselves), place_value(engine, judge)
        left_out = engine.map(function, self._pieces(everything), self.placed, whitened, there)
        return RidgeSolution(self.mixture, dual, intercept, self.joined(left_out, landmarks), landmarks)

    def _place_map(self, landmarks: Rows) -> Any:
        return self.engine.place(_landmark_map, self.training.kernels, self.mixture.weights, landmarks)

    def _total(self, features: Any, rows: np.ndarray, report: Callable[[int], None]) -> Any:
        function = partial(_sums_of, self.training.n_classes)
        pieces = self._pieces(rows)
        return self.engine.total(function, pieces, self.placed, features, report=lambda piece: report(len(piece)))

    def _pieces(self, rows: np.ndarray) -> Iterator[Piece]:
        """Cut rows of the fit into tasks; rows that follow each other, few classes and equal weights take few bytes."""
        index = self.training.index.astype(np.min_scalar_type(self.training.n_classes))
        for tile in tiles(len(rows), _TASK_BLOCKS * BLOCK_ROWS):
            positions = rows[tile]
            numbers, weights = self.rows[positions], self.weights[positions]
            follows = numbers[-1] - numbers[0] + 1 == len(numbers)
            yield Piece(
                slice(int(numbers[0]), int(numbers[-1]) + 1) if follows else numbers,
                index[positions],
                float(weights[0]) if np.all(weights == weights[0]) else weights,
            )


def _apply(function: Callable[..., np.ndarray], piece: Piece, samples: Samples, shared: tuple[Any, ...]) -> np.ndarray:
    return _apply_to_placed(function, piece, samples, *shared)


def _apply_to_placed(function: Callable[..., np.ndarray], piece: Piece, samples: Samples, *shared: Any) -> np.ndarray:
    return np.concatenate([function(*block, *shared) for block in piece.blocks(samples)])


def _landmark_map(kernels: Sequence[Kernel], weights: np.ndarray, landmarks: Rows) -> LandmarkMap:
    return LandmarkMap(kernels, weights, landmarks)


def _sums_of(n_classes: int, piece: Piece, samples: Samples, features: LandmarkMap) -> RidgeSums:
    sums = RidgeSums(features.n_features, n_classes)
    for block, index, weights in piece.blocks(samples):
        sums.add(features.features(block), index, weights)
    return sums


def _solved(sums: RidgeSums, ridge: float, constant: float) -> StreamedSolution:
    return sums.solve(ridge, constant)


def _folded(features: LandmarkMap, found: StreamedSolution) -> tuple[np.ndarray, np.ndarray, StreamedSolution]:
    """Return coefficients of landmarks, intercepts, and what judges rows without themselves, which needs no matrix."""
    judge = replace(found, whitening=np.empty((0, 0)))
    return features.fold(found.coefficients).T, found.intercept, judge


def _whitened(features: LandmarkMap, found: StreamedSolution) -> LandmarkMap:
    return features.transformed(found.whitening)
