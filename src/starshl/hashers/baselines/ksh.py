"""Supervised hashing with kernels, KSH (Liu, Wang, Ji, Jiang and Chang 2012)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...learning.kernels.anchors import (
    AnchorsLike,
    choose_anchors,
    gaussian_expansion,
    gaussian_features,
    mean_squared_distance,
)
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts
from ..supervision import Pairs, PairsLike, check_pairs, require_labels

_MAX_DOUBLINGS = 50  # a step 2^50 times shorter changes nothing in double precision
# The product of the residual matrix with a vector.
ResidualTimes: TypeAlias = Callable[[np.ndarray], np.ndarray]


class KSH(BaseHasher):
    r"""Fit inner products of codes to the similarity of labeled rows, one bit after the other.

    A bit is :math:`h(x) = \mathrm{sgn}(a^T \bar k(x))`, with :math:`\bar k(x)` Gaussian kernel values at the
    anchors, :math:`\exp(-\|x - u\|^2 / 2s)`, minus their mean over all training rows; s is the mean squared
    distance between rows and anchors. Over the l labeled rows, with :math:`S_{ij} = 1` for similar, -1 for
    dissimilar and 0 for unknown pairs, the codes minimize

    .. math:: \| \tfrac{1}{B} H H^T - S \|_F^2

    greedily (Liu et al. 2012): bit b maximizes :math:`h^T R h`, where :math:`R = B S - \sum_{b' < b} h_{b'}
    h_{b'}^T`. It starts from the leading eigenvector of the relaxed problem and climbs by accelerated
    gradient steps with :math:`\tanh(u/2)` instead of the sign; the better of both is kept.

    S enters by its products only, so l is limited by the kernel values, O(l m) for m anchors.
    O(n m d) for the kernel, O(n_bits (m^3 + iterations x l m)) for the bits.

    Parameters
    ----------
    n_bits : int, default=32
    anchors : {"random", "kmeans"} or array of shape (n_anchors, n_features), default="random"
    n_anchors : int, default=300
    n_labeled : int or None, default=2000
        How many labeled rows to learn from, drawn at random; None for all, which is better and slower. The authors
        take 1,000; 2,000 cost twice the time and gain about .01 of P@10 on MNIST. Ignored with ``pairs``.
    max_iter : int, default=500
        Gradient steps per bit.
    tol : float, default=0.01
        Stop when a step changes the smooth objective by less than tol times l.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : array of shape (n_anchors, n_features)
    scale_ : float, 2s
    coefficients_ : array of shape (n_bits, n_anchors)
    intercept_ : array of shape (n_bits,)
    objective_history_ : array of shape (n_bits + 1,)
        :math:`\|R\|_F^2 / \|B S\|_F^2` before the first and after each bit. It falls with each bit that
        agrees with R better than half way, :math:`h^T R h > l^2/2`; the last of many bits may not.
    n_labeled_ : int
        How many labeled rows were learned from.
    n_iter_ : int
        The most gradient steps that a bit took.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import KSH
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = KSH(4, n_labeled=300, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.5  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Liu, Wang, Ji, Jiang, Chang: Supervised Hashing with Kernels",
        year=2012,
        labels="some",
        cost="n x anchors x features + n_bits x (anchors^3 + steps x labeled x anchors)",
        samples="vectors and labels or pairs",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        anchors: AnchorsLike = "random",
        n_anchors: int = 300,
        n_labeled: int | None = 2000,
        max_iter: int = 500,
        tol: float = 1e-2,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.anchors = anchors
        self.n_anchors = n_anchors
        self.n_labeled = n_labeled
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> KSH:
        """Learn from labels, of some rows at least, or from pairs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Unlabeled rows still serve as anchors and for the mean.
        pairs : (first, second, similarity), default=None
            Row indices, and +1 or -1; used instead of y.
        """
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        max_iter = check_integer(self.max_iter, "max_iter", low=1)
        tol = check_number(self.tol, "tol", low=0.0)
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        rows, S = self._similarity(len(X), y, pairs, rng)
        self.anchors_ = choose_anchors(X, self.anchors, self.n_anchors, rng)
        self.scale_ = 2 * mean_squared_distance(X, self.anchors_)
        features = gaussian_features(X, self.anchors_, self.scale_)
        mean = features.mean(axis=0, dtype=np.float64)
        with single_threaded_blas():
            coefficients, self.objective_history_, self.n_iter_ = learn_bits(
                features[rows] - mean, S, n_bits, max_iter, tol
            )
            self.intercept_ = -(coefficients @ mean).astype(X.dtype)
        self.coefficients_ = coefficients.astype(X.dtype)
        self.n_labeled_ = len(rows)
        return self

    def _similarity(
        self, n_samples: int, y: LabelsLike, pairs: PairsLike | None, rng: np.random.RandomState
    ) -> tuple[np.ndarray, LabelSimilarity | csr_array]:
        """Return the rows to learn from, and S over them."""
        if pairs is not None:
            return _pair_similarity(check_pairs(pairs, n_samples))
        labels = require_labels(self, y, n_samples, partial=True, n_classes=2)
        rows = np.flatnonzero(labels.labeled)
        if self.n_labeled is not None:
            n_labeled = check_integer(self.n_labeled, "n_labeled", low=2)
            if n_labeled < len(rows):
                rows = np.sort(rng.choice(rows, n_labeled, replace=False))
        return rows, LabelSimilarity(labels.index[rows])

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the kernel expansions, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        return gaussian_expansion(X, self.anchors_, self.scale_, self.coefficients_, self.intercept_)


class LabelSimilarity:
    """S = 2 YY' - 11' for one-hot labels Y, represented by its products: O(l n_classes) instead of O(l^2)."""

    def __init__(self, index: np.ndarray) -> None:
        classes, self.index = np.unique(index, return_inverse=True)
        self.one_hot = (self.index[:, None] == np.arange(len(classes))).astype(np.float64)
        self.squared_norm = float(len(index)) ** 2

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        class_sums = self.one_hot.T @ other
        return (2 * class_sums - class_sums.sum(axis=0))[self.index]


def _pair_similarity(pairs: Pairs) -> tuple[np.ndarray, csr_array]:
    rows, positions = np.unique(np.stack(pairs[:2]), return_inverse=True)
    first, second = positions.reshape(2, -1)
    own = np.arange(len(rows))
    values = np.concatenate([pairs.similarity, pairs.similarity, np.ones(len(rows))]).astype(np.float64)
    where = (np.concatenate([first, second, own]), np.concatenate([second, first, own]))
    S = csr_array((values, where), shape=(len(rows), len(rows)))
    # A pair may be listed twice; contradicting entries cancel out.
    return rows, S.sign()


def learn_bits(
    K: np.ndarray, S: LabelSimilarity | csr_array, n_bits: int, max_iter: int, tol: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return coefficients (n_bits, n_anchors) for kernel values K (l, n_anchors), residuals, most steps."""
    n_rows, n_anchors = K.shape
    codes = np.empty((n_rows, 0))
    coefficients = np.empty((n_bits, n_anchors))
    scatter = K.T @ K
    # Anchors that coincide, or more anchors than rows, leave K'K singular.
    scatter.flat[:: n_anchors + 1] += 1e-6 * max(np.trace(scatter) / n_anchors, np.finfo(float).tiny)
    target = n_bits * (K.T @ (S @ K))
    start_norm = norm = n_bits**2 * _squared_norm(S)
    history, most_steps = [1.0], 0
    for bit in range(n_bits):

        def residual_times(vector: np.ndarray, codes: np.ndarray = codes) -> np.ndarray:
            return n_bits * (S @ vector) - codes @ (codes.T @ vector)

        relaxed = _relaxed_optimum(target, scatter, n_rows)
        refined, n_steps = climb(K, residual_times, relaxed, max_iter, tol)
        most_steps = max(most_steps, n_steps)
        candidates = [(_agreement(K @ a, residual_times), a) for a in (relaxed, refined)]
        # On equal terms the relaxed optimum stays: it comes first.
        agreement, coefficients[bit] = max(candidates, key=lambda candidate: candidate[0])
        code = signs_of(K @ coefficients[bit]).astype(np.float64)
        codes = np.column_stack([codes, code])
        moment = K.T @ code
        target -= np.outer(moment, moment)
        norm += n_rows**2 - 2 * agreement
        history.append(norm / start_norm)
    return coefficients, np.array(history), most_steps


def _squared_norm(S: LabelSimilarity | csr_array) -> float:
    return S.squared_norm if isinstance(S, LabelSimilarity) else float((S.data**2).sum())


def _relaxed_optimum(target: np.ndarray, scatter: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the a that maximizes a'K'RKa subject to a'K'Ka = l."""
    last = len(target) - 1
    _, vectors = eigh((target + target.T) / 2, scatter, subset_by_index=(last, last))
    return np.sqrt(n_rows) * vectors[:, 0]


def _agreement(scores: np.ndarray, residual_times: ResidualTimes) -> float:
    code = signs_of(scores).astype(np.float64)
    return float(code @ residual_times(code))


def smooth_objective(scores: np.ndarray, residual_times: ResidualTimes) -> tuple[float, np.ndarray]:
    r"""Return :math:`g = -\phi^T R \phi` with :math:`\phi = \tanh(u/2)` of the scores u = Ka, and its gradient in u.

    The gradient is :math:`-(R\phi) \circ (1 - \phi^2)`: the 2 of the quadratic form and the 1/2 of :math:`\phi'`
    cancel.
    """
    phi = np.tanh(scores / 2)
    pulled = residual_times(phi)
    return -float(phi @ pulled), pulled * (phi**2 - 1)


def climb(
    K: np.ndarray, residual_times: ResidualTimes, start: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, int]:
    """Return the best point of Nesterov's accelerated descent on the smooth objective, and its steps.

    Points travel with their scores Ka, so that a step costs two products with K however often it is halved.
    Those are in single precision: they are three times as fast, and the sign at the end is what counts.
    """
    fast = K.astype(np.float32)
    n_rows, n_anchors = K.shape
    previous = current = best = np.concatenate([start, K @ start])
    value, _ = smooth_objective(current[n_anchors:], residual_times)
    best_value = value
    momentum_before, momentum, inverse_step = 0.0, 1.0, 1.0
    n_steps = 0
    for _ in range(max_iter):
        n_steps += 1
        ahead = current + (momentum_before - 1) / momentum * (current - previous)
        value_ahead, pull = smooth_objective(ahead[n_anchors:], residual_times)
        fast_gradient = fast.T @ pull.astype(np.float32)
        direction = np.concatenate([fast_gradient, fast @ fast_gradient]).astype(np.float64)
        gradient = direction[:n_anchors]
        slope = float(gradient @ gradient)
        inverse_step /= 2
        for _ in range(_MAX_DOUBLINGS):
            candidate = ahead - direction / inverse_step
            new_value, _ = smooth_objective(candidate[n_anchors:], residual_times)
            if new_value <= value_ahead - slope / (2 * inverse_step):
                break
            inverse_step *= 2
        previous, current = current, candidate
        if new_value < best_value:
            best, best_value = candidate, new_value
        if abs(new_value - value) <= tol * n_rows:
            break
        value = new_value
        momentum_before, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
    return best[:n_anchors], n_steps
