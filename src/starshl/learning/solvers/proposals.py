"""New hash functions for several bits, fitted side by side and proposed only if they cost no more than the old ones.

The SVM of a bit is solved on its active rows only: those with a coefficient or at the margin. Whether the solution
holds for all rows is seen when it is expanded over them, which has to be done anyway, and for all bits together, so
that each kernel is evaluated once. If it does not, the rows at fault become active, at once or in the next sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ._svm_loops import violation_of
from .objective import bit_objective, box, kernel_weights, penalty, squared_function_norms
from .problem import DescentState, KernelBank, Problem, SvmSolver
from .svm import DualSolution

SMALLEST_TOL = 1e-8  # of an SVM; below it rounding decides, not the solver
_MAX_ROUNDS = 30  # of solving, each with more active rows or a tighter tolerance
_ROUNDING_SLACK = 1e-12  # relative
# The last pass must end with weights and coefficients that belong together; in float32 that may cost a rounding error.
_LAST_PASS_SLACK = 1e-7
_SMALL_WEIGHT_CHANGE = 0.01  # of kernel weights; below it there is next to nothing left to gain
_EXPANSION_ERROR = 0.05  # of an expansion, as a share of the SVM tolerance
# What follows trades the size of an SVM for how often it is solved; the last pass holds for all rows whatever these are
# (docs/speed.md).
_ACTIVE_BEYOND_MARGIN = 0.05  # rows up to this far outside the margin are active
# Tests replace the next three, so that few rows are treated as many.
SAMPLE_ABOVE_ROWS = 1500  # up to this many rows, all are active at all times
MIN_JOINING_LIMIT = 4000  # rows that may become active in one step, even if few are
SAMPLE_SIZES = (750, 4000)  # smallest and largest sample on which the first kernel weights are learned
_MAX_WEIGHT_STEPS = 6  # of the kernel weights on a sample, which are only a start for those on all rows


@dataclass(frozen=True, slots=True)
class Proposal:
    """A hash function for one bit, and what it costs at the kernel weights it was fitted with."""

    coefficients: np.ndarray
    intercept: float
    scores: np.ndarray
    quadratic_forms: np.ndarray
    weights: np.ndarray
    violation: float
    value: float
    is_constant: bool = False


def propose(
    problem: Problem, state: DescentState, rows: np.ndarray, bits: Sequence[int], *, exact: bool, last: bool
) -> list[Proposal | None]:
    """Return a hash function for each bit, or None where none costs no more than the present one.

    More rows become active until a function costs no more and, in an exact search, until it holds on all rows. The
    last search tightens the tolerance, too.
    """
    proposals: dict[int, Proposal | None] = dict.fromkeys(bits)
    attempts = []
    for bit in bits:
        labels = state.codewords[state.assignments[rows], bit].astype(np.float64)
        if np.all(labels == labels[0]):
            proposals[bit] = _constant(labels[0], problem, state.weights[bit])
        else:
            attempts.append(_first_attempt(problem, state, rows, bit, labels))
    if np.isinf(state.penalty).all() and not problem.free.any():
        attempts = _learn_on_sample(problem, state, rows, attempts)
    if last:
        attempts = [_at_the_end(state, attempt) for attempt in attempts]
    slack = 1.0 + (_LAST_PASS_SLACK if last else _ROUNDING_SLACK)
    for _ in range(_MAX_ROUNDS):
        unfinished = []
        for attempt, proposal in zip(attempts, _try_all(problem, state, rows, attempts), strict=True):
            is_cheap = proposal.value <= attempt.allowed * slack
            holds = proposal.violation <= problem.svm.tol
            if is_cheap:
                proposals[attempt.bit] = proposal
            if ((last or not holds) and not is_cheap) or ((last or exact) and not holds):
                margins = attempt.labels * proposal.scores[rows]
                unfinished.append(harder(attempt, proposal.coefficients[rows], margins, tighter=last))
        attempts = [attempt for attempt in unfinished if attempt is not None]
        if not attempts:
            break
    return [proposals[bit] for bit in bits]


def quadratic_forms(expansions: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return c' K_m c for every kernel, given K_m c.

    Coefficients sum to zero, so centering changes nothing but the rounding of nearly constant kernels.
    """
    centered = expansions - expansions.mean(axis=1, keepdims=True)
    return np.maximum(0.0, centered @ coefficients)


