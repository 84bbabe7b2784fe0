"""New hash functions for several bits, fitted side by side and proposed only if they cost no more than the old ones.

The SVM of a bit is solved on its active rows only: those with a coefficient or at the margin. Whether the solution
holds for all rows is seen when it is expanded over them, which has to be done anyway, and for all bits together, so
that each kernel is evaluated once. Only the last pass insists; between sweeps, rows at fault are active next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._threads import run_all
from ._svm_loops import violation_of
from .kernel_weights import kernel_weights
from .result import DualSolution

if TYPE_CHECKING:
    from .block_descent import Problem, State

__all__ = ["Proposal", "propose", "quadratic_forms"]

_TIGHTEST = 1e-8  # SVM tolerance beyond which rounding, not the solver, decides
_ROUNDS = 20  # of the last pass, each with more active rows or a tighter tolerance
_ROUNDING = 1e-12
# The last pass must end with weights and coefficients that belong together; in float32 that may cost a rounding error.
_LAST_SLACK = 1e-7
_NEAR = 0.05  # beyond the margin, up to which a row is active
_FEW = 1500  # rows that are all active from the start
_FIRST_SHARE = 3  # of more rows, one in three is active at first
_WEIGHT_STEPS = 6  # of the kernel weights on these rows, at most
_EXPANSION_ERROR = 0.02  # of an expansion, as a share of the SVM tolerance


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


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One bit that needs a function costing at most ``allowed``: a start, the rows to look at and how exactly."""

    bit: int
    labels: np.ndarray
    start: np.ndarray
    weights: np.ndarray
    active: np.ndarray
    tol: float
    allowed: float
    learns_weights: bool = False


def propose(
    problem: Problem, state: State, rows: np.ndarray, bits: Sequence[int], *, persistent: bool
) -> list[Proposal | None]:
    """Return a hash function for each bit, or None where none was found that costs no more than the present one.

    A persistent search goes on with more active rows and a tighter tolerance until the SVM holds on all rows, too.
    """
    proposals: dict[int, Proposal | None] = dict.fromkeys(bits)
    attempts = []
    for bit in bits:
        labels = state.codewords[state.assignments[rows], bit].astype(np.float64)
        if np.all(labels == labels[0]):
            proposals[bit] = _constant(labels[0], problem, state.weights[bit])
        else:
            attempts.append(_first_attempt(problem, state, rows, bit, labels))
    slack = 1.0 + (_LAST_SLACK if persistent else _ROUNDING)
    for _ in range(_ROUNDS if persistent else 1):
        found = _try_all(problem, state, rows, attempts)
        unfinished = []
        for attempt, proposal in zip(attempts, found, strict=True):
            if proposal.value <= attempt.allowed * slack:
                proposals[attempt.bit] = proposal
                is_done = proposal.violation <= problem.svm.tol
            else:
                is_done = False
            if not is_done:
                unfinished.append(_harder(attempt, proposal, rows))
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


def _first_attempt(problem: Problem, state: State, rows: np.ndarray, bit: int, labels: np.ndarray) -> _Attempt:
    scores, start = state.scores[rows, bit], state.coefficients[bit, rows]
    is_first = np.isinf(state.penalty[bit])
    if len(rows) <= _FEW:
        active = np.ones(len(rows), dtype=bool)
    elif is_first:
        active = _some_of_each(state.assignments[rows])
    else:
        active = (start != 0.0) | (labels * scores < 1.0 + _NEAR)
    allowed = _hinge_cost(problem, rows, labels, scores) + state.penalty[bit]
    learns_weights = is_first and not active.all()
    return _Attempt(bit, labels, start, state.weights[bit], active, problem.svm.tol, allowed, learns_weights)


def _some_of_each(groups: np.ndarray) -> np.ndarray:
    """Mark one row in three of each group, and the first of each."""
    order = np.argsort(groups, kind="stable")
    first_of_group = np.searchsorted(groups[order], groups[order])
    chosen = np.empty(len(groups), dtype=bool)
    chosen[order] = (np.arange(len(groups)) - first_of_group) % _FIRST_SHARE == 0
    return chosen


def _harder(attempt: _Attempt, proposal: Proposal, rows: np.ndarray) -> _Attempt | None:
    """Return the next attempt after one that was not good enough, or None if nothing is left to be tried."""
    at_fault = attempt.labels * proposal.scores[rows] < 1.0 + _NEAR
    active = attempt.active | at_fault
    tol = attempt.tol if np.any(active & ~attempt.active) else attempt.tol / 10.0
    if tol < _TIGHTEST:
        return None
    return replace(attempt, start=proposal.coefficients[rows], active=active, tol=tol)


