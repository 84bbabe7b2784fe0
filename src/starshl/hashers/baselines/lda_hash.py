"""LDAHash and DIF: projections that shrink similar pairs, cut where they err least (Strecha et al. 2012)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import eigh
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...exceptions import InputError
from ...learning.linalg import gram, positive_peaks, project
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts, Variant
from ..supervision import Pairs, PairsLike, pairs_or_labels, require_both_kinds
from ._shared import principal_rows
from ._stumps import separated_weights


class LDAHash(LinearHasher):
    r"""Hash by projections along which similar pairs are close and dissimilar pairs far apart.

    With :math:`\Sigma_P` and :math:`\Sigma_N` the mean of :math:`(x - z)(x - z)^T` over similar and over
    dissimilar pairs, the projections are the n_bits smallest solutions of

    .. math::

        \Sigma_P v = \lambda \Sigma_N v \quad (\text{LDA}), \qquad
        (\alpha \Sigma_P - \Sigma_N) v = \lambda v \quad (\text{DIF}).

    Each is cut at the threshold that minimizes the share of similar pairs torn apart plus the share of
    dissimilar pairs left together.

    Labels of G classes make only G - 1 eigenvalues small, so codes much longer than that get worse.

    A choice made here, because the paper does not say: both matrices are taken in the principal components of X and,
    for LDA, get a small multiple of the identity, because constant features make them singular. Among equally good
    thresholds the one nearest the median is taken.

    Parameters
    ----------
    n_bits : int, default=32
        At most the rank of the centered rows.
    variant : {"lda", "dif"}, default="lda"
    alpha : float, default=1.0
        Weight of the similar pairs in DIF.
    threshold : {"learned", "median", "zero"}, default="learned"
        "median" gives balanced bits; "zero" cuts at the mean of the training rows.
    n_pairs : int, default=40000
        Pairs drawn from the labels, half of them similar. Ignored when ``fit`` is given pairs.
    n_components : int or None, default=40
        Principal components kept, n_bits if that is more; None keeps all with variance, whose last ones are noise
        that the ratio of both matrices blows up.
    regularization : float, default=1e-3
        Share of the mean eigenvalue (the mean diagonal) that is added to all eigenvalues of both matrices (LDA).
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    eigenvalues_ : array of shape (n_bits,), ascending
    pair_errors_ : array of shape (n_bits,)
        Share of similar pairs torn apart plus share of dissimilar pairs left together, on training pairs;
        1 is chance.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import LDAHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = LDAHash(8, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.65  # right digits among the ten nearest
    True
    >>> bool((hasher.pair_errors_ < 0.9).all())
    True
    """

    facts = Facts(
        paper="Strecha, Bronstein, Bronstein, Fua: LDAHash: Improved Matching with Smaller Descriptors",
        year=2012,
        labels="some",
        cost="pairs x components^2 + components^3",
        samples="vectors and labels or pairs",
        max_bits="rank",
    )
    variants = (
        Variant(
            "DIF",
            {"variant": "dif"},
            {
                "paper": "Strecha, Bronstein, Bronstein, Fua: LDAHash: Improved Matching with Smaller "
                "Descriptors (DIF)",
                "year": 2012,
            },
        ),
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        variant: Literal["lda", "dif"] = "lda",
        alpha: float = 1.0,
        threshold: Literal["learned", "median", "zero"] = "learned",
        n_pairs: int = 40_000,
        n_components: int | None = 40,
        regularization: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.variant = variant
        self.alpha = alpha
        self.threshold = threshold
        self.n_pairs = n_pairs
        self.n_components = n_components
        self.regularization = regularization
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> LDAHash:
        """Learn projections and thresholds from pairs, or from pairs drawn from labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Labels; unlabeled rows enter no pair. Not read if pairs are given.
        pairs : (first, second, similarity), default=None
            Row indices, and +1 for similar, -1 for dissimilar; both kinds are needed.
        """
        n_bits = self._check_settings()
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        pairs = pairs_or_labels(self, pairs, y, len(X), n_pairs=self.n_pairs, random_state=rng)
        require_both_kinds(self, pairs)
        reduced = principal_rows(X, min(X.shape) if self.n_components is None else max(self.n_components, n_bits))
        largest = len(reduced.axes)
        if n_bits > largest:
            raise InputError(
                "{parameter} is {value}",
                "X has n_features={n_features} and varies in {most} directions, so at most {most} bits can be learned",
                "Lower {parameter}.",
                parameter="n_bits",
                value=n_bits,
                n_features=X.shape[1],
                most=largest,
            )
        self.eigenvalues_, directions = self._directions(reduced.rows, pairs, n_bits)
        cuts = self._thresholds(project(reduced.rows, directions), pairs)
        self.components_, self.intercept_ = reduced.in_features(directions, -cuts, X.dtype)
        return self

    def _check_settings(self) -> int:
        check_choice(self.variant, "variant", ("lda", "dif"))
        check_choice(self.threshold, "threshold", ("learned", "median", "zero"))
        check_number(self.alpha, "alpha", low=0, strict=True)
        check_number(self.regularization, "regularization", low=0)
        check_integer(self.n_pairs, "n_pairs", low=2)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", low=1)
        return check_integer(self.n_bits, "n_bits", low=1)

    def _directions(self, rows: np.ndarray, pairs: Pairs, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest eigenvalues and their vectors as rows, in principal components."""
        differences = rows[pairs.first] - rows[pairs.second]
        near, far = (_mean_square(differences[pairs.similarity == kind]) for kind in (1, -1))
        with single_threaded_blas():
            if self.variant == "dif":
                values, vectors = eigh(self.alpha * near - far, subset_by_index=[0, n_bits - 1])
            else:
                near, far = (_regularized(matrix, self.regularization) for matrix in (near, far))
                values, vectors = eigh(near, far, subset_by_index=[0, n_bits - 1])
        return values, positive_peaks(vectors.T)

    def _thresholds(self, scores: np.ndarray, pairs: Pairs) -> np.ndarray:
        if self.threshold == "learned":
            ends = ((bit[pairs.first], bit[pairs.second]) for bit in scores.T)
            cuts = np.array([best_threshold(first, second, pairs.similarity) for first, second in ends])
        else:
            cuts = np.median(scores, axis=0) if self.threshold == "median" else np.zeros(scores.shape[1])
        bits = signs_of(scores - cuts)
        torn = bits[pairs.first] != bits[pairs.second]
        similar = pairs.similarity > 0
        self.pair_errors_ = torn[similar].mean(axis=0) + 1.0 - torn[~similar].mean(axis=0)
        return cuts


def best_threshold(first: np.ndarray, second: np.ndarray, similarity: np.ndarray) -> float:
    """Return the threshold with the fewest errors on pairs of values, weighing both kinds equally."""
    similar = similarity > 0
    weights = np.where(similar, 1.0 / similar.sum(), -1.0 / (~similar).sum())
    thresholds, sums = separated_weights(first, second, weights)
    middle = float(np.median(np.concatenate([first, second])))
    if not len(thresholds):
        return middle
    best = np.flatnonzero(sums <= sums.min() + 1e-12)
    return float(thresholds[best[np.argmin(np.abs(thresholds[best] - middle))]])


def _mean_square(differences: np.ndarray) -> np.ndarray:
    return gram(differences) / len(differences)


def _regularized(matrix: np.ndarray, share: float) -> np.ndarray:
    # Pairs of equal rows only have a matrix of zeros, which the smallest number makes invertible.
    shift = share * np.trace(matrix) / len(matrix) + np.finfo(np.float64).tiny
    return matrix + shift * np.eye(len(matrix))
