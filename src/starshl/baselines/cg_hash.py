"""CGHash: hash functions by column generation, large-margin over triplets (Li et al. 2013)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_random_state

from .._threads import single_threaded_blas
from .._types import LabelsLike, SamplesLike, Seed
from .._validation import check_integer, check_number, check_rows
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts
from ..supervision import triplets_or_labels
from ._reduction import centered_rows
from ._triplet_columns import best_plane, score_matrix, solve_master
from ._weighted_bits import WeightedBits

__all__ = ["CGHash"]


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
    >>> from starshl.baselines import CGHash
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
        chosen = triplets_or_labels(self, triplets, X, y, k_pos=self.k_pos, k_neg=self.k_neg)
        if len(chosen) > self.max_triplets:
            chosen = chosen[np.sort(rng.choice(len(chosen), self.max_triplets, replace=False))]
        reduced = centered_rows(X, self.n_components)
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
