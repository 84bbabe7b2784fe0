"""CGHash: hash functions by column generation, large-margin over triplets (Li et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.optimize import linprog, minimize
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts
from ..supervision import triplets_or_labels
from ._shared import WeightedBits, centered_rows


class CGHash(WeightedBits, LinearHasher):
    r"""Add one bit at a time, always the one that helps the unsatisfied triplets most.

    Triplets (i, j, k) want row i nearer to row j than to row k in the weighted Hamming distance with weights
    w of the bits. With :math:`a_t(h) = [h_i \ne h_k] - [h_i \ne h_j]` the margins that a bit h gives,

    .. math:: \min_{w, \xi \ge 0} 1^T w + \frac{C}{T}\, 1^T \xi, \qquad A w \ge 1 - \xi

    is solved as a linear program over the bits so far. Its dual variables u weigh the triplets, and
    the next bit maximizes :math:`\sum_t u_t a_t(h)` over hyperplanes: a value above 1 means that the bit
    lowers the objective. That search is not convex: the best random plane and a spectral relaxation are
    improved by L-BFGS on tanh in place of the sign, and the winner under the sign is taken.

    Choices made here: C is per triplet set (divided by their number T); the l1 norm of w is used; bits that the linear
    program does not ask for any more (no value above 1) are still filled with the best planes of the search. Indexes
    compare codes by plain Hamming distance; ``weighted_distances`` is the distance of the paper, with w in
    ``bit_weights_``.

    Parameters
    ----------
    n_bits : int, default=32
    C : float, default=100.0
        Cost of the triplets' slacks, shared among them.
    k_pos, k_neg : int, default=10
        Nearest rows of the same and of other classes that make the triplets of a row.
    max_triplets : int, default=20000
        Triplets kept, drawn at random; the linear programs cost more than linearly in them.
    n_components : int or None, default=100
        Principal components in which planes are sought, if X has more features than that.
    n_starts : int, default=100
        Random planes tried for each bit.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    bit_weights_ : array of shape (n_bits,)
        Weights of the bits in the native distance; many may be zero.
    objective_history_ : array of shape (n_bits,)
        Optimum of the linear program after each bit; never rises.
    violations_ : array of shape (n_bits,)
        :math:`\sum_t u_t a_t(h)` of each bit when it was added.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import CGHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = CGHash(8, max_triplets=2000, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.7  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Li, Lin, Shen, van den Hengel, Dick: Learning Hash Functions Using Column Generation",
        year=2013,
        labels="some",
        cost="n_bits x (L-BFGS + linear program over triplets)",
        samples="vectors and labels or triplets",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        C: float = 100.0,
        k_pos: int = 10,
        k_neg: int = 10,
        max_triplets: int = 20_000,
        n_components: int | None = 100,
        n_starts: int = 100,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.C = C
        self.k_pos = k_pos
        self.k_neg = k_neg
        self.max_triplets = max_triplets
        self.n_components = n_components
        self.n_starts = n_starts
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, triplets: ArrayLike | None = None) -> CGHash:
        """Generate the bits from triplets, or from triplets made from labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Labels; unlabeled rows enter no triplet. Not read if triplets are given.
        triplets : array of shape (n_triplets, 3), default=None
            Row indices: anchor, similar row, dissimilar row.
        """
        n_bits = self._check_settings()
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        # In single precision nearly equal distances would be ordered by their rounding, and make other triplets.
        rows = X.astype(np.float64)
        chosen = triplets_or_labels(self, triplets, rows, y, k_pos=self.k_pos, k_neg=self.k_neg)
        if len(chosen) > self.max_triplets:
            chosen = chosen[np.sort(rng.choice(len(chosen), self.max_triplets, replace=False))]
        reduced = centered_rows(rows, self.n_components)
        with single_threaded_blas():
            planes = self._generate(reduced.rows, chosen, n_bits, rng)
        self.components_, self.intercept_ = reduced.in_features(planes[:, :-1], planes[:, -1], X.dtype)
        return self

    def _generate(self, rows: np.ndarray, triplets: np.ndarray, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
        """Return the planes (v, c) of the bits, shape (n_bits, n_features + 1)."""
        used, local = np.unique(triplets, return_inverse=True)
        rows, triplets = rows[used], local.reshape(triplets.shape)
        cost = self.C / len(triplets)
        # Before the first bit no triplet is satisfied, so every dual variable is at its bound.
        weights = np.full(len(triplets), cost)
        planes: list[np.ndarray] = []
        columns: list[np.ndarray] = []
        objectives: list[float] = []
        violations: list[float] = []
        for _ in range(n_bits):
            if not weights.any():
                weights = np.full(len(triplets), cost)
            M = score_matrix(triplets, weights, len(rows))
            plane, column = best_plane(rows, M, self.n_starts, columns, triplets, rng)
            planes.append(plane)
            columns.append(column)
            violations.append(float(weights @ column))
            master = solve_master(np.column_stack(columns), cost)
            objectives.append(master.primal)
            weights = master.triplet_weights
        self.bit_weights_ = master.bit_weights
        self.objective_history_, self.violations_ = np.array(objectives), np.array(violations)
        return np.array(planes)

    def _check_settings(self) -> int:
        check_number(self.C, "C", low=0, strict=True)
        for name in ("k_pos", "k_neg", "max_triplets", "n_starts"):
            check_integer(getattr(self, name), name, low=1)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", low=1)
        return check_integer(self.n_bits, "n_bits", low=1)


@dataclass(frozen=True, slots=True)
class Master:
    """Solution of the restricted master problem."""

    bit_weights: np.ndarray
    triplet_weights: np.ndarray
    primal: float
    dual: float


def solve_master(A: np.ndarray, C: float) -> Master:
    r"""Weigh the bits so far, and the triplets by how much they still matter.

    .. math::

        \min_{w, \xi \ge 0} 1^T w + C\, 1^T \xi,\; A w \ge 1 - \xi
        \qquad\Longleftrightarrow\qquad
        \max_{0 \le u \le C} 1^T u,\; A^T u \le 1

    The dual is what is solved: it has one row per bit, the primal one per triplet. The bit weights
    are the multipliers of its rows.
    """
    n_triplets, n_bits = A.shape
    solution = linprog(-np.ones(n_triplets), A.T, np.ones(n_bits), bounds=(0, C), method="highs-ds")
    if solution.status != 0:
        raise RuntimeError(f"The linear program of the triplets was not solved: {solution.message}")
    bit_weights = np.maximum(-solution.ineqlin.marginals, 0.0)
    primal = bit_weights.sum() + C * np.maximum(1.0 - A @ bit_weights, 0.0).sum()
    return Master(bit_weights, solution.x, float(primal), float(solution.x.sum()))


def margins(bits: np.ndarray, triplets: np.ndarray) -> np.ndarray:
    """Return [differs from the dissimilar row] - [differs from the similar row] of each triplet and bit.

    ``bits`` has shape (n_samples, n_bits) or (n_samples,), entries ±1; the result has entries -1, 0, 1.
    """
    anchor, similar, dissimilar = triplets.T
    bits = bits.astype(np.int8)
    return bits[anchor] * (bits[similar] - bits[dissimilar]) / 2.0


def score_matrix(triplets: np.ndarray, weights: np.ndarray, n_samples: int) -> sp.csr_array:
    """Return the symmetric M with hᵀMh = Σ u_t a_t(h) for every ±1 vector h."""
    anchor, similar, dissimilar = triplets.T
    rows, columns = np.concatenate([anchor, anchor]), np.concatenate([similar, dissimilar])
    entries = np.concatenate([weights, -weights]) / 4.0
    half = sp.coo_array((entries, (rows, columns)), shape=(n_samples, n_samples)).tocsr()
    return (half + half.T).tocsr()


def best_plane(
    X: np.ndarray,
    M: sp.csr_array,
    n_starts: int,
    known: list[np.ndarray],
    triplets: np.ndarray,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (v, c) of the hyperplane whose bit scores highest, and its column of margins.

    The best of ``n_starts`` random planes and the spectral relaxation are improved by L-BFGS on the smooth
    score; all of them compete under the score of their actual bits. A plane whose margins equal a column in
    ``known`` is passed over unless every plane is of that kind.
    """
    planes = _random_planes(X, n_starts, rng)
    bits = signs_of(X @ planes[:, :-1].T + planes[:, -1]).astype(np.float64)
    best_random = int(np.argmax(np.einsum("ij,ij->j", bits, M @ bits)))
    starts = [planes[best_random], _spectral_plane(X, M)]
    improved = [
        minimize(smooth_score, start, (X, M), method="L-BFGS-B", jac=True, options={"maxiter": 50}).x
        for start in starts
    ]
    planes = np.vstack([*improved, *starts, planes])
    bits = signs_of(X @ planes[:, :-1].T + planes[:, -1]).astype(np.float64)
    scores = np.einsum("ij,ij->j", bits, M @ bits)
    order = np.argsort(-scores, kind="stable")
    for choice in order:
        column = margins(bits[:, choice], triplets)
        if not any(np.array_equal(column, other) for other in known):
            return planes[choice], column
    return planes[order[0]], margins(bits[:, order[0]], triplets)


def smooth_score(plane: np.ndarray, X: np.ndarray, M: sp.csr_array) -> tuple[float, np.ndarray]:
    """Return -sᵀMs for s = tanh(Xv + c), and its gradient over plane = (v, c)."""
    s = np.tanh(X @ plane[:-1] + plane[-1])
    pull = M @ s
    slope = -2.0 * pull * (1.0 - s**2)
    return -float(s @ pull), np.append(slope @ X, slope.sum())


def _random_planes(X: np.ndarray, n_planes: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw planes through the mean, scaled so that tanh bends within the range of the rows."""
    directions = rng.standard_normal((n_planes, X.shape[1]))
    return np.column_stack([_scaled(directions, X), np.zeros(n_planes)])


def _spectral_plane(X: np.ndarray, M: sp.csr_array) -> np.ndarray:
    """Return the plane that maximizes the score with Xv in place of its signs."""
    last = X.shape[1] - 1
    _, vectors = eigh(X.T @ (M @ X), subset_by_index=[last, last])
    return np.append(_scaled(vectors.T, X)[0], 0.0)


def _scaled(directions: np.ndarray, X: np.ndarray) -> np.ndarray:
    lengths = np.sqrt(np.square(X @ directions.T).mean(axis=0))
    return directions / np.where(lengths > 0, lengths, 1.0)[:, None]
