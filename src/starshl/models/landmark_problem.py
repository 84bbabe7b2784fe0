"""Kernel ridge regression over landmarks, block by block of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._progress import row_progress
from .._threads import tiles
from .._types import Rows
from ..kernels import LandmarkMap
from ..solvers import RidgeSums, StreamedSolution
from ..solvers.leave_one_out import Mixture
from .ridge_training import RidgeSolution, RidgeTrainingSet

__all__ = ["BLOCK_ROWS", "LandmarkProblem", "scores_without_themselves"]

BLOCK_ROWS = 4096  # whose features are in memory together


@dataclass(frozen=True, slots=True)
class LandmarkProblem:
    """A regression whose landmarks are still open.

    Parameters
    ----------
    training : all samples, with the kernels, classes and ridges of those of the fit
    rows : array of shape (n_rows,), where the rows of the fit stand among all samples
    weights : array of shape (n_rows,), their weights
    mixture : kernel weights, constant and ridge
    n_jobs : number of threads
    verbose : whether to show a progress bar
    """

    training: RidgeTrainingSet
    rows: np.ndarray
    weights: np.ndarray
    mixture: Mixture
    n_jobs: int | None
    verbose: bool = False

    def landmark_map(self, landmarks: np.ndarray) -> LandmarkMap:
        """Return the features over some rows of the fit."""
        kept = self.training.samples.keep(self.rows[landmarks])
        return LandmarkMap(self.training.kernels, self.mixture.weights, kept, n_jobs=self.n_jobs)

    def blocks(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Rows]]:
        """Return some rows of the fit, block by block, with their positions."""
        pieces = [rows[piece] for piece in tiles(len(rows), BLOCK_ROWS)]
        return zip(pieces, self.training.samples.blocks(self.rows[rows], BLOCK_ROWS), strict=True)

    def for_blocks(self, function: Callable[..., np.ndarray], rows: np.ndarray, *shared: Any) -> Iterator[np.ndarray]:
        """Yield ``function(block, classes, weights, *shared)`` for the blocks of some rows of the fit, in order."""
        for positions, block in self.blocks(rows):
            yield function(block, self.training.index[positions], self.weights[positions], *shared)

    def sums(
        self, features: LandmarkMap, rows: np.ndarray, report: Callable[[int], None] = lambda n_read: None
    ) -> RidgeSums:
        """Return what a regression on some rows of the fit needs to know of them."""
        sums = RidgeSums(features.n_features, self.training.n_classes, self.n_jobs)
        for positions, block in self.blocks(rows):
            sums.add(features.features(block), self.training.index[positions], self.weights[positions])
            report(len(positions))
        return sums

    def progress(self, landmarks: np.ndarray, step: str) -> AbstractContextManager[Callable[[int], None]]:
        """Return a progress bar over all rows."""
        return row_progress(f"{len(landmarks):,} landmarks, {step}", len(self.rows), shown=self.verbose)

    def solve(self, landmarks: np.ndarray) -> RidgeSolution:
        """Return the solution on all rows, with leave-one-out scores."""
        everything = np.arange(len(self.rows))
        features = self.landmark_map(landmarks)
        with self.progress(landmarks, "learning") as report:
            sums = self.sums(features, everything, report)
        found = sums.solve(self.mixture.ridge, self.mixture.constant, overwrite=True)
        del sums
        dual = features.fold(found.coefficients).T
        whitened = features.transformed(found.whitening)
        left_out = self.for_blocks(scores_without_themselves, everything, whitened, found)
        return RidgeSolution(self.mixture, dual, found.intercept, self.joined(left_out, landmarks), landmarks)

    def joined(self, left_out: Iterable[np.ndarray], landmarks: np.ndarray) -> np.ndarray:
        """Return the leave-one-out scores of all rows, which come block by block, while a progress bar is shown."""
        scores = np.empty((len(self.rows), self.training.n_classes), dtype=np.float32)
        n_done = 0
        with self.progress(landmarks, "leaving each row out") as report:
            for block in left_out:
                scores[n_done : n_done + len(block)] = block
                n_done += len(block)
                report(len(block))
        return scores


def scores_without_themselves(
    block: Rows, index: np.ndarray, weights: np.ndarray, whitened: LandmarkMap, found: StreamedSolution
) -> np.ndarray:
    """Return the leave-one-out scores of a block of rows; ``whitened`` gives the features u of the solution."""
    return found.leave_one_out(whitened.features(block), index, weights).astype(np.float32)
