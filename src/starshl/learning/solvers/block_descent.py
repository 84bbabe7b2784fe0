"""Algorithm 1 of the paper: block descent over assignments, SVMs, kernel weights and codewords.

What never rises is the objective (:mod:`starshl.learning.solvers.objective`), because every block minimizes it exactly
or keeps what it had. Solvers and banks are passed in as objects, so nothing here knows how a kernel is computed or an
SVM is solved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._common.threads import single_threaded_blas
from .objective import (
    distortion,
    hinge_sums,
    kernel_weights,
    penalty,
    reassign,
    squared_function_norms,
    surrogate,
    update_column,
)
from .problem import DescentState, Problem, Solution, Start, require_parts
from .proposals import Proposal, propose, quadratic_forms
from .svm import ACCEPTED_VIOLATION

_WEIGHTS_MAX_VIOLATION = 0.05  # largest KKT violation over all rows at which kernel weights of an SVM count as final


class BlockDescent:
    """Runs Algorithm 1 on one problem, from any start."""

    def __init__(self, problem: Problem):
        require_parts(problem.bank, problem.svm)
        self.problem = problem

    def run(self, start: Start) -> Solution:
        """Descend until nothing moves or ``max_iter`` sweeps are done, with a last SVM pass at the end."""
        with single_threaded_blas():
            return _Run(self.problem, start).finish()


class _Run:
    """One descent: the working state and the steps that change it."""

    def __init__(self, problem: Problem, start: Start):
        self.problem = problem
        self.state = state = DescentState.begin(start)
        costly = problem.cost > 0
        self.n_codewords, self.n_bits = state.codewords.shape
        self.free_rows = np.flatnonzero(problem.free & costly)
        self.idle_rows = np.flatnonzero(problem.free & ~costly)
        self.all_rows = np.flatnonzero(costly)
        self.first_rows = np.flatnonzero(costly & ~problem.free) if problem.late else self.all_rows
        self.rows = self.first_rows
        self.is_settled = np.zeros(self.n_bits, dtype=bool)
        self.occupied = np.bincount(state.assignments[self.first_rows], minlength=self.n_codewords) > 0

    def finish(self) -> Solution:
        """Take all steps, in the order of Algorithm 1."""
        state, max_iter = self.state, self.problem.max_iter
        self._first_sweep()
        while not state.converged and state.n_iter < max_iter:
            state.n_iter += 1
            settled = self._sweep()
            self._record()
            if settled or state.n_iter == max_iter:
                self._fit_all_bits(last=True)
                # The last pass may still push a row or a codeword over; then the descent goes on.
                n_changes = self._reassign() + self._update_all_codewords()
                self._record()
                state.converged = settled and n_changes == 0
                self.is_settled[:] = False
        if len(self.idle_rows):
            self._reassign(self.idle_rows)
        return state.solution()

    def _first_sweep(self) -> None:
        """Fit every bit to its first labels; late rows then join the codeword they come out nearest to."""
        self._fit_all_bits()
        self._update_all_codewords()
        if self.problem.late:
            self._reassign(np.concatenate([self.free_rows, self.idle_rows]))
            self.state.n_moved = 0
            self.rows = self.all_rows
        self._record()

    def _sweep(self) -> bool:
        """Visit every bit that is not settled, reassigning free rows before each; return whether nothing moved.

        Bits are fitted ahead of their turn, several side by side. As long as no row moves, that is what fitting them
        one by one would give; when one does, the bits after it are fitted anew, fewer at a time.
        """
        state = self.state
        weights_before = state.weights.copy()
        n_changes, n_ahead = self._reassign(), self.n_bits
        waiting: list[int] = np.flatnonzero(~self.is_settled).tolist()
        while waiting:
            ahead, n_ahead = waiting[:n_ahead], min(2 * n_ahead, self.n_bits)
            for bit, proposal in zip(ahead, self._propose(ahead), strict=True):
                n_moved = self._reassign() if bit != ahead[0] else 0
                n_changes += n_moved
                if n_moved:
                    n_ahead = max(1, len(ahead) // 2)
                    break
                self._commit(bit, proposal)
                n_changes += self._update_codewords(bit)
                waiting.remove(bit)
        moved = np.abs(state.weights - weights_before).max(axis=1)
        # The SVM of a bit depends on the others through its labels alone, which change with assignments and codewords.
        is_close = state.violation <= max(_WEIGHTS_MAX_VIOLATION, self.problem.svm.tol)
        self.is_settled = (moved <= self.problem.tol) & is_close & (n_changes == 0)
        return n_changes == 0 and bool(self.is_settled.all())

    def _reassign(self, rows: np.ndarray | None = None) -> int:
        """Move rows (the free ones) to their nearest codeword; return how many moved."""
        state = self.state
        rows = self.free_rows if rows is None else rows
        if len(rows) == 0:
            return 0
        protected = self.occupied & self.problem.keep_clusters
        n_moved = reassign(state.scores, state.codewords, state.assignments, rows, protected)
        state.n_moved += n_moved
        return n_moved

    def _fit_all_bits(self, *, last: bool = False) -> None:
        bits = range(self.n_bits)
        for bit, proposal in zip(bits, self._propose(bits, last=last), strict=True):
            self._commit(bit, proposal, last=last)

    def _propose(self, bits: Sequence[int], *, last: bool = False) -> list[Proposal | None]:
        # Where codewords or rows are about to follow the result, it must be right for all rows: an SVM that fits a
        # sample only leaves the others on the wrong side, and their codewords would flip.
        exact = self.problem.update_codewords or bool(self.problem.free.any())
        return propose(self.problem, self.state, self.rows, bits, exact=exact, last=last)

    def _commit(self, bit: int, proposal: Proposal | None, *, last: bool = False) -> None:
        """Take a new hash function and, except in the last pass, the kernel weights that are best for it."""
        state = self.state
        if proposal is None:
            if last:
                self._restore_used_weights(bit)
            return
        state.coefficients[bit] = proposal.coefficients
        state.intercept[bit] = proposal.intercept
        state.scores[:, bit] = proposal.scores
        state.violation[bit] = proposal.violation
        state.is_constant[bit] = proposal.is_constant
        state.weights[bit] = state.used_weights[bit] = proposal.weights
        norms = squared_function_norms(proposal.quadratic_forms, proposal.weights)
        state.penalty[bit] = penalty(norms, proposal.weights)
        if not last:
            self._update_weights(bit, norms)

    def _update_weights(self, bit: int, norms: np.ndarray) -> None:
        """Set the kernel weights of one bit to their minimizer; the hash function does not change."""
        state = self.state
        weights = kernel_weights(norms, self.problem.kernel_norm, state.weights[bit])
        cost = penalty(norms, weights)
        if cost <= state.penalty[bit]:
            state.weights[bit] = weights
            state.penalty[bit] = cost

    def _restore_used_weights(self, bit: int) -> None:
        """Keep the function and the weights it was fitted with, because the last pass offers nothing better."""
        state = self.state
        state.weights[bit] = state.used_weights[bit]
        coefficients = state.coefficients[bit]
        forms = quadratic_forms(self.problem.bank.expand(coefficients[None])[0], coefficients)
        state.penalty[bit] = penalty(squared_function_norms(forms, state.weights[bit]), state.weights[bit])

    def _update_all_codewords(self) -> int:
        return sum(self._update_codewords(bit) for bit in range(self.n_bits))

    def _update_codewords(self, bit: int) -> int:
        """Set one bit of every codeword to its minimizer; return how many changed."""
        state, problem = self.state, self.problem
        if not problem.update_codewords or state.violation[bit] > ACCEPTED_VIOLATION * problem.svm.tol:
            return 0
        plus, minus = hinge_sums(
            state.scores[self.rows, bit],
            state.assignments[self.rows],
            problem.cost[self.rows],
            self.n_codewords,
        )
        column, dropped = update_column(state.codewords, bit, plus, minus, problem.constraint, self.occupied)
        n_flipped = int(np.sum(column != state.codewords[:, bit]))
        state.codewords[:, bit] = column
        state.n_flipped += n_flipped
        state.n_dropped += int(dropped)
        return n_flipped

    def _record(self) -> None:
        """Append the objective, the surrogate (paper Eq. 2) and the distortion (paper Eq. 1)."""
        state, problem, rows = self.state, self.problem, self.rows
        cost, scores = problem.cost[rows], state.scores[rows]
        assignments = state.assignments[rows]
        state.surrogate.append(surrogate(scores, state.codewords[assignments], cost))
        state.distortion.append(distortion(scores, state.codewords, assignments, problem.free[rows], cost))
        state.objective.append(problem.C * state.surrogate[-1] + float(state.penalty.sum()))
        problem.on_progress(state.n_iter, state.objective[-1])
