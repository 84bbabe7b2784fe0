"""Kernel ridge regression on more rows than a kernel matrix can have: over landmarks, block by block of rows.

Half of the landmarks are random rows. A pilot fit on them shows which ridge suits and where classes meet, and the other
half is drawn there: on MNIST, 2,000 landmarks of this kind err as rarely as 4,000 random ones. Blocks of rows can be
the tasks of an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from ..._common.engine import Engine, current_engine, scatter
from ..._common.progress import row_progress
from ..._common.threads import single_threaded_blas, tiles
from ..._common.validation import Rows
from ...learning.kernels.expansion import MixtureExpansion
from ...learning.kernels.kernel import Kernel
from ...learning.kernels.landmarks import LandmarkMap
from ...learning.solvers.calibration import fit_calibration
from ...learning.solvers.leave_one_out import SMALLEST_RIDGE, Mixture
from ...learning.solvers.ridge import RidgeSums, StreamedSolution
from .ridge_training import RidgeSettings, RidgeSolution, RidgeTrainingSet, Targets, search_mixture, stratified_rows
from .samples import Samples

DEFAULT_LANDMARKS = 3000  # on MNIST, 8,000 take 4.5 times as long for .0013 of P@10
BLOCK_ROWS = 4096  # whose features are in memory together
_TASK_BLOCKS = 8  # of 4,096 rows that one task sums up
_KERNEL_ROWS = 5000  # on which kernels are fitted
_BYTES_PER_PAIR = 40  # of landmarks, at the peak: three matrices in float64 and two in float32
_PILOT_ROWS = 20_000  # at most
_RIDGE_ROWS = 4096  # of the pilot fit, by whose leave-one-out loss ridges are compared
# Tests replace it by infinity to keep the ridge of the search.
RIDGE_STEP = 10**0.5  # half a power of ten: the loss is flat around its minimum
_LEAST_GAIN = 1e-3  # share of the loss by which a lower ridge must be better: without a gain, more ridge is safer
_POOL_ROWS = 100_000  # among which rows between classes are looked for
# Landmarks are drawn from this share of the pool, within limits that are multiples of their number. On 60,000 rows of
# MNIST, shares of .05 and .2 were .001 and .002 worse; on 15,000 rows, .4 was .0035 worse.
_HARDEST_SHARE, _CANDIDATES = 0.1, (1.5, 6.0)
_FEWEST_JUDGES = 20  # rows that are no landmarks, from which probabilities are learned


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
        problem = RemoteProblem.of(problem, engine)
    landmarks, problem, stands_for = choose_landmarks(problem, n_landmarks, seed)
    return training, replace(problem.solve(landmarks), stands_for=stands_for)


def _require_memory(n_landmarks: int, budget: float) -> None:
    n_bytes = _BYTES_PER_PAIR * n_landmarks**2
    if n_bytes > budget:
        raise MemoryError(
            f"A fit with {n_landmarks:,} landmarks takes {n_bytes / 2**30:.2g} GiB, and {budget / 2**30:.2g} GiB are "
            "allowed or free. Use a smaller n_landmarks or a larger max_memory."
        )


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
        rows = self.training.samples.support_samples(self.rows[landmarks])
        return LandmarkMap(self.training.kernels, self.mixture.weights, rows, n_jobs=self.n_jobs)

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


def choose_landmarks(
    problem: LandmarkProblem, n_landmarks: int, seed: int
) -> tuple[np.ndarray, LandmarkProblem, np.ndarray | None]:
    """Return the positions of landmarks among the rows of the fit, the problem with its ridge, and what rows stand for.

    Half of the landmarks are random rows and, where labels are few, given ones. The others are drawn from the rows
    whose own class leads by least, or trails by most, in the pilot fit. If all rows are landmarks, the ridge stays.

    A landmark that is left out has lost the row that its own feature was for, and gets wilder scores than new rows do.
    So the last array is how many rows each row stands for where probabilities are learned: landmarks for none, and the
    hard rows that were not drawn for all hard ones. It is None, and all rows stand for themselves, where hardly any row
    is no landmark, or some labels were not given.
    """
    index, n_random = problem.training.index, -(-n_landmarks // 2)
    if n_landmarks == len(index) or problem.training.n_classes == 1:
        return stratified_rows(index, n_landmarks, seed), problem, None
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
    landmarks = np.sort(np.concatenate([first, more]))
    stands_for = None
    if problem.training.is_given.all() and len(index) - n_landmarks >= _FEWEST_JUDGES:
        stands_for = np.ones(len(index))
        stands_for[hardest] = len(hardest) / (len(hardest) - n_more)
        stands_for[landmarks] = 0.0
    return landmarks, replace(problem, mixture=replace(problem.mixture, ridge=pilot.ridge)), stands_for


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
    scores = MixtureExpansion(kernels, landmarks, kernel_weights, dual)(block, n_jobs) + intercept
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
    while best[1] / RIDGE_STEP >= SMALLEST_RIDGE:
        tried = attempt(best[1] / RIDGE_STEP)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteProblem(LandmarkProblem):
    """A regression whose rows are read by the tasks of an engine; ``samples_handle`` stands for all samples."""

    engine: Engine
    samples_handle: Any

    @classmethod
    def of(cls, problem: LandmarkProblem, engine: Engine) -> Self:
        """Return the same problem with its blocks as tasks."""
        same = {each.name: getattr(problem, each.name) for each in fields(LandmarkProblem)}
        return cls(**same, engine=engine, samples_handle=scatter(engine, problem.training.samples))

    def for_blocks(self, function: Callable[..., np.ndarray], rows: np.ndarray, *shared: Any) -> Iterator[np.ndarray]:
        """Yield what a function returns for the blocks of some rows of the fit, in order; several blocks are a task."""
        there = scatter(self.engine, shared)
        return self.engine.map(partial(_apply, function), self._pieces(rows), self.samples_handle, there)

    def sums(
        self, features: LandmarkMap, rows: np.ndarray, report: Callable[[int], None] = lambda n_read: None
    ) -> RidgeSums:
        """Return what a regression on some rows of the fit needs to know of them."""
        landmark_map = self._submit_map(features.mixture.landmarks)
        sums: RidgeSums = self.engine.fetch(self._total(landmark_map, rows, report))
        return sums

    def solve(self, landmarks: np.ndarray) -> RidgeSolution:
        """Return the solution on all rows, with leave-one-out scores."""
        engine, everything = self.engine, np.arange(len(self.rows))
        features = self._submit_map(self.training.samples.support_samples(self.rows[landmarks]))
        with self.progress(landmarks, "learning") as report:
            sums = self._total(features, everything, report)
        found = engine.submit(_solved, sums, self.mixture.ridge, self.mixture.constant)
        del sums
        dual, intercept, judge = engine.fetch(engine.submit(_folded, features, found))
        whitened = engine.submit(_whitened, features, found)
        del features, found
        function, there = partial(_apply_to_pieces, scores_without_themselves), scatter(engine, judge)
        left_out = engine.map(function, self._pieces(everything), self.samples_handle, whitened, there)
        return RidgeSolution(self.mixture, dual, intercept, self.joined(left_out, landmarks), landmarks)

    def _submit_map(self, landmarks: Rows) -> Any:
        return self.engine.submit(_landmark_map, self.training.kernels, self.mixture.weights, landmarks)

    def _total(self, features: Any, rows: np.ndarray, report: Callable[[int], None]) -> Any:
        function = partial(_sums_of, self.training.n_classes)
        pieces = self._pieces(rows)
        return self.engine.total(
            function, pieces, self.samples_handle, features, report=lambda piece: report(len(piece))
        )

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


def _apply(function: Callable[..., np.ndarray], piece: Piece, samples: Samples, shared: tuple[Any, ...]) -> np.ndarray:
    return _apply_to_pieces(function, piece, samples, *shared)


def _apply_to_pieces(function: Callable[..., np.ndarray], piece: Piece, samples: Samples, *shared: Any) -> np.ndarray:
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
