"""Which rows become landmarks, and the ridge that suits them: what a pilot fit on fewer rows tells.

Half of the landmarks are random rows. The pilot fit on them shows where classes meet, and the other half is drawn
there: on MNIST, 2,000 landmarks of this kind err as rarely as 4,000 random ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from .._threads import single_threaded_blas
from .._types import Rows
from ..kernels import Kernel, LandmarkMap, expand_mixture
from ..solvers import RidgeSums, StreamedSolution
from ..solvers.calibration import fit_calibration
from ..solvers.leave_one_out import SMALLEST_RIDGE
from .landmark_problem import LandmarkProblem
from .ridge_training import stratified_rows

__all__ = ["choose_landmarks", "given_rows"]

_PILOT_ROWS = 20_000  # at most
_RIDGE_ROWS = 4096  # of the pilot fit, by whose leave-one-out loss ridges are compared
_RIDGE_STEP = 10**0.5  # half a power of ten: the loss is flat around its minimum
_LEAST_GAIN = 1e-3  # share of the loss by which a lower ridge must be better: without a gain, more ridge is safer
_POOL_ROWS = 100_000  # among which rows between classes are looked for
# Landmarks are drawn from this share of the pool, within limits that are multiples of their number. On 60,000 rows of
# MNIST, shares of .05 and .2 were .001 and .002 worse; on 15,000 rows, .4 was .0035 worse.
_HARDEST_SHARE, _CANDIDATES = 0.1, (1.5, 6.0)


def choose_landmarks(problem: LandmarkProblem, n_landmarks: int, seed: int) -> tuple[np.ndarray, LandmarkProblem]:
    """Return the positions of landmarks among the rows of the fit, in rising order, and the problem with its ridge.

    Half of the landmarks are random rows and, where labels are few, given ones. The others are drawn from the rows
    whose own class leads by least, or trails by most, in the pilot fit. If all rows are landmarks, the ridge stays.
    """
    index, n_random = problem.training.index, -(-n_landmarks // 2)
    if n_landmarks == len(index) or problem.training.n_classes == 1:
        return stratified_rows(index, n_landmarks, seed), problem
    given = given_rows(index, problem.training.is_given, n_random // 2, seed)
    first = np.union1d(given, stratified_rows(index, n_random - len(given), seed))
    pool = np.setdiff1d(stratified_rows(index, _POOL_ROWS, seed + 1), first, assume_unique=True)
    # No more rows per landmark than the whole fit has, because its ridge must not be too low there.
    n_rows = min(_PILOT_ROWS, len(index) * len(first) // n_landmarks)
    pilot = _Pilot.fit(problem, first, stratified_rows(index, n_rows, seed + 2), seed)
    n_more = min(n_landmarks - len(first), len(pool))
    fewest, most = (int(times * n_more) for times in _CANDIDATES)
    n_hardest = min(max(int(_HARDEST_SHARE * len(pool)), fewest), most)
    hardest = pool[np.argsort(pilot.leads(problem, pool), kind="stable")[:n_hardest]]
    more = np.random.RandomState(seed).choice(hardest, n_more, replace=False)
    mixture = replace(problem.mixture, ridge=pilot.ridge)
    return np.sort(np.concatenate([first, more])), replace(problem, mixture=mixture)


def given_rows(index: np.ndarray, is_given: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Return at most ``n_rows`` rows of a given class, if there are others; a random sample might hold none of them."""
    given = np.flatnonzero(is_given)
    return given[:0] if len(given) == len(index) else given[stratified_rows(index[given], n_rows, seed)]


@dataclass(frozen=True, slots=True)
class _Pilot:
    """A regression over some of the landmarks, on some of the rows."""

    features: LandmarkMap
    found: StreamedSolution
    ridge: float

    @classmethod
    def fit(cls, problem: LandmarkProblem, landmarks: np.ndarray, rows: np.ndarray, seed: int) -> _Pilot:
        features = problem.landmark_map(landmarks)
        sums = problem.sums(features, rows)
        if problem.training.is_given.all():
            ridge, found = _refined_ridge(problem, features, sums, rows, seed)
        else:  # spread labels repeat the mistakes of what spread them, and cannot judge a ridge
            ridge = problem.mixture.ridge
            found = sums.solve(ridge, problem.mixture.constant)
        return cls(features, found, ridge)

    def leads(self, problem: LandmarkProblem, rows: np.ndarray) -> np.ndarray:
        """Return by how much the score of each row's class exceeds the best other one."""
        landmarks = self.features.mixture.landmarks
        dual = self.features.fold(self.found.coefficients).T
        mixture = problem.training.kernels, problem.mixture.weights
        shared = landmarks, *mixture, dual, self.found.intercept, problem.n_jobs
        return np.concatenate(list(problem.for_blocks(_leads_of_block, rows, *shared)))


def _leads_of_block(
    block: Rows,
    index: np.ndarray,
    weights: np.ndarray,
    landmarks: Rows,
    kernels: Sequence[Kernel],
    kernel_weights: np.ndarray,
    dual: np.ndarray,
    intercept: np.ndarray,
    n_jobs: int | None,
) -> np.ndarray:
    scores = expand_mixture(kernels, block, landmarks, kernel_weights, dual, n_jobs) + intercept
    own = np.arange(len(index)), index
    leading = scores[own]
    scores[own] = -np.inf
    return leading - scores.max(axis=1)


def _refined_ridge(
    problem: LandmarkProblem, features: LandmarkMap, sums: RidgeSums, rows: np.ndarray, seed: int
) -> tuple[float, StreamedSolution]:
    """Lower the ridge as long as the leave-one-out loss of some rows falls; return it with the solution.

    The search for kernel weights had a few hundred rows, and more rows need less of a ridge. With 1,000 landmarks this
    gained .002 of accuracy on Letter; on MNIST the ridge hardly matters.
    """
    positions = rows[stratified_rows(problem.training.index[rows], _RIDGE_ROWS, seed)]
    phi = np.concatenate([features.features(block) for _, block in problem.blocks(positions)])
    index, weights = problem.training.index[positions], problem.weights[positions]

    def attempt(ridge: float) -> tuple[float, float, StreamedSolution]:
        found = sums.solve(ridge, problem.mixture.constant)
        with single_threaded_blas():
            whitened = phi @ found.whitening.T.astype(phi.dtype)
        return _log_loss(found.leave_one_out(whitened, index, weights), index, weights), ridge, found

    best = attempt(problem.mixture.ridge)
    while best[1] / _RIDGE_STEP >= SMALLEST_RIDGE:
        tried = attempt(best[1] / _RIDGE_STEP)
        if tried[0] >= (1.0 - _LEAST_GAIN) * best[0]:
            break
        best = tried
    return best[1], best[2]


def _log_loss(scores: np.ndarray, index: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted mean log loss of the probabilities that suit the scores best."""
    calibration = fit_calibration(scores, index, weights)
    logits = calibration.temperature * calibration.bend(scores)
    losses = logsumexp(logits, axis=1) - logits[np.arange(len(index)), index]
    return float(np.average(losses, weights=weights))
