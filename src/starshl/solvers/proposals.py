"""New hash functions for several bits, fitted side by side and proposed only if they cost no more than the old ones.

Bits share the kernels, so their expansions are computed together: each kernel is evaluated once for all bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._threads import run_all
from .result import DualSolution

if TYPE_CHECKING:
    from .block_descent import Problem, State

__all__ = ["Proposal", "propose", "quadratic_forms"]

_TIGHTEST = 1e-8  # SVM tolerance beyond which rounding, not the solver, decides
_TRIES = 3  # solves of one SVM, each ten times tighter, before a sweep keeps what it had
_ROUNDING = 1e-12
# The last pass must end with weights and coefficients that belong together; in float32 that may cost a rounding error.
_LAST_SLACK = 1e-7


@dataclass(frozen=True, slots=True)
class Proposal:
    """A hash function for one bit, and what it costs at the kernel weights it was fitted with."""

    coefficients: np.ndarray
    intercept: float
    scores: np.ndarray
    quadratic_forms: np.ndarray
    violation: float
    value: float
    is_constant: bool = False


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One bit that still needs a function costing at most ``allowed``."""

    bit: int
    labels: np.ndarray
    start: np.ndarray
    allowed: float


def propose(
    problem: Problem, state: State, rows: np.ndarray, bits: Sequence[int], *, persistent: bool
) -> list[Proposal | None]:
    """Return a hash function for each bit, or None where none was found that costs no more than the present one.

    An inexact SVM may cost more than what was there; its tolerance is then tightened, in a persistent search to the
    end, otherwise a few times.
    """
    proposals: dict[int, Proposal | None] = dict.fromkeys(bits)
    attempts = []
    for bit in bits:
        labels = state.codewords[state.assignments[rows], bit].astype(np.float64)
        if np.all(labels == labels[0]):
            proposals[bit] = _constant(labels[0], problem)
        else:
            allowed = _hinge_cost(problem, rows, labels, state.scores[rows, bit]) + state.penalty[bit]
            attempts.append(_Attempt(bit, labels, state.coefficients[bit, rows], allowed))
    if not attempts:
        return [proposals[bit] for bit in bits]
    tasks = [partial(_solve, problem, state, rows, attempt, persistent) for attempt in attempts]
    solutions = run_all(tasks, problem.n_jobs)
    coefficients = np.zeros((len(attempts), problem.bank.n_rows))
    coefficients[:, rows] = [solution.coefficients for solution in solutions]
    slack = 1.0 + (_LAST_SLACK if persistent else _ROUNDING)
    for attempt, solution, own, expansions in zip(
        attempts, solutions, coefficients, problem.bank.expand(coefficients), strict=True
    ):
        weights = state.weights[attempt.bit]
        proposal = _evaluate(problem, rows, attempt.labels, weights, solution, own, expansions)
        if proposal.value <= attempt.allowed * slack:
            proposals[attempt.bit] = proposal
    return [proposals[bit] for bit in bits]


def quadratic_forms(expansions: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return c' K_m c for every kernel, given K_m c.

    Coefficients sum to zero, so centering changes nothing but the rounding of nearly constant kernels.
    """
    centered = expansions - expansions.mean(axis=1, keepdims=True)
    return np.maximum(0.0, centered @ coefficients)


def _solve(problem: Problem, state: State, rows: np.ndarray, attempt: _Attempt, persistent: bool) -> DualSolution:
    """Solve one SVM as exactly as it takes to cost no more than allowed."""
    everywhere = len(rows) == problem.bank.n_rows
    K = problem.bank.combine(state.weights[attempt.bit], None if everywhere else rows)
    upper = problem.C * problem.cost[rows]
    start, tol, n_tries = attempt.start, problem.svm.tol, 0
    while True:
        solution = problem.svm.solve(K, attempt.labels, upper, start=start, tol=tol)
        n_tries += 1
        value = _hinge_cost(problem, rows, attempt.labels, solution.products + solution.intercept)
        value += 0.5 * float(solution.coefficients @ solution.products)
        if value <= attempt.allowed or tol <= _TIGHTEST or (n_tries == _TRIES and not persistent):
            problem.on_progress(state.n_iter, None)
            return solution
        start, tol = solution.coefficients, max(tol / 10.0, _TIGHTEST)


def _evaluate(
    problem: Problem,
    rows: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    solution: DualSolution,
    coefficients: np.ndarray,
    expansions: np.ndarray,
) -> Proposal:
    """Return the objective of one bit (paper Eq. 6) and all that goes with it."""
    forms = quadratic_forms(expansions, coefficients)
    scores = weights @ expansions + solution.intercept
    value = _hinge_cost(problem, rows, labels, scores[rows]) + 0.5 * float(weights @ forms)
    return Proposal(coefficients, solution.intercept, scores, forms, solution.violation, value)


def _constant(label: float, problem: Problem) -> Proposal:
    """One label only: the constant function costs nothing, and no SVM is needed to find it."""
    n_rows = problem.bank.n_rows
    forms = np.zeros(problem.bank.n_kernels)
    return Proposal(np.zeros(n_rows), label, np.full(n_rows, label), forms, 0.0, 0.0, is_constant=True)


def _hinge_cost(problem: Problem, rows: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> float:
    return problem.C * float(problem.cost[rows] @ np.maximum(0.0, 1.0 - labels * scores))
