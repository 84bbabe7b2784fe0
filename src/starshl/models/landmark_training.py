"""Kernel ridge regression on more rows than a kernel matrix can have: expansions over landmarks.

Half of the landmarks are random rows. A first fit on them shows where classes meet, and the other half is drawn there:
on MNIST, 2,000 landmarks of this kind err as rarely as 4,000 random ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .._threads import tiles
from .._types import Rows
from ..kernels import Kernel, LandmarkMap, expand_mixture
from ..solvers import RidgeSums, StreamedSolution
from ..solvers.leave_one_out import Mixture
from .ridge_training import (
    RidgeSettings,
    RidgeSolution,
    RidgeTrainingSet,
    Targets,
    search_mixture,
    stratified_rows,
)
from .samples import Samples

__all__ = ["DEFAULT_LANDMARKS", "solve_by_landmarks"]

DEFAULT_LANDMARKS = 3000
_BLOCK_ROWS = 4096  # whose features are in memory together
_KERNEL_ROWS = 5000  # on which kernels are fitted
_PILOT_ROWS = 20_000  # on which the first fit learns where classes meet
_POOL_ROWS = 100_000  # among which it looks for rows there
_CANDIDATES = 6  # times as many as are drawn; 3 and 12 were .001 and .002 worse on MNIST
_BYTES_PER_PAIR = 40  # of landmarks, at the peak: three matrices in float64 and two in float32


def solve_by_landmarks(
    samples: Samples,
    kernels: str | Sequence[Kernel],
    targets: Targets,
    n_classes: int,
    settings: RidgeSettings,
    seed: int,
) -> tuple[RidgeTrainingSet, RidgeSolution]:
    """Return the rows of the fit with their kernels, and class scores as expansions over landmarks.

    Kernel weights and ridge come from a sample; see :func:`search_mixture`.
    """
    rows = targets.rows
    is_given = np.ones(len(rows), dtype=bool) if targets.is_given is None else targets.is_given[rows]
    index = targets.index[rows]
    few = np.union1d(stratified_rows(index, _KERNEL_ROWS, seed), _given_rows(index, is_given, _KERNEL_ROWS, seed))
    sample = RidgeTrainingSet.take(samples, kernels, targets.only(rows[few]), n_classes)
    mixture = search_mixture(sample, None, settings.memory_plan, seed)
    training = RidgeTrainingSet(samples, sample.kernels, index, targets.ridge_scale[rows], n_classes, is_given)
    problem = _LandmarkProblem(training, rows, training.weights, mixture, settings.n_jobs)
    n_landmarks = min(settings.n_landmarks or DEFAULT_LANDMARKS, len(rows))
    _require_memory(n_landmarks, settings.memory_plan.budget)
    return training, problem.solve(choose_landmarks(problem, n_landmarks, seed))


@dataclass(frozen=True, slots=True)
class _LandmarkProblem:
    """A regression whose landmarks are still open; ``rows`` are those of the fit among all samples."""

    training: RidgeTrainingSet
    rows: np.ndarray
    weights: np.ndarray
    mixture: Mixture
    n_jobs: int | None

    def landmark_map(self, landmarks: np.ndarray) -> LandmarkMap:
        kept = self.training.samples.keep(self.rows[landmarks])
        return LandmarkMap(self.training.kernels, self.mixture.weights, kept, n_jobs=self.n_jobs)

    def blocks(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Rows]]:
        """Return some rows of the fit, block by block, with their positions."""
        pieces = [rows[piece] for piece in tiles(len(rows), _BLOCK_ROWS)]
        return zip(pieces, self.training.samples.blocks(self.rows[rows], _BLOCK_ROWS), strict=True)

    def regress(self, features: LandmarkMap, rows: np.ndarray) -> StreamedSolution:
        """Return the ridge regression on some rows of the fit."""
        sums = RidgeSums(features.n_features, self.training.n_classes, self.n_jobs)
        for positions, block in self.blocks(rows):
            sums.add(features.features(block), self.training.index[positions], self.weights[positions])
        return sums.solve(self.mixture.ridge, self.mixture.constant)

    def solve(self, landmarks: np.ndarray) -> RidgeSolution:
        """Return the solution on all rows, with leave-one-out scores."""
        training, everything = self.training, np.arange(len(self.rows))
        features = self.landmark_map(landmarks)
        found = self.regress(features, everything)
        dual = features.fold(found.coefficients).T
        whitened = features.transformed(found.whitening)
        scores = np.empty((len(everything), training.n_classes), dtype=np.float32)
        for positions, block in self.blocks(everything):
            scores[positions] = found.leave_one_out(
                whitened.features(block), training.index[positions], self.weights[positions]
            )
        return RidgeSolution(self.mixture, dual, found.intercept, scores, landmarks)


def choose_landmarks(problem: _LandmarkProblem, n_landmarks: int, seed: int) -> np.ndarray:
    """Return the positions of the landmarks among the rows of the fit, in rising order.

    Half of them are random rows and, where labels are few, given ones. The others are drawn from the rows whose own
    class leads by least, or trails by most, in a fit on the first half.
    """
    index, n_random = problem.training.index, -(-n_landmarks // 2)
    if n_landmarks == len(index) or problem.training.n_classes == 1:
        return stratified_rows(index, n_landmarks, seed)
    given = _given_rows(index, problem.training.is_given, n_random // 2, seed)
    first = np.union1d(given, stratified_rows(index, n_random - len(given), seed))
    pool = np.setdiff1d(stratified_rows(index, _POOL_ROWS, seed + 1), first, assume_unique=True)
    leads = _leads(problem, first, pool, seed)
    n_more = min(n_landmarks - len(first), len(pool))
    hardest = pool[np.argsort(leads, kind="stable")[: _CANDIDATES * n_more]]
    more = np.random.RandomState(seed).choice(hardest, n_more, replace=False)
    return np.sort(np.concatenate([first, more]))


def _given_rows(index: np.ndarray, is_given: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Return at most ``n_rows`` rows of a given class, if there are others; a random sample might hold none of them."""
    given = np.flatnonzero(is_given)
    return given[:0] if len(given) == len(index) else given[stratified_rows(index[given], n_rows, seed)]


def _leads(problem: _LandmarkProblem, landmarks: np.ndarray, pool: np.ndarray, seed: int) -> np.ndarray:
    """Return by how much the score of each row's class exceeds the best other one, in a fit on fewer rows."""
    training, mixture = problem.training, problem.mixture
    features = problem.landmark_map(landmarks)
    found = problem.regress(features, stratified_rows(training.index, _PILOT_ROWS, seed + 2))
    dual, kept = features.fold(found.coefficients).T, features.mixture.landmarks
    leads = np.empty(len(pool))
    for piece, (positions, block) in zip(tiles(len(pool), _BLOCK_ROWS), problem.blocks(pool), strict=True):
        scores = expand_mixture(training.kernels, block, kept, mixture.weights, dual, problem.n_jobs) + found.intercept
        own = np.arange(len(positions)), training.index[positions]
        leads[piece] = scores[own]
        scores[own] = -np.inf
        leads[piece] -= scores.max(axis=1)
    return leads


def _require_memory(n_landmarks: int, budget: float) -> None:
    n_bytes = _BYTES_PER_PAIR * n_landmarks**2
    if n_bytes > budget:
        raise MemoryError(
            f"A fit with {n_landmarks:,} landmarks takes {n_bytes / 2**30:.2g} GiB, and {budget / 2**30:.2g} GiB are "
            "allowed or free. Use a smaller n_landmarks or a larger max_memory."
        )
