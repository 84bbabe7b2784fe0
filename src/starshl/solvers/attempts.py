"""One SVM on some of the rows: where it starts, which rows are active, and what to try when that was not enough."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .kernel_weights import kernel_weights
from .objective import squared_norms
from .protocols import KernelBank, SvmSolver
from .result import DualSolution

__all__ = ["SMALLEST_TOL", "Attempt", "active_rows", "harder", "learn_weights", "sample_of", "solve"]

SMALLEST_TOL = 1e-8  # of an SVM; below it rounding decides, not the solver
# What follows trades the size of an SVM for how often it is solved; the last pass holds for all rows whatever these are
# (docs/speed.md).
_ACTIVE_BEYOND_MARGIN = 0.05  # rows up to this far outside the margin are active
_SAMPLE_ABOVE_ROWS = 1500  # up to this many rows, all are active at all times
_MIN_JOINING_LIMIT = 4000  # rows that may become active in one step, even if few are
_SAMPLE_SIZES = (750, 4000)  # smallest and largest sample on which the first kernel weights are learned
_MAX_WEIGHT_STEPS = 6  # of the kernel weights on a sample, which are only a start for those on all rows


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
    if len(margins) <= _SAMPLE_ABOVE_ROWS:
        return np.ones(len(margins), dtype=bool)
    active = coefficients != 0.0
    n_supporting = int(active.sum())
    others = np.flatnonzero(~active & (margins < 1.0 + _ACTIVE_BEYOND_MARGIN))
    n_joining = max(3 * n_supporting, _MIN_JOINING_LIMIT)
    if len(others) > n_joining:
        others = others[np.linspace(0, len(others) - 1, n_joining).astype(np.int64)]
    active[others] = True
    return active


def sample_of(groups: np.ndarray) -> np.ndarray | None:
    """Mark a quarter of the rows, up to a limit, evenly in each group and one of each at least; None for few rows."""
    if len(groups) <= _SAMPLE_ABOVE_ROWS:
        return None
    step = len(groups) / np.clip(len(groups) // 4, *_SAMPLE_SIZES)
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


def solve(svm: SvmSolver, bank: KernelBank, upper: np.ndarray, rows: np.ndarray, attempt: Attempt) -> DualSolution:
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
        coefficients = solve(svm, bank, upper, rows, attempt).coefficients
        norms = squared_norms(bank.quadratic_forms(coefficients), attempt.weights)
        weights = kernel_weights(norms, kernel_norm, attempt.weights)
        moved = np.abs(weights - attempt.weights).max()
        attempt = replace(attempt, weights=weights, start=coefficients)
        if moved <= tol:
            break
    return attempt
