"""The bit of LAMP: a large-margin partition with a few labeled pairs, by convex-concave steps.

Since |u + v| - |u - v| = 2 sgn(uv) min(|u|, |v|), a pair is satisfied if the smaller of its two scores is
far enough on the right side. Linearizing the concave parts at the current scores fixes a side for every row
and for both ends of every pair; what remains is a support vector machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ._lamp_loops import ascend_once

__all__ = ["Multipliers", "Partition", "PartitionProblem", "convex_step", "find_partition"]


@dataclass(frozen=True)
class PartitionProblem:
    """Rows (the last column is 1, for the offset), pairs of them and what violations cost.

    ``margin_rows`` are the rows that ask for a margin; ``pair_costs`` has one entry per pair.
    """

    rows: np.ndarray
    margin_rows: np.ndarray
    row_cost: float
    ends: np.ndarray
    similarity: np.ndarray
    pair_costs: np.ndarray
    limit: float

    @cached_property
    def norms(self) -> np.ndarray:
        """Squared lengths of the rows."""
        return np.einsum("ij,ij->i", self.rows, self.rows)

    @cached_property
    def curvatures(self) -> np.ndarray:
        """Squared length of 2 (z_i - s z_j) of each pair; it does not depend on the sides of the ends."""
        first, second = self.ends.T
        inner = np.einsum("ij,ij->i", self.rows[first], self.rows[second])
        return 4.0 * np.maximum(self.norms[first] + self.norms[second] - 2.0 * self.similarity * inner, 0.0)

    def objective(self, w: np.ndarray) -> float:
        """Return ½|w|² + costs of the true, non-convex margins."""
        scores = self.rows @ w
        first, second = scores[self.ends].T
        agreement = np.abs(first + second) - np.abs(first - second)
        slack = np.maximum(1.0 - np.abs(scores[self.margin_rows]), 0.0)
        pair_slack = np.maximum(1.0 - self.similarity * agreement, 0.0)
        return float(w @ w / 2 + self.row_cost * slack.sum() + self.pair_costs @ pair_slack)

    def sides(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sides that linearization at w gives to margin rows and to the ends of pairs."""
        scores = self.rows @ w
        first, second = scores[self.ends].T
        leading = np.where(first + self.similarity * second >= 0, 1.0, -1.0)
        signs = np.where(scores[self.margin_rows] >= 0, 1.0, -1.0)
        return signs, np.column_stack([leading, self.similarity * leading])

    def convex_objective(self, w: np.ndarray, signs: np.ndarray, end_signs: np.ndarray) -> float:
        """Return the objective of the convex step; an upper bound that is tight where it was linearized."""
        scores = self.rows @ w
        slack = np.maximum(1.0 - signs * scores[self.margin_rows], 0.0)
        pair_slack = np.maximum(1.0 - 2.0 * (end_signs * scores[self.ends]).min(axis=1), 0.0)
        return float(w @ w / 2 + self.row_cost * slack.sum() + self.pair_costs @ pair_slack)


@dataclass(frozen=True, slots=True)
class Multipliers:
    """Dual variables of a convex step, for the sides they belong to."""

    row_sides: np.ndarray
    end_sides: np.ndarray
    rows: np.ndarray
    pairs: np.ndarray
    limits: np.ndarray

    @classmethod
    def none(cls, row_sides: np.ndarray, end_sides: np.ndarray) -> Multipliers:
        return cls(row_sides, end_sides, np.zeros(len(row_sides)), np.zeros(end_sides.shape), np.zeros(2))

    def moved(self, row_sides: np.ndarray, end_sides: np.ndarray) -> Multipliers:
        """Return a start for new sides: constraints that changed sides begin at zero."""
        rows = np.where(row_sides == self.row_sides, self.rows, 0.0)
        pairs = np.where(end_sides == self.end_sides, self.pairs, 0.0)
        return Multipliers(row_sides, end_sides, rows, pairs, self.limits.copy())

    def weights(self, problem: PartitionProblem) -> np.ndarray:
        """Return the w that the multipliers stand for."""
        pull = np.zeros(len(problem.rows))
        np.add.at(pull, problem.margin_rows, self.rows * self.row_sides)
        np.add.at(pull, problem.ends, 2.0 * self.pairs * self.end_sides)
        w = pull @ problem.rows
        w[-1] += self.limits[1] - self.limits[0]
        return w


def convex_step(
    problem: PartitionProblem, start: Multipliers, *, tol: float = 1e-3, max_sweeps: int = 200
) -> tuple[np.ndarray, float]:
    """Minimize the convex objective over |offset| <= limit, for the sides of ``start``.

    Returns w and the relative duality gap; the multipliers of ``start`` are improved in place.
    """
    w = start.weights(problem)
    for sweep in range(1, max_sweeps + 1):
        ascend_once(
            problem.rows,
            problem.norms,
            problem.margin_rows,
            start.row_sides,
            problem.row_cost,
            start.rows,
            problem.ends,
            problem.curvatures,
            start.end_sides,
            problem.pair_costs,
            start.pairs,
            problem.limit,
            start.limits,
            w,
        )
        # The gap costs as much as a sweep.
        if sweep % 5 == 0 or sweep == max_sweeps:
            feasible = w.copy()
            feasible[-1] = np.clip(w[-1], -problem.limit, problem.limit)
            primal = problem.convex_objective(feasible, start.row_sides, start.end_sides)
            dual = start.rows.sum() + start.pairs.sum() - problem.limit * start.limits.sum() - w @ w / 2
            gap = (primal - dual) / max(abs(primal), 1e-12)
            if gap <= tol:
                break
    return feasible, float(gap)


@dataclass(frozen=True, slots=True)
class Partition:
    """One bit: its weights and the non-convex objective after each convex step."""

    w: np.ndarray
    objectives: np.ndarray


def find_partition(problem: PartitionProblem, start: np.ndarray, *, max_iter: int = 20, tol: float = 1e-3) -> Partition:
    """Take convex steps from ``start`` until the objective falls by less than the share ``tol``.

    A step whose inner solution is too rough to lower the objective is not taken, so it never rises.
    """
    w, objectives = start, [problem.objective(start)]
    multipliers = Multipliers.none(*problem.sides(w))
    for _ in range(max_iter):
        multipliers = multipliers.moved(*problem.sides(w))
        candidate, _ = convex_step(problem, multipliers)
        value = problem.objective(candidate)
        if value > objectives[-1]:
            break
        w = candidate
        objectives.append(value)
        if objectives[-2] - value <= tol * abs(objectives[-2]):
            break
    return Partition(w, np.array(objectives))
