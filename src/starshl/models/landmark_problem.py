"""Kernel ridge regression over landmarks, block by block of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._threads import tiles
from .._types import Rows
from ..kernels import LandmarkMap
from ..solvers import RidgeSums
from ..solvers.leave_one_out import Mixture
from .ridge_training import RidgeSolution, RidgeTrainingSet

__all__ = ["BLOCK_ROWS", "LandmarkProblem"]

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
    """

    training: RidgeTrainingSet
    rows: np.ndarray
    weights: np.ndarray
    mixture: Mixture
    n_jobs: int | None

    def landmark_map(self, landmarks: np.ndarray) -> LandmarkMap:
        """Return the features over some rows of the fit."""
        kept = self.training.samples.keep(self.rows[landmarks])
        return LandmarkMap(self.training.kernels, self.mixture.weights, kept, n_jobs=self.n_jobs)

    def blocks(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Rows]]:
        """Return some rows of the fit, block by block, with their positions."""
        pieces = [rows[piece] for piece in tiles(len(rows), BLOCK_ROWS)]
        return zip(pieces, self.training.samples.blocks(self.rows[rows], BLOCK_ROWS), strict=True)

    def sums(self, features: LandmarkMap, rows: np.ndarray) -> RidgeSums:
        """Return what a regression on some rows of the fit needs to know of them."""
        sums = RidgeSums(features.n_features, self.training.n_classes, self.n_jobs)
        for positions, block in self.blocks(rows):
            sums.add(features.features(block), self.training.index[positions], self.weights[positions])
        return sums

    def solve(self, landmarks: np.ndarray) -> RidgeSolution:
        """Return the solution on all rows, with leave-one-out scores."""
        training, everything = self.training, np.arange(len(self.rows))
        features = self.landmark_map(landmarks)
        found = self.sums(features, everything).solve(self.mixture.ridge, self.mixture.constant, overwrite=True)
        dual = features.fold(found.coefficients).T
        whitened = features.transformed(found.whitening)
        scores = np.empty((len(everything), training.n_classes), dtype=np.float32)
        for positions, block in self.blocks(everything):
            scores[positions] = found.leave_one_out(
                whitened.features(block), training.index[positions], self.weights[positions]
            )
        return RidgeSolution(self.mixture, dual, found.intercept, scores, landmarks)
