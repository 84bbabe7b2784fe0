"""Column-sampling based discrete supervised hashing (Kang, Li and Zhou 2016)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...learning.kernels.anchors import choose_anchors, gaussian_expansion, gaussian_features, gaussian_scale
from ...learning.linalg import project
from ...learning.solvers.ridge import FeatureRidge, share_of_diagonal
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts, Variant
from ..supervision import require_labels

# A larger share makes smoother functions, a smaller one follows the learned codes more closely.
_DEFAULT_REGULARIZATION = {"linear": 0.1, "kernel": 1e-4}
# A flip that gains less may be rounding, which two flips could pass back and forth forever.
_IMPROVEMENT_TOL = 1e-9


class COSDISH(BaseHasher):
    r"""Choose codes whose inner products follow class similarity, column by column of the similarities.

    For similarities S (1 for one class, :math:`-\beta` for two) the codes should minimize

    .. math:: \sum_{ij} (B S_{ij} - h_i^\top h_j)^2, \qquad h_i \in \{-1, +1\}^B .

    Each iteration looks at the columns of a random set :math:`\Omega` of rows and alternates two steps:

    1. all other rows: :math:`h_i = \mathrm{sign}(\sum_{j \in \Omega} S_{ij} h_j)`, where a zero keeps its
       sign; for :math:`\beta = 1` this minimizes the absolute errors exactly;
    2. the rows of :math:`\Omega`, one bit at a time: a binary quadratic problem, on which signs are flipped,
       the best first, until no flip lowers the squared error. (The paper solves it by a clustering routine.)

    A column holds the similarities of one row to all others, which classes give and a list of pairs does not; KSH
    learns from pairs.

    Then one regression per bit carries the codes over to new rows; the codes of training rows come from it, too.
    Given classes, step 1 writes one code per class, so the result is a learned codebook, and the regression
    decides how well it is hit. The paper's boosted trees are not built here; ``variant="kernel"`` is the strong
    choice instead.

    Parameters
    ----------
    n_bits : int, default=32
    max_iter : int, default=10
        Sets of columns, one after another.
    max_inner_iter : int, default=3
        Repetitions of the two steps for each set.
    n_columns : int or None, default=None
        Size of :math:`\Omega`; None takes n_bits, but at least ten per class: with fewer, classes would be
        missing from it and share one code.
    balance : bool, default=True
        Set :math:`\beta` to the ratio of similar to dissimilar pairs, so that both weigh the same; otherwise
        it is 1.
    variant : {"linear", "kernel"}, default="linear"
        Ridge regression on the centered features, or on Gaussians around 1,000 random training rows.
    regularization : float or None, default=None
        Penalty of the regression, as a share of the mean diagonal of :math:`\Phi^\top\Phi` (the features
        :math:`\Phi` of all training rows, without the constant). None is 0.1 for "linear", 1e-4 for "kernel".
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    objective_history_ : array of shape (2 * max_iter * max_inner_iter,)
        The squared error over the columns of :math:`\Omega`, relative to codes of zeros, before and after
        each step 2, which never raises it.
    coefficients_ : array of shape (n_bits, n_features) or (n_bits, n_anchors)
    intercept_ : array of shape (n_bits,)
    n_iter_ : int, sets of columns used
    variant_ : str
    anchors_, scale_ : of the Gaussians, "kernel" only

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import COSDISH
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = COSDISH(16, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.8  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Kang, Li, Zhou: Column Sampling Based Discrete Supervised Hashing",
        year=2016,
        labels="required",
        cost="iterations x n x n_bits x columns",
        samples="vectors and labels",
    )
    variants = (Variant("COSDISH kernel", {"variant": "kernel"}, {}),)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        max_iter: int = 10,
        max_inner_iter: int = 3,
        n_columns: int | None = None,
        balance: bool = True,
        variant: Literal["linear", "kernel"] = "linear",
        regularization: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.max_iter = max_iter
        self.max_inner_iter = max_inner_iter
        self.n_columns = n_columns
        self.balance = balance
        self.variant = variant
        self.regularization = regularization
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> COSDISH:
        """Learn codes from classes, then the functions that write them; y holds one class per row."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        check_integer(self.max_iter, "max_iter", low=1)
        check_integer(self.max_inner_iter, "max_inner_iter", low=1)
        variant = check_choice(self.variant, "variant", ("linear", "kernel"))
        share = _DEFAULT_REGULARIZATION[variant] if self.regularization is None else self.regularization
        check_number(share, "regularization", low=0, strict=True)
        X = check_rows(self, X, fitting=True)
        labels = require_labels(self, y, len(X), n_classes=2)
        rng = check_random_state(self.random_state)
        self.classes_ = labels.classes
        codes = self._learn_codes(labels.index, n_bits, rng)
        self.variant_ = variant
        if variant == "linear":
            coefficients, intercept = _linear_regression(X, codes, share)
        else:
            coefficients, intercept = self._kernel_regression(X, codes, share, rng)
        self.coefficients_, self.intercept_ = coefficients.astype(X.dtype), intercept.astype(X.dtype)
        return self

    def _learn_codes(self, classes: np.ndarray, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
        """Return codes of the training rows, (n_samples, n_bits) float64; record the history."""
        n_rows, sizes = len(classes), np.bincount(classes)
        if self.n_columns is None:
            n_columns = max(n_bits, 10 * len(sizes))
        else:
            n_columns = check_integer(self.n_columns, "n_columns", low=1)
        similar = float(sizes @ sizes)
        dissimilar = -similar / (n_rows**2 - similar) if self.balance else -1.0
        codes = signs_of(rng.standard_normal((n_rows, n_bits))).astype(np.float64)
        history = []
        for _ in range(self.max_iter):
            shuffled = rng.permutation(n_rows)
            inside, outside = shuffled[:n_columns], shuffled[n_columns:]
            S = np.where(classes[:, None] == classes[inside], 1.0, dissimilar)
            for _ in range(self.max_inner_iter):
                codes[outside] = similar_codes(S[outside], codes[inside], codes[outside])
                before = column_error(S, codes, inside)
                codes[inside] = improve_columns(S[inside], S[outside], codes[inside], codes[outside])
                history.append((before, column_error(S, codes, inside)))
        self.objective_history_ = np.ravel(history)
        self.n_iter_ = self.max_iter
        return codes

    def _kernel_regression(
        self, X: np.ndarray, codes: np.ndarray, share: float, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray]:
        self.anchors_ = choose_anchors(X, "random", 1000, rng)
        self.scale_ = gaussian_scale("half_rms", X, self.anchors_)
        return _regress(gaussian_features(X, self.anchors_, self.scale_).astype(np.float64), codes, share)

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the regression onto codes, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        if self.variant_ == "linear":
            return project(X, self.coefficients_, self.intercept_)
        return gaussian_expansion(X, self.anchors_, self.scale_, self.coefficients_, self.intercept_)


def _regress(features: np.ndarray, codes: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    penalty = share_of_diagonal(share, np.sum(features**2, axis=0))
    regression = FeatureRidge(features, penalty)
    return regression.split(regression.solve(codes))


def _linear_regression(X: np.ndarray, codes: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    mean = X.mean(axis=0, dtype=np.float64)
    centered = X - mean
    scale = np.sqrt(np.mean(centered**2)) or 1.0
    coefficients, intercept = _regress(centered / scale, codes, share)
    coefficients = coefficients / scale
    return coefficients, intercept - project(coefficients, mean[None])[:, 0]


def similar_codes(S: np.ndarray, codes_inside: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Return ``sign(S @ codes_inside)``; where that is zero the old sign stays.

    Examples
    --------
    >>> H = np.array([[1.0, 1.0], [-1.0, 1.0]])
    >>> similar_codes(np.array([[1.0, -1.0]]), H, np.array([[-1.0, -1.0]])).tolist()
    [[1.0, -1.0]]
    """
    with single_threaded_blas():
        votes = S @ codes_inside
    # Balanced votes of unequal weights cancel only up to rounding.
    tied = np.abs(votes) <= 1e-9 * len(codes_inside)
    return np.where(tied, old, signs_of(votes))


