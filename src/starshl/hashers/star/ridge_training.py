"""From checked input to class scores: the steps of ``StarRidge.fit``, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import softmax

from ..._common.labels import Labels
from ..._common.threads import single_threaded_blas
from ..._common.validation import check_choice, check_integer, check_n_jobs, check_number
from ..._common.words import counted
from ...learning.graphs.label_spreading import FEWEST_TELLING, Spread
from ...learning.graphs.plain_kernel import LABEL_RIDGE
from ...learning.kernels.banks import Bank, GramBank, MemoryPlan, compute_grams
from ...learning.kernels.choice import KernelsLike, fit_kernels, is_precomputed
from ...learning.kernels.kernel import Kernel
from ...learning.kernels.views import ViewsLike, check_views, describe_views, view_shares
from ...learning.solvers.calibration import USUAL_CURVATURE, Calibration, fit_calibration
from ...learning.solvers.discriminant import fit_discriminant
from ...learning.solvers.iterated_ridge import IteratedSolution, solve_by_steps
from ...learning.solvers.leave_one_out import Mixture, fit_mixture, leave_one_out_scores, one_hot, start_mixture
from ...learning.solvers.ridge import RidgeFactor
from .expansion import Expansion
from .samples import SAMPLE_TYPES, Samples

# Tests replace it to compare both ways.
ITERATED_ROWS = 10_000  # from which a factorization takes longer than steps of conjugate gradients
_ROWS_PER_CLASS = 60  # of fewer, it does not: steps take longer, the more classes there are
_SEARCH_ROWS = 700  # from which weights, ridge and temperature are learned; more rows change precision by .001
_LEAST_LIKELY = 1e-6  # a class whose probability has a logarithm
_STARTING_LABELS = 50  # labels at which a search over few of them counts as much as its start


@dataclass(frozen=True, slots=True, kw_only=True)
class RidgeSettings:
    """The parameters of :class:`starshl.StarRidge` that training reads, each within its range."""

    n_bits: int
    kernels: KernelsLike
    views: ViewsLike | None
    n_codewords: int | None
    head: Literal["posterior", "linear"]
    unlabeled: Literal["graph", "ignore"]
    max_exact_rows: int
    n_landmarks: int | None
    n_jobs: int | None
    max_memory: float | None
    verbose: int

    def __post_init__(self) -> None:
        check_integer(self.n_bits, "n_bits", low=1)
        check_choice(self.head, "head", ("posterior", "linear"))
        check_choice(self.unlabeled, "unlabeled", ("graph", "ignore"))
        check_integer(self.max_exact_rows, "max_exact_rows", low=1)
        check_n_jobs(self.n_jobs)
        if self.n_landmarks is not None:
            check_integer(self.n_landmarks, "n_landmarks", low=1)
        if self.n_codewords is not None:
            check_integer(self.n_codewords, "n_codewords", low=1)
        if self.max_memory is not None:
            check_number(self.max_memory, "max_memory", low=0, strict=True)
        if self.views is not None:
            check_views(self.views)

    def is_exact(self, n_rows: int) -> bool:
        """Tell whether a fit of so many rows factorizes their kernel matrix."""
        return is_precomputed(self.kernels) or n_rows <= self.max_exact_rows

    @property
    def memory_plan(self) -> MemoryPlan:
        return MemoryPlan(self.max_memory, self.n_jobs, stores_distances=False)


@dataclass(frozen=True, slots=True)
class Targets:
    """What each row of X is fitted to.

    Parameters
    ----------
    index : array of shape (n_rows,), the class of each row, -1 where a row is left out of the fit
    ridge_scale : array of shape (n_rows,), the multiplier of its ridge: 1 is a labeled row, more is a row that is
        trusted less; 1 / ridge_scale is its weight in the losses; see :meth:`RidgeTrainingSet.ridges`
    note : one line for ``choice_``
    is_given : bool array of shape (n_rows,), whether the class is a given label; None: all of them are
    temperature_of : what returns the temperature of leave-one-out scores where some classes were not given
    spread : what is known of the rows of the fit, if labels were spread to some of them
    """

    index: np.ndarray
    ridge_scale: np.ndarray
    note: str
    is_given: np.ndarray | None = None
    temperature_of: Callable[[np.ndarray], float] | None = None
    spread: Spread | None = None

    @property
    def rows(self) -> np.ndarray:
        """Where the rows of the fit stand among all rows."""
        return np.flatnonzero(self.index >= 0)

    def only(self, rows: np.ndarray) -> Targets:
        """Return the targets of some rows, with all others left out."""
        index = np.full_like(self.index, -1)
        index[rows] = self.index[rows]
        return replace(self, index=index)


def label_targets(labels: Labels, weights: np.ndarray) -> Targets:
    """Return the targets of labeled rows alone: a row of weight w has 1 / w of the ridge."""
    used = labels.labeled & (weights > 0)
    index = np.where(used, labels.index, -1)
    ridge_scale = np.divide(1.0, weights, out=np.ones_like(weights), where=used)
    n_unlabeled = int(np.sum(~labels.labeled & (weights > 0)))
    were = "was" if n_unlabeled == 1 else "were"
    note = f"{counted(n_unlabeled, 'unlabeled row')} {were} left out" if n_unlabeled else ""
    return Targets(index, ridge_scale, note)


@dataclass(frozen=True, slots=True)
class RidgeTrainingSet:
    """The rows of a fit: samples, fitted kernels between them, class indices and ridge multipliers."""

    samples: Samples
    kernels: list[Kernel]
    index: np.ndarray
    ridge_scale: np.ndarray
    n_classes: int
    is_given: np.ndarray

    @classmethod
    def take(
        cls, samples: Samples, kernels: str | Sequence[Kernel], targets: Targets, n_classes: int
    ) -> RidgeTrainingSet:
        """Return the rows that have a target, with kernels fitted on them."""
        rows = targets.rows
        chosen = samples if len(rows) == len(samples) else samples.take(rows)
        scale = targets.ridge_scale[rows]
        fitted = [] if isinstance(kernels, str) else fit_kernels(kernels, chosen.values, 1.0 / scale)
        is_given = np.ones(len(rows), dtype=bool) if targets.is_given is None else targets.is_given[rows]
        return cls(chosen, fitted, targets.index[rows], scale, n_classes, is_given)

    @property
    def weights(self) -> np.ndarray:
        """Weights of the rows in the losses."""
        return 1.0 / self.ridge_scale

    def ridges(self, mixture: Mixture) -> np.ndarray:
        """Return the ridge of every row, in units of the kernels' diagonal.

        The multiplier of a row whose class was not given refers to a ridge of at least .1, that of the plain kernel
        which gave the class: a smaller ridge says that labels are right, and nothing about spread labels.
        """
        return np.where(self.is_given, mixture.ridge, max(mixture.ridge, LABEL_RIDGE)) * self.ridge_scale


@dataclass(frozen=True, slots=True)
class RidgeSolution:
    """Class scores as kernel expansions over the rows of the fit, and what they are without each row itself.

    Parameters
    ----------
    mixture : kernel weights, constant, ridge
    dual : array of shape (n_classes, n_rows)
    intercept : array of shape (n_classes,)
    scores : array of shape (n_rows, n_classes), leave-one-out
    landmarks : array of rising positions among the rows of the fit that the expansions are over, None if over all
    stands_for : array of shape (n_rows,), how many rows each one stands for where probabilities are learned from these
        scores; None: itself
    shrinkage : that of the discriminant analysis whose scores these are, None if there was none
    n_steps : number of steps of conjugate gradients, 0 if the solution is that of a factorization
    gram : array of shape (n_rows, n_rows), the kernel and the constant between the rows of the fit, if steps left it
    """

    mixture: Mixture
    dual: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray
    landmarks: np.ndarray | None = None
    stands_for: np.ndarray | None = None
    shrinkage: float | None = None
    n_steps: int = 0
    gram: np.ndarray | None = None

    def weights(self, training: RidgeTrainingSet) -> np.ndarray:
        """Return the weights of rows where probabilities are learned."""
        return training.weights if self.stands_for is None else training.weights * self.stands_for

    def expansion(self, samples: Samples, training: RidgeTrainingSet, rows: np.ndarray) -> Expansion:
        """Return the functions of an exact solution over these rows of the samples."""
        return Expansion(
            samples_of=SAMPLE_TYPES[samples.kind],
            kernels=training.kernels,
            weights=self.mixture.weights,
            support=rows,
            support_samples=samples.support_samples(rows),
            coefficients=self.dual,
            intercept=self.intercept,
        )


def solve_exactly(training: RidgeTrainingSet, plan: MemoryPlan, seed: int) -> RidgeSolution:
    """Return the solution of kernel ridge regression on all rows.

    Few rows take one Cholesky factorization. From 10,000 rows on, conjugate gradients find the same coefficients, up to
    their tolerance; leave-one-out scores then are approximate.
    """
    bank = training.samples.bank(training.kernels, plan)
    mixture = search_mixture(training, bank, plan, seed)
    try:
        return _solve(training, bank, mixture, seed)
    except np.linalg.LinAlgError:
        # Rounding errors of float32 kernels can exceed the ridge, most of all on few features.
        bank = training.samples.bank(training.kernels, replace(plan, in_float64=True))
        return _solve(training, bank, mixture, seed)


def _solve(training: RidgeTrainingSet, bank: Bank, mixture: Mixture, seed: int) -> RidgeSolution:
    gram, ridges = bank.combine(mixture.weights), training.ridges(mixture)
    gram += gram.dtype.type(mixture.constant)
    targets = one_hot(training.index, training.n_classes, gram.dtype)
    found = None
    if len(gram) >= max(ITERATED_ROWS, _ROWS_PER_CLASS * training.n_classes):
        found = solve_by_steps(gram, ridges, targets, seed)
    left = None if found is None else gram
    if found is None:
        factor = RidgeFactor(gram, ridges, overwrite=True)
        targets = targets.astype(factor.dtype, copy=False)
        found = IteratedSolution(factor.solve(targets), factor.inverse_diagonal(), n_steps=0)
    scores = leave_one_out_scores(targets, found.dual, found.inverse_diagonal)
    intercept = mixture.constant * found.dual.sum(axis=0, dtype=np.float64)
    return RidgeSolution(mixture, found.dual.T, intercept, scores, n_steps=found.n_steps, gram=left)


def discriminate(training: RidgeTrainingSet, solution: RidgeSolution) -> RidgeSolution:
    """Return the solution whose scores are discriminants of the given ones, where that tells the classes better apart.

    They are learned from given labels alone: the leave-one-out scores of other rows repeat the mistakes of the labels
    that were spread to them.
    """
    given = training.is_given
    if not given.any():
        return solution
    with single_threaded_blas():
        found = fit_discriminant(solution.scores[given], training.index[given], solution.weights(training)[given])
    if found is None:
        return solution
    if given.all():
        scores = found.crossed
    else:
        scores = (solution.scores @ found.matrix + found.shift).astype(solution.scores.dtype)
        scores[given] = found.crossed
    return replace(
        solution,
        dual=found.matrix.T.astype(solution.dual.dtype) @ solution.dual,
        intercept=solution.intercept @ found.matrix + found.shift,
        scores=scores,
        shrinkage=found.shrinkage,
    )


def calibrate(training: RidgeTrainingSet, targets: Targets, solution: RidgeSolution) -> Calibration:
    """Return how leave-one-out scores become probabilities, learned from the labels of all rows."""
    if targets.temperature_of is None:
        return fit_calibration(solution.scores, training.index, solution.weights(training))
    bent = Calibration(1.0, USUAL_CURVATURE, np.zeros(training.n_classes))
    return replace(bent, temperature=targets.temperature_of(bent.bend(solution.scores)))


def without_own_label(
    targets: Targets, solution: RidgeSolution, calibration: Calibration, head: Literal["posterior", "linear"]
) -> np.ndarray:
    """Return scores of the rows of the fit that they would have without their own labels, given or spread.

    Where labels were spread, these are scores of probabilities. The fit to spread labels has seen the given ones, so
    only the blend that spread them knows what others say of these rows. Of the other rows, both know something: they
    get the geometric mean of both probabilities, as sure on average as the blend is. Bits of a linear head are those of
    the fit.
    """
    spread = targets.spread
    if spread is None or targets.temperature_of is None:
        return solution.scores
    fitted = softmax(calibration.temperature * calibration.bend(solution.scores), axis=1)
    both = 0.5 * np.log(np.maximum(fitted, _LEAST_LIKELY) * np.maximum(spread.probabilities, _LEAST_LIKELY))
    likely = softmax(targets.temperature_of(both) * both, axis=1)
    likely[spread.is_given] = spread.left_out
    scores = calibration.scores_of(np.maximum(likely, _LEAST_LIKELY))
    if head == "linear":
        scores[~spread.is_given] = solution.scores[~spread.is_given]
    return scores


def describe(training: RidgeTrainingSet, targets: Targets, solution: RidgeSolution, calibration: Calibration) -> str:
    """Return the line that says what a fit chose."""
    mixture, n_rows = solution.mixture, len(training.index)
    rows = f"{counted(n_rows, 'row')} of {counted(training.n_classes, 'class', 'classes')}"
    if solution.landmarks is not None:
        landmarks = counted(len(solution.landmarks), "landmark")
        rows += f", more than max_exact_rows and so approximated over {landmarks}"
    if solution.n_steps:
        rows += f", in {solution.n_steps} steps of conjugate gradients with leave-one-out scores that are approximate"
    parts = [
        rows,
        f"{np.count_nonzero(mixture.weights)} of {counted(len(mixture.weights), 'kernel')}",
        *describe_views(view_shares(training.kernels, mixture.weights) if training.kernels else {}),
        f"ridge {mixture.ridge:.2g}",
        *(
            []
            if solution.shrinkage is None
            else [f"discriminant analysis of the scores, shrunk by {solution.shrinkage:g}"]
        ),
        f"temperature {calibration.temperature:.3g}",
        _how_right(training, targets, solution, calibration),
    ]
    return "; ".join([*parts, targets.note] if targets.note else parts)


def _how_right(training: RidgeTrainingSet, targets: Targets, solution: RidgeSolution, calibration: Calibration) -> str:
    if targets.spread is not None:
        found = targets.spread.found
        if len(found) < FEWEST_TELLING:
            return "too few labels to say how many others are right"
        return f"accuracy {found.mean():.3f} on {len(found):,} given labels, each left out"
    predicted = calibration.bend(solution.scores).argmax(axis=1)
    accuracy = float(np.average(predicted == training.index, weights=solution.weights(training)))
    what = "accuracy" if training.is_given.all() else "agreement with the clusters"
    return f"leave-one-out {what} {accuracy:.3f}"


def search_mixture(training: RidgeTrainingSet, bank: Bank | None, plan: MemoryPlan, seed: int) -> Mixture:
    """Return kernel weights, ridge and temperature, learned from at most 700 rows.

    ``bank`` is that of all rows, if there is one: on few rows it serves the search, too. Rows whose class was not given
    do not take part: they repeat the mistakes of the kernel that gave it.
    """
    given = np.flatnonzero(training.is_given)
    rows = given if len(given) else np.arange(len(training.index))
    rows = rows[stratified_rows(training.index[rows], _SEARCH_ROWS, seed)]
    if bank is None or len(rows) < len(training.index):
        bank = training.samples.take(rows).bank(training.kernels, plan)
    grams = bank.grams if isinstance(bank, GramBank) else compute_grams(bank.kernels, bank.rows, plan.n_jobs)
    if len(given) == 0:
        return start_mixture(grams)
    index = training.index[rows]
    with single_threaded_blas():
        found = fit_mixture(grams, index, training.n_classes, training.ridge_scale[rows], training.weights[rows])
    return found if training.is_given.all() else _toward_start(found, start_mixture(grams), index)


def _toward_start(found: Mixture, start: Mixture, index: np.ndarray) -> Mixture:
    """Return a mixture between the start of the search and its end, nearer to the latter the more labels there are.

    A label tells nothing if it is the only one of its class: without it, the class cannot win.
    """
    n_telling = int(np.sum(np.bincount(index)[index] > 1))
    share = n_telling / (n_telling + _STARTING_LABELS)
    return replace(
        found,
        weights=share * found.weights + (1 - share) * start.weights,
        constant=share * found.constant + (1 - share) * start.constant,
        ridge=float(found.ridge**share * start.ridge ** (1 - share)),
    )


def stratified_rows(index: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Return at most ``n_rows`` random rows, from each class in proportion, in rising order."""
    if len(index) <= n_rows:
        return np.arange(len(index))
    shuffled = np.random.RandomState(seed).permutation(len(index))
    by_class = shuffled[np.argsort(index[shuffled], kind="stable")]
    steps = (np.arange(n_rows) * len(index)) // n_rows
    return np.sort(by_class[steps])
