"""Kernel ridge regression on more rows than a kernel matrix can have: the steps of a fit over landmarks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._engine import current_engine
from ..kernels import Kernel
from .landmark_choice import choose_landmarks, given_rows
from .landmark_problem import LandmarkProblem
from .ridge_training import (
    RidgeSettings,
    RidgeSolution,
    RidgeTrainingSet,
    Targets,
    search_mixture,
    stratified_rows,
)
from .samples import Samples
from .spread_landmarks import SpreadProblem

__all__ = ["DEFAULT_LANDMARKS", "solve_by_landmarks"]

DEFAULT_LANDMARKS = 3000  # on MNIST, 8,000 take 4.5 times as long for .0013 of P@10
_KERNEL_ROWS = 5000  # on which kernels are fitted
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

    Kernel weights come from a sample, as in an exact fit; see :func:`search_mixture`.
    """
    rows = targets.rows
    is_given = np.ones(len(rows), dtype=bool) if targets.is_given is None else targets.is_given[rows]
    index = targets.index[rows]
    n_landmarks = min(settings.n_landmarks or DEFAULT_LANDMARKS, len(rows))
    _require_memory(n_landmarks, settings.memory_plan.budget)
    few = np.union1d(stratified_rows(index, _KERNEL_ROWS, seed), given_rows(index, is_given, _KERNEL_ROWS, seed))
    sample = RidgeTrainingSet.take(samples, kernels, targets.only(rows[few]), n_classes)
    mixture = search_mixture(sample, None, settings.memory_plan, seed)
    training = RidgeTrainingSet(samples, sample.kernels, index, targets.ridge_scale[rows], n_classes, is_given)
    weights = mixture.ridge / training.ridges(mixture)
    problem = LandmarkProblem(training, rows, weights, mixture, settings.n_jobs, settings.verbose > 0)
    engine = current_engine()
    if engine is not None:
        problem = SpreadProblem.of(problem, engine)
    landmarks, problem = choose_landmarks(problem, n_landmarks, seed)
    return training, problem.solve(landmarks)


def _require_memory(n_landmarks: int, budget: float) -> None:
    n_bytes = _BYTES_PER_PAIR * n_landmarks**2
    if n_bytes > budget:
        raise MemoryError(
            f"A fit with {n_landmarks:,} landmarks takes {n_bytes / 2**30:.2g} GiB, and {budget / 2**30:.2g} GiB are "
            "allowed or free. Use a smaller n_landmarks or a larger max_memory."
        )
