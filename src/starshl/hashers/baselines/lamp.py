"""LAMP: label-regularized max-margin partitions, one per bit (after Mu, Shen and Yan 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...learning.kernels.anchors import choose_anchors, gaussian_expansion, gaussian_features, mean_squared_distance
from ...learning.linalg import project
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts
from ..supervision import Pairs, PairsLike, pairs_or_labels
from ._lamp_loops import ascend_once


class LAMP(BaseHasher):
    r"""Partition the rows by a kernel hyperplane with margin, balance, and a few labeled pairs, bit by bit.

    Each bit :math:`f(x) = \langle w, \phi(x) - \bar\phi \rangle + b` lowers

    .. math::

        \tfrac12 (\|w\|^2 + b^2) + \frac{\lambda_1}{N} \sum_n (1 - |f_n|)_+
        + \frac{\lambda_2}{P} \sum_p \omega_p \big(1 - s_p(|f_i + f_j| - |f_i - f_j|)\big)_+,
        \qquad |b| \le \text{balance},

    where s is +1 for a similar and -1 for a dissimilar pair. w lies in the span of a few anchors, training rows drawn
    at random. Rows are centered in feature space, so b is the mean score, and the last condition keeps the two sides
    balanced: without it all rows on one side would be optimal. Convex-concave steps linearize the concave parts at the
    current scores; each is a support vector machine, solved by dual coordinate ascent.

    This is a reconstruction: the constants and the exact pair term of the paper were not available. Decided
    here: b is penalized like w; all bits share the anchors; bits start from random directions, and pairs
    that earlier bits got wrong weigh more (:math:`\omega`, updated as in AdaBoost).

    Parameters
    ----------
    n_bits : int, default=32
    margin_cost : float, default=1.0
        :math:`\lambda_1`, for rows inside the margin, labeled or not.
    pair_cost : float, default=10.0
        :math:`\lambda_2`, for pairs on the wrong sides.
    balance : float, default=0.1
        Largest mean score.
    n_anchors : int, default=200
    n_pairs : int, default=1000
        Pairs drawn from the labels, half of them similar. Ignored when ``fit`` is given pairs.
    max_rows : int, default=2000
        Rows drawn for the margin term.
    max_iter : int, default=20
        Convex steps per bit.
    reweight : bool, default=True
        Give pairs that earlier bits got wrong more weight; without it bits differ by their start only.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : array of shape (n_anchors, n_features)
    scale_ : float
        The kernel is :math:`\exp(-\|x - z\|^2 / scale)`, scale twice the mean squared distance.
    dual_coef_ : array of shape (n_bits, n_anchors)
    intercept_ : array of shape (n_bits,)
    objective_histories_ : array of shape (n_bits, max_iter + 1)
        Objective of each bit after each step, then NaN; never rises.
    n_iter_ : int
        Convex steps of the bit that took the most.
    pair_errors_ : array of shape (n_bits,)
        Share of the pairs that each bit puts on the wrong sides.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import LAMP
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = LAMP(8, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.7  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="after Mu, Shen, Yan: Weakly-Supervised Hashing in Kernel Space",
        year=2010,
        labels="some",
        cost="n_bits x convex steps x sweeps x rows x anchors",
        samples="vectors and labels or pairs",
        note="after Mu et al.",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        margin_cost: float = 1.0,
        pair_cost: float = 10.0,
        balance: float = 0.1,
        n_anchors: int = 200,
        n_pairs: int = 1000,
        max_rows: int = 2000,
        max_iter: int = 20,
        reweight: bool = True,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.margin_cost = margin_cost
        self.pair_cost = pair_cost
        self.balance = balance
        self.n_anchors = n_anchors
        self.n_pairs = n_pairs
        self.max_rows = max_rows
        self.max_iter = max_iter
        self.reweight = reweight
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> LAMP:
        """Learn the partitions from all rows and from pairs, or from pairs drawn from labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Labels; unlabeled rows enter no pair. Not read if pairs are given.
        pairs : (first, second, similarity), default=None
            Row indices, and +1 for similar, -1 for dissimilar.
        """
        n_bits = self._check_settings()
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        pairs = pairs_or_labels(self, pairs, y, len(X), n_pairs=self.n_pairs, random_state=rng)
        anchors = choose_anchors(X, "random", self.n_anchors, rng)
        self.anchors_, self.scale_ = anchors, 2.0 * mean_squared_distance(X, anchors)
        # The inverse root below turns the rounding of a kernel in single precision into other bits.
        kernel = gaussian_features(X.astype(np.float64), anchors, self.scale_)
        with single_threaded_blas():
            whitening = _inverse_root(gaussian_features(anchors.astype(np.float64), anchors, self.scale_))
            center = kernel.mean(axis=0) @ whitening
            rows = np.column_stack([project(kernel, whitening.T, -center), np.ones(len(X))])
            weights = self._bits(rows, pairs, n_bits, rng)
            self.dual_coef_ = (weights[:, :-1] @ whitening.T).astype(X.dtype)
            self.intercept_ = (weights[:, -1] - weights[:, :-1] @ center).astype(X.dtype)
        return self

    def _bits(self, rows: np.ndarray, pairs: Pairs, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
        """Return w and offset of each bit, shape (n_bits, n_columns)."""
        n_margin = min(self.max_rows, len(rows))
        margin_rows = np.sort(rng.choice(len(rows), n_margin, replace=False))
        ends = np.column_stack([pairs.first, pairs.second])
        similarity = pairs.similarity.astype(np.float64)
        importance = np.ones(len(pairs.first))
        weights = np.empty((n_bits, rows.shape[1]))
        self.objective_histories_ = np.full((n_bits, self.max_iter + 1), np.nan)
        self.pair_errors_ = np.empty(n_bits)
        for b in range(n_bits):
            problem = PartitionProblem(
                rows,
                margin_rows,
                self.margin_cost / n_margin,
                ends,
                similarity,
                self.pair_cost / len(pairs.first) * importance,
                float(self.balance),
            )
            bit = find_partition(problem, _random_start(rows, rng), max_iter=self.max_iter)
            weights[b] = bit.w
            self.objective_histories_[b, : len(bit.objectives)] = bit.objectives
            first, second = signs_of(rows @ bit.w)[ends].T
            right = np.where(first == second, 1.0, -1.0) * similarity
            self.pair_errors_[b] = (right < 0).mean()
            if self.reweight:
                importance = _reweighted(importance, right)
        self.n_iter_ = int(np.isfinite(self.objective_histories_).sum(axis=1).max()) - 1
        return weights

    def _check_settings(self) -> int:
        for name in ("margin_cost", "pair_cost", "balance"):
            check_number(getattr(self, name), name, low=0)
        if self.margin_cost == self.pair_cost == 0:
            raise ValueError("margin_cost and pair_cost are both 0, which leaves nothing to learn from.")
        for name in ("n_anchors", "n_pairs", "max_rows", "max_iter"):
            check_integer(getattr(self, name), name, low=1)
        return check_integer(self.n_bits, "n_bits", low=1)

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the kernel expansions, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        return gaussian_expansion(X, self.anchors_, self.scale_, self.dual_coef_, self.intercept_)


def _inverse_root(kernel: np.ndarray) -> np.ndarray:
    """Return T of shape (n_anchors, rank) with Tᵀ K T = I, so that KT holds coordinates in the span."""
    values, vectors = eigh(kernel)
    # Queries may come in single precision, where smaller ones are rounding, whose inverse roots would be noise.
    kept = values > 1e-6 * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def _random_start(rows: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return a random direction without offset, scaled to a mean absolute score of 1."""
    start = np.append(rng.standard_normal(rows.shape[1] - 1), 0.0)
    return start / (np.abs(rows @ start).mean() or 1.0)


def _reweighted(importance: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return pair weights after one AdaBoost round with votes ``right`` in ±1, of mean 1."""
    edge = float(importance @ right) / importance.sum()
    edge = min(max(edge, 0.0), 0.999)  # an edge of 1 would give infinite weights
    importance = importance * np.exp(-0.5 * np.log((1 + edge) / (1 - edge)) * right)
    return importance / importance.mean()


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