def _first_attempt(problem: Problem, state: DescentState, rows: np.ndarray, bit: int, labels: np.ndarray) -> Attempt:
    """Go on from the function that the bit has now."""
    scores, start = state.scores[rows, bit], state.coefficients[bit, rows]
    allowed = bit_objective(labels * scores, problem.upper(rows), float(state.penalty[bit]))
    active = active_rows(start, labels * scores)
    if not active.any() or np.all(labels[active] == labels[active][0]):
        active |= labels != (labels[active][0] if active.any() else 0.0)  # an SVM needs rows of both labels
    return Attempt(bit, labels, start, state.weights[bit], active, problem.svm.tol, allowed)


def _at_the_end(state: DescentState, attempt: Attempt) -> Attempt:
    """Ask for a tighter tolerance at once where the weights barely moved, because there is little left to gain."""
    moved = np.abs(state.weights[attempt.bit] - state.used_weights[attempt.bit]).max()
    return replace(attempt, tol=attempt.tol / 10.0) if moved < _SMALL_WEIGHT_CHANGE else attempt


def _learn_on_sample(
    problem: Problem, state: DescentState, rows: np.ndarray, attempts: Sequence[Attempt]
) -> list[Attempt]:
    """Start all bits from kernel weights and coefficients of a sample of the rows, where both are cheap to learn.

    The weights of different bits are similar, so those of the first are a good start for the others.
    """
    chosen = sample_of(state.assignments[rows])
    if chosen is None or not attempts:
        return list(attempts)
    bank = problem.bank.take(rows[chosen])
    learn = partial(
        _learn, problem.svm, chosen, problem.upper(rows[chosen]), kernel_norm=problem.kernel_norm, tol=problem.tol
    )
    (first,) = problem.map(learn, bank, [(attempts[0], attempts[0].weights)])
    return [first, *problem.map(learn, bank, [(other, first.weights) for other in attempts[1:]])]


def _learn(
    svm: SvmSolver,
    chosen: np.ndarray,
    upper: np.ndarray,
    bank: KernelBank,
    task: tuple[Attempt, np.ndarray],
    *,
    kernel_norm: float,
    tol: float,
) -> Attempt:
    """Return an attempt that goes on from what a bank of the chosen rows teaches, started from some kernel weights."""
    attempt, weights = task
    labels = attempt.labels[chosen]
    if np.all(labels == labels[0]):
        return attempt
    everyone = np.ones(len(labels), dtype=bool)
    small = replace(attempt, labels=labels, start=np.zeros(len(labels)), active=everyone, weights=weights)
    small = learn_weights(svm, bank, upper, small, kernel_norm=kernel_norm, tol=tol)
    start = np.zeros(len(chosen))
    start[chosen] = small.start
    return replace(attempt, weights=small.weights, start=start, active=chosen)


def _try_all(problem: Problem, state: DescentState, rows: np.ndarray, attempts: Sequence[Attempt]) -> list[Proposal]:
    """Solve one SVM for each attempt and look at the result on all rows."""
    if not attempts:
        return []
    fit = partial(solve, problem.svm, problem.upper(rows), rows)
    solutions = list(problem.map(fit, problem.bank, attempts, lambda: problem.on_progress(state.n_iter, None)))
    coefficients = np.zeros((len(attempts), problem.bank.n_rows))
    coefficients[:, rows] = [solution.coefficients for solution in solutions]
    expansions = problem.bank.expand(coefficients, _EXPANSION_ERROR * min(attempt.tol for attempt in attempts))
    return [
        _evaluate(problem, rows, attempt, solution.intercept, *parts)
        for attempt, solution, *parts in zip(attempts, solutions, coefficients, expansions, strict=True)
    ]


def _evaluate(
    problem: Problem,
    rows: np.ndarray,
    attempt: Attempt,
    intercept: float,
    coefficients: np.ndarray,
    expansions: np.ndarray,
) -> Proposal:
    """Return the objective of one bit (paper Eq. 6) and all that goes with it."""
    weights, labels = attempt.weights, attempt.labels
    forms = quadratic_forms(expansions, coefficients)
    products = weights @ expansions
    scores = products + intercept
    upper = problem.upper(rows)
    value = bit_objective(labels * scores[rows], upper, penalty(squared_function_norms(forms, weights), weights))
    violation, _, _ = violation_of(labels - products[rows], coefficients[rows], *box(labels, upper))
    return Proposal(coefficients, intercept, scores, forms, weights, float(max(violation, 0.0)), value)