def _try_all(problem: Problem, state: State, rows: np.ndarray, attempts: Sequence[_Attempt]) -> list[Proposal]:
    """Solve one SVM for each attempt and look at the result on all rows."""
    if not attempts:
        return []
    tasks = [partial(_fit, problem, state, rows, attempt) for attempt in attempts]
    solved = run_all(tasks, problem.n_jobs)
    coefficients = np.zeros((len(attempts), problem.bank.n_rows))
    for own, (attempt, solution) in zip(coefficients, solved, strict=True):
        own[rows[attempt.active]] = solution.coefficients
    expansions = problem.bank.expand(coefficients, _EXPANSION_ERROR * min(attempt.tol for attempt in attempts))
    return [
        _evaluate(problem, rows, attempt, solution.intercept, *parts)
        for (attempt, solution), *parts in zip(solved, coefficients, expansions, strict=True)
    ]


def _fit(problem: Problem, state: State, rows: np.ndarray, attempt: _Attempt) -> tuple[_Attempt, DualSolution]:
    """Solve one SVM; on a sample of the rows, where that is cheap, in turn with its kernel weights."""
    solution = _solve(problem, rows, attempt)
    for _ in range(_WEIGHT_STEPS if attempt.learns_weights else 0):
        forms = problem.bank.quadratic_forms(solution.coefficients, rows[attempt.active])
        weights = kernel_weights(attempt.weights**2 * forms, problem.kernel_norm, attempt.weights)
        if np.abs(weights - attempt.weights).max() <= problem.tol:
            break
        start = np.zeros(len(rows))
        start[attempt.active] = solution.coefficients
        attempt = replace(attempt, weights=weights, start=start)
        solution = _solve(problem, rows, attempt)
    problem.on_progress(state.n_iter, None)
    return attempt, solution


def _solve(problem: Problem, rows: np.ndarray, attempt: _Attempt) -> DualSolution:
    """Solve one SVM on its active rows, aiming a little beyond the margin.

    Stopped at a tolerance, a solution leaves rows inside the margin by about as much, and at a large C these cost more
    than all else. With half of the tolerance spent on a wider margin they cost nothing. The SVM of margin s is that of
    margin 1 with C / s, multiplied by s.
    """
    active = attempt.active
    inside = rows[active]
    margin = 1.0 + attempt.tol / 4.0
    upper = problem.C * problem.cost[inside]
    bank = problem.bank
    with bank.scratch.matrix(len(inside), bank.dtype, "Use fewer rows, float32 rows or fewer threads (n_jobs).") as K:
        bank.combine(attempt.weights, inside, K)
        solution = problem.svm.solve(
            K, attempt.labels[active], upper / margin, start=attempt.start[active] / margin, tol=attempt.tol / 2.0
        )
    return replace(
        solution,
        coefficients=np.clip(margin * solution.coefficients, -upper, upper),
        intercept=margin * solution.intercept,
    )


def _evaluate(
    problem: Problem,
    rows: np.ndarray,
    attempt: _Attempt,
    intercept: float,
    coefficients: np.ndarray,
    expansions: np.ndarray,
) -> Proposal:
    """Return the objective of one bit (paper Eq. 6) and all that goes with it."""
    weights, labels = attempt.weights, attempt.labels
    forms = quadratic_forms(expansions, coefficients)
    products = weights @ expansions
    scores = products + intercept
    value = _hinge_cost(problem, rows, labels, scores[rows]) + 0.5 * float(weights @ forms)
    upper = problem.C * problem.cost[rows]
    low, high = np.where(labels > 0, 0.0, -upper), np.where(labels > 0, upper, 0.0)
    violation, _, _ = violation_of(labels - products[rows], coefficients[rows], low, high)
    return Proposal(coefficients, intercept, scores, forms, weights, float(max(violation, 0.0)), value)


def _constant(label: float, problem: Problem, weights: np.ndarray) -> Proposal:
    """One label only: the constant function costs nothing, and no SVM is needed to find it."""
    n_rows = problem.bank.n_rows
    forms = np.zeros(problem.bank.n_kernels)
    return Proposal(np.zeros(n_rows), label, np.full(n_rows, label), forms, weights, 0.0, 0.0, is_constant=True)


def _hinge_cost(problem: Problem, rows: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> float:
    return problem.C * float(problem.cost[rows] @ np.maximum(0.0, 1.0 - labels * scores))