def improve_columns(
    S_inside: np.ndarray, S_outside: np.ndarray, H: np.ndarray, codes_outside: np.ndarray
) -> np.ndarray:
    """Return codes of the sampled rows after one pass of sign flips over the bits.

    With the other bits fixed, bit h of the sampled rows and g of the others has the squared error
    ``-2 h'Rh - 2 h'T'g`` plus a constant, R and T being what the other bits leave of B S.

    Parameters
    ----------
    S_inside : array of shape (n_columns, n_columns)
    S_outside : array of shape (n_others, n_columns)
    H : array of shape (n_columns, n_bits)
    codes_outside : array of shape (n_others, n_bits)
    """
    H, n_bits = H.copy(), H.shape[1]
    with single_threaded_blas():
        toward = n_bits * (S_outside.T @ codes_outside)
        overlaps = codes_outside.T @ codes_outside
        for k in range(n_bits):
            others = np.arange(n_bits) != k
            quadratic = n_bits * S_inside - H[:, others] @ H[:, others].T
            linear = toward[:, k] - H[:, others] @ overlaps[others, k]
            column = H[:, k].copy()
            descend_by_flips(quadratic, linear, column)
            H[:, k] = column
    return H


@njit(cache=True, nogil=True)
def descend_by_flips(quadratic: np.ndarray, linear: np.ndarray, signs: np.ndarray) -> int:
    """Lower -2 h'Qh - 2 l'h by flipping signs of h in place, the best flip first; return how many.

    Flipping h_i changes it by 8 h_i sum_{j != i} Q_ij h_j + 4 l_i h_i; Q is symmetric.
    """
    size = signs.shape[0]
    fields = np.empty(size)
    for i in range(size):
        total = 0.0
        for j in range(size):
            if j != i:
                total += quadratic[i, j] * signs[j]
        fields[i] = 2.0 * total + linear[i]
    n_flips = 0
    while True:
        best, lowest = -1, -_IMPROVEMENT_TOL
        for i in range(size):
            if signs[i] * fields[i] < lowest:
                best, lowest = i, signs[i] * fields[i]
        if best < 0:
            return n_flips
        signs[best] = -signs[best]
        for i in range(size):
            if i != best:
                fields[i] += 4.0 * quadratic[i, best] * signs[best]
        n_flips += 1


def column_error(S: np.ndarray, codes: np.ndarray, inside: np.ndarray) -> float:
    """Return the squared error of all rows against the sampled columns, relative to codes of zeros."""
    n_bits = codes.shape[1]
    with single_threaded_blas():
        residual = n_bits * S - codes @ codes[inside].T
    return float(np.sum(residual**2) / np.sum((n_bits * S) ** 2))