def _constant(label: float, problem: Problem, weights: np.ndarray) -> Proposal:
    """Return the constant function for rows of one label: it costs nothing and needs no SVM."""
    n_rows = problem.bank.n_rows
    forms = np.zeros(problem.bank.n_kernels)
    return Proposal(np.zeros(n_rows), label, np.full(n_rows, label), forms, weights, 0.0, 0.0, is_constant=True)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One bit that needs a function costing at most ``allowed``: a start, the rows to look at and how exactly."""

    bit: int
    labels: np.ndarray
    start: np.ndarray
    weights: np.ndarray
    active: np.ndarray
    tol: float
    allowed: float


def active_rows(coefficients: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Mark the rows with a coefficient and those inside the margin or near it; if these are many, evenly spaced ones.

    The worst ones alone would not do: a function fitted to outliers costs more on all other rows than the old one.
    """
    if len(margins) <= SAMPLE_ABOVE_ROWS:
        return np.ones(len(margins), dtype=bool)
    active = coefficients != 0.0
    n_supporting = int(active.sum())
    others = np.flatnonzero(~active & (margins < 1.0 + _ACTIVE_BEYOND_MARGIN))
    n_joining = max(3 * n_supporting, MIN_JOINING_LIMIT)
    if len(others) > n_joining:
        others = others[np.linspace(0, len(others) - 1, n_joining).astype(np.int64)]
    active[others] = True
    return active


def sample_of(groups: np.ndarray) -> np.ndarray | None:
    """Mark a quarter of the rows, up to a limit, evenly in each group and one of each at least; None for few rows."""
    if len(groups) <= SAMPLE_ABOVE_ROWS:
        return None
    step = len(groups) / np.clip(len(groups) // 4, *SAMPLE_SIZES)
    order = np.argsort(groups, kind="stable")
    place = np.arange(len(groups)) - np.searchsorted(groups[order], groups[order])
    chosen = np.empty(len(groups), dtype=bool)
    chosen[order] = (place == 0) | (np.floor(place / step) > np.floor((place - 1) / step))
    return chosen


def harder(attempt: Attempt, coefficients: np.ndarray, margins: np.ndarray, *, tighter: bool) -> Attempt | None:
    """Return the next attempt after one that was not good enough, or None if nothing is left to be tried.

    More active rows come first, then a tighter tolerance if that is wanted.
    """
    active = attempt.active | active_rows(coefficients, margins)
    if np.any(active & ~attempt.active):
        return replace(attempt, start=coefficients, active=active)
    if tighter and attempt.tol > SMALLEST_TOL:
        return replace(attempt, start=coefficients, tol=max(attempt.tol / 10.0, SMALLEST_TOL))
    return None


def solve(svm: SvmSolver, upper: np.ndarray, rows: np.ndarray, bank: KernelBank, attempt: Attempt) -> DualSolution:
    """Solve one SVM on its active rows, aiming a little beyond the margin; ``rows`` says where they are in the bank.

    Stopped at a tolerance, a solution leaves rows inside the margin by about as much, and at a large C these cost more
    than all else. With half of the tolerance spent on a wider margin they cost nothing. The SVM of margin s is that of
    margin 1 with C / s, multiplied by s.
    """
    active = attempt.active
    margin = 1.0 + attempt.tol / 4.0
    inside, upper = rows[active], upper[active]
    with bank.scratch.matrix(len(inside), bank.dtype) as K:
        bank.combine(attempt.weights, inside, K)
        solution = svm.solve(
            K, attempt.labels[active], upper / margin, start=attempt.start[active] / margin, tol=attempt.tol / 2.0
        )
    coefficients = np.zeros(len(active))
    coefficients[active] = np.clip(margin * solution.coefficients, -upper, upper)
    return replace(solution, coefficients=coefficients, intercept=margin * solution.intercept)


def learn_weights(
    svm: SvmSolver, bank: KernelBank, upper: np.ndarray, attempt: Attempt, *, kernel_norm: float, tol: float
) -> Attempt:
    """Solve an SVM on all rows of a bank in turn with its kernel weights; return where to go on from."""
    rows = np.arange(bank.n_rows)
    for _ in range(_MAX_WEIGHT_STEPS):
        coefficients = solve(svm, upper, rows, bank, attempt).coefficients
        norms = squared_function_norms(bank.quadratic_forms(coefficients), attempt.weights)
        weights = kernel_weights(norms, kernel_norm, attempt.weights)
        moved = np.abs(weights - attempt.weights).max()
        attempt = replace(attempt, weights=weights, start=coefficients)
        if moved <= tol:
            break
    return attempt
