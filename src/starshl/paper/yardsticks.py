"""Classifiers and clusterings to compare hashers with, and a small adapter around one hasher."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from .._threads import single_threaded_blas, tiles
from .._types import LabelsLike
from ..base import BaseHasher
from ..codebooks import separated_codewords
from ..codes import BinaryCodes
from ..facts import Facts

__all__ = [
    "FirstBits",
    "KMeansCodes",
    "MarginSVC",
    "TiledSVC",
    "label_spreading",
    "one_vs_one_svc",
    "self_training_svc",
]

_SVC_COST = 10.0
_ROWS_AT_ONCE = 1024  # their kernel values with 10,000 support rows take 80 MB


class TiledSVC(SVC):
    """A Gaussian SVC that predicts many rows at once.

    LIBSVM computes the kernel one pair of rows at a time, which for 50,000 pictures takes many times longer than
    products of matrices. Predictions are the same unless a decision is within rounding of zero.
    """

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class that wins most of its duels; among equals, the first."""
        if self.kernel != "rbf" or len(self.classes_) < 3 or not isinstance(X, np.ndarray):
            return super().predict(X)
        first, second = np.triu_indices(len(self.classes_), k=1)
        weights = self._duel_weights(first, second)
        winners = np.empty(len(X), dtype=np.int64)
        for tile in tiles(len(X), _ROWS_AT_ONCE):
            kernel = rbf_kernel(X[tile].astype(np.float64), self.support_vectors_, gamma=self._gamma)
            won = kernel @ weights + self.intercept_ > 0
            votes = np.zeros((len(won), len(self.classes_)), dtype=np.int64)
            for duel in range(len(first)):
                votes[:, first[duel]] += won[:, duel]
                votes[:, second[duel]] += ~won[:, duel]
            winners[tile] = votes.argmax(axis=1)
        return self.classes_[winners]

    def _duel_weights(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the weight of every support row in every duel of two classes, shape (n_support, n_duels).

        A support row of class c has one coefficient for each other class, in their order.
        """
        ends = np.cumsum(self.n_support_)
        weights = np.zeros((int(ends[-1]), len(first)))
        for duel, (one, other) in enumerate(zip(first, second, strict=True)):
            rows_of_one = slice(ends[one] - self.n_support_[one], ends[one])
            rows_of_other = slice(ends[other] - self.n_support_[other], ends[other])
            weights[rows_of_one, duel] = self.dual_coef_[other - 1, rows_of_one]
            weights[rows_of_other, duel] = self.dual_coef_[one, rows_of_other]
        return weights


def one_vs_one_svc(seed: int) -> SVC:
    """Return scikit-learn's Gaussian SVC, C = 10, one against one, bandwidth by its own rule."""
    return TiledSVC(C=_SVC_COST)


def label_spreading(seed: int) -> LabelSpreading:
    """Return label spreading (Zhou et al. 2004) with scikit-learn's own 7 neighbors and alpha, and more iterations."""
    return LabelSpreading(kernel="knn", n_neighbors=7, alpha=0.2, max_iter=100)


class MarginSVC(SVC):
    """An SVC whose confidence is the softmax of its one-against-rest margins.

    Platt's calibration needs several rows per class, which is impossible with one label per class.
    """

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return confidences of shape (n_samples, n_classes)."""
        margins = self.decision_function(X)
        return softmax(margins if margins.ndim == 2 else np.column_stack([-margins, margins]), axis=1)


def self_training_svc(seed: int) -> SelfTrainingClassifier:
    """Return an SVC that labels its 100 most confident rows per round and learns again, for at most 30 rounds."""
    return SelfTrainingClassifier(MarginSVC(C=_SVC_COST), criterion="k_best", k_best=100, max_iter=30)


class KMeansCodes(BaseEstimator):
    """Give a codeword to each cluster that the paper's *SHL starts from without labels: what its training must beat.

    Parameters
    ----------
    n_bits : int
    n_clusters : int
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> codes = KMeansCodes(8, n_clusters=10, random_state=0).fit(X).encode(X)
    >>> len(np.unique(codes.packed, axis=0))  # one code per cluster
    10
    """

    def __init__(self, n_bits: int = 32, *, n_clusters: int = 10, random_state: int = 0) -> None:
        self.n_bits = n_bits
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: LabelsLike = None) -> Self:
        """Cluster the rows; y is ignored."""
        rows = np.asarray(X, dtype=np.float64)
        with single_threaded_blas():
            self.k_means_ = KMeans(self.n_clusters, n_init=10, random_state=self.random_state).fit(rows)
        rng = np.random.RandomState(self.random_state)
        self.codewords_ = separated_codewords(self.n_clusters, self.n_bits, rng)
        self.transduction_ = self.k_means_.labels_.astype(np.int64)
        self.n_bits_, self.n_labeled_ = self.n_bits, 0
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the cluster of each row."""
        with single_threaded_blas():
            return self.k_means_.predict(np.asarray(X, dtype=np.float64)).astype(np.int64)

    def encode(self, X: ArrayLike) -> BinaryCodes:
        """Return the codeword of each row's cluster."""
        return BinaryCodes.from_signs(self.codewords_[self.predict(X)])

    def encode_database(self, X: ArrayLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the same codes as :meth:`encode`."""
        return self.encode(X)


class FirstBits:
    """Keep the first ``n_bits`` bits of a hasher that learns more.

    Two-layer anchor graph hashing only has even lengths; at an odd length its last bit is dropped.
    """

    def __init__(self, hasher: BaseHasher, n_bits: int) -> None:
        self.hasher, self.n_bits = hasher, n_bits

    def fit(self, X: ArrayLike, y: LabelsLike = None) -> Self:
        """Fit the hasher."""
        self.hasher.fit(X, y)
        self.n_bits_ = self.n_bits
        return self

    @property
    def current_facts(self) -> Facts:
        """The facts of the hasher."""
        return self.hasher.current_facts

    def encode(self, X: ArrayLike) -> BinaryCodes:
        """Return the first bits of the hasher's codes."""
        return self._first(self.hasher.encode(X))

    def encode_database(self, X: ArrayLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the first bits of the hasher's database codes."""
        return self._first(self.hasher.encode_database(X, y))

    def _first(self, codes: BinaryCodes) -> BinaryCodes:
        return BinaryCodes.from_signs(codes.to_signs()[:, : self.n_bits])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the hasher."""
        return self.hasher.get_params(deep)
