"""Locality-sensitive hashing under a learned Mahalanobis metric (Jain et al. 2008, Kulis et al. 2009).

The metric is learned by information-theoretic metric learning (ITML; Davis et al. 2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_integer, check_number, check_rows
from ..._common.warn import warn_caller
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts
from ..supervision import Pairs, PairsLike, pairs_or_labels, require_labels
from ._shared import centered_rows

# Random pairs of rows whose distances set the bounds; percentiles of so many are steady.
_PAIRS_FOR_BOUNDS = 10_000


class MetricLSH(LinearHasher):
    r"""Hash by random hyperplanes in the geometry of a metric learned from pairs.

    The metric :math:`A = G^T G` stays as close to the identity as similar pairs within a small and
    dissimilar pairs beyond a large distance allow,

    .. math::

        \min_{A, \xi}\; D_{ld}(A, I) + \gamma \sum_c D_{ld}(\xi_c, \xi^0_c), \qquad
        (x_i - x_j)^T A (x_i - x_j) \lessgtr \xi_c,

    with the LogDet divergence :math:`D_{ld}(A, B) = tr(AB^{-1}) - \log\det(AB^{-1}) - d`. Bits are
    :math:`sgn(r^T G (x - m))` with normal r, so two rows agree in a bit with probability
    :math:`1 - \angle(Gx, Gz)/\pi`.

    Parameters
    ----------
    n_bits : int, default=32
    gamma : float, default=1.0
        Weight of the slack: small lets distances leave their bounds, ``numpy.inf`` forbids it (the
        constraints then have to be feasible).
    n_pairs : int or "auto", default="auto"
        Pairs drawn from the labels; "auto" draws the 20 G² of the ITML paper for G classes. Half are
        similar. Ignored when ``fit`` is given pairs.
    percentiles : tuple of two numbers, default=(5, 95)
        Of the squared distances of random pairs: the bounds for similar and for dissimilar pairs.
    n_components : int or None, default=100
        Principal components in which the metric is learned, if X has more features than that. A projection
        costs O(n_components²). None learns the metric of the features themselves.
    max_iter : int, default=1000
    tol : float, default=1e-3
        Stop when a sweep over the constraints changes the multipliers by less than this share of them.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    metric_ : array of shape (n_kept, n_kept)
        A, in the features or in their principal components.
    n_iter_ : int
        Sweeps over the pairs.
    objective_history_ : array of shape (n_iter_ + 1,)
        Dual objective :math:`-\log\det A - \gamma\sum_c \log(\xi_c/\xi^0_c)`; never falls.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import MetricLSH
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = MetricLSH(16, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.6  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Jain, Kulis, Grauman: Fast Image Search for Learned Metrics",
        year=2008,
        labels="some",
        cost="sweeps x pairs x components^2",
        samples="vectors and labels or pairs",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        gamma: float = 1.0,
        n_pairs: int | Literal["auto"] = "auto",
        percentiles: tuple[float, float] = (5, 95),
        n_components: int | None = 100,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.gamma = gamma
        self.n_pairs = n_pairs
        self.percentiles = percentiles
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> MetricLSH:
        """Learn the metric from pairs, or from pairs drawn from labels, and draw the hyperplanes.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Labels; unlabeled rows take no part in the metric. Not read if pairs are given.
        pairs : (first, second, similarity), default=None
            Row indices, and +1 for similar, -1 for dissimilar.
        """
        n_bits, low, high = self._check_settings()
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        reduced = centered_rows(X, self.n_components)
        rows = reduced.rows
        # Drawn first, so that an untouched metric gives the codes of LSHash with the same seed.
        directions = rng.standard_normal((n_bits, rows.shape[1]))
        pairs = self._constraints(X, y, pairs, rng)
        bounds = _distance_bounds(rows, low, high, rng)
        with single_threaded_blas():
            learned = learn_metric(
                rows[pairs.first] - rows[pairs.second],
                pairs.similarity,
                bounds,
                gamma=float(self.gamma),
                max_iter=self.max_iter,
                tol=self.tol,
            )
            directions = directions @ _symmetric_root(learned.metric)
        self.components_, self.intercept_ = reduced.in_features(directions, 0.0, X.dtype)
        if not learned.converged:
            warn_caller(
                f"The multipliers still changed by a share of {learned.change:.2g} > tol {self.tol:g} after "
                f"{self.max_iter} sweeps. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        self.metric_ = learned.metric
        self.objective_history_ = learned.objectives
        self.n_iter_ = len(learned.objectives) - 1
        return self

    def _constraints(self, X: np.ndarray, y: LabelsLike, pairs: PairsLike | None, rng: np.random.RandomState) -> Pairs:
        # Pairs that are given are not counted.
        n_pairs = 0 if self.n_pairs == "auto" else int(self.n_pairs)
        if pairs is None and self.n_pairs == "auto":
            n_classes = len(require_labels(self, y, len(X), partial=True, n_classes=2).classes)
            n_pairs = 20 * n_classes**2
        return pairs_or_labels(self, pairs, y, len(X), n_pairs=n_pairs, random_state=rng)

    def _check_settings(self) -> tuple[int, float, float]:
        check_number(self.gamma, "gamma", low=0, strict=True, finite=False)
        if self.n_pairs != "auto":
            check_integer(self.n_pairs, "n_pairs", low=1)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", low=1)
        check_integer(self.max_iter, "max_iter", low=0)
        check_number(self.tol, "tol", low=0)
        low, high = self.percentiles
        if not 0 <= low < high <= 100:
            raise ValueError(f"percentiles is {self.percentiles!r}; it must be two rising numbers from 0 to 100.")
        return check_integer(self.n_bits, "n_bits", low=1), low, high


@dataclass(frozen=True, slots=True)
class LearnedMetric:
    """The result of :func:`learn_metric`; ``change`` is that of the last sweep."""

    metric: np.ndarray
    duals: np.ndarray
    bounds: np.ndarray
    objectives: np.ndarray
    change: float
    converged: bool


def learn_metric(
    differences: np.ndarray,
    similarity: np.ndarray,
    bounds: tuple[float, float],
    *,
    gamma: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> LearnedMetric:
    """Learn a Mahalanobis metric by cyclic Bregman projections (Davis et al. 2007, Algorithm 1).

    Printed versions show the step for gamma = 1; the factor gamma/(gamma + 1) makes it the exact
    projection for every gamma. Being coordinate ascent, it never lowers the dual objective.

    Parameters
    ----------
    differences : array of shape (n_pairs, n_features), x_i - x_j
    similarity : array of shape (n_pairs,), +1: at most bounds[0], -1: at least bounds[1]
    bounds : squared distances
    """
    metric = np.eye(differences.shape[1])
    signs = similarity.astype(np.float64)
    start = np.where(signs > 0, *bounds)
    relaxed, duals = start.copy(), np.zeros(len(signs))
    objectives, change = [0.0], 0.0
    for _ in range(max_iter):
        moved = project_once(metric, differences, signs, relaxed, duals, gamma)
        slack = 0.0 if np.isinf(gamma) else gamma * np.log(relaxed / start).sum()
        objectives.append(-np.linalg.slogdet(metric)[1] - slack)
        total = duals.sum()
        change = moved / total if total > 0 else 0.0
        if change <= tol:
            break
    metric = (metric + metric.T) / 2
    return LearnedMetric(metric, duals, relaxed, np.array(objectives), change, change <= tol)


@njit(cache=True, nogil=True)
def project_once(
    metric: np.ndarray, differences: np.ndarray, signs: np.ndarray, bounds: np.ndarray, duals: np.ndarray, gamma: float
) -> float:
    """Project onto every constraint once, in place; return the sum of the changes of the duals.

    ``bounds`` are the relaxed distances ξ, ``duals`` the multipliers λ, ``signs`` +1 for "at most" and -1
    for "at least". With p = vᵀAv the projection moves 1/p and 1/ξ until the two meet or λ reaches 0:

        α = min(λ, sign · γ/(γ+1) · (1/p - 1/ξ))
        1/p <- 1/p - sign·α,   1/ξ <- 1/ξ + sign·α/γ,   λ <- λ - α
    """
    n_features = metric.shape[0]
    image = np.empty(n_features)
    share = 1.0 if np.isinf(gamma) else gamma / (gamma + 1.0)
    moved = 0.0
    for c in range(differences.shape[0]):
        v = differences[c]
        image[:] = 0.0
        for i in range(n_features):
            for j in range(n_features):
                image[j] += v[i] * metric[i, j]
        p = 0.0
        for i in range(n_features):
            p += v[i] * image[i]
        # Equal rows are at distance zero in every metric: no projection can move them.
        if p < 1e-12:
            continue
        alpha = min(duals[c], signs[c] * share * (1.0 / p - 1.0 / bounds[c]))
        if alpha == 0.0:
            continue
        step = signs[c] * alpha
        bounds[c] = 1.0 / (1.0 / bounds[c] + step / gamma)
        duals[c] -= alpha
        moved += abs(alpha)
        beta = step / (1.0 - step * p)
        for i in range(n_features):
            scaled = beta * image[i]
            for j in range(n_features):
                metric[i, j] += scaled * image[j]
    return moved


def _distance_bounds(rows: np.ndarray, low: float, high: float, rng: np.random.RandomState) -> tuple[float, float]:
    first, second = rng.randint(0, len(rows), (2, _PAIRS_FOR_BOUNDS))
    squared = np.square(rows[first] - rows[second]).sum(axis=1)[first != second]
    near, far = np.percentile(squared, [low, high])
    # Many equal rows would ask for the distance zero, which no positive definite metric has.
    far = far if far > 0 else 1.0
    return max(near, 1e-3 * far), far


def _symmetric_root(metric: np.ndarray) -> np.ndarray:
    values, vectors = eigh(metric)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
