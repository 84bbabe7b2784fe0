"""Kernelized locality-sensitive hashing (Kulis and Grauman 2009)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_rows
from ...learning.kernels.anchors import choose_anchors, gaussian_features, gaussian_scale
from ...learning.linalg import fill_by_tiles, project
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts

_EIGENVALUE_TOL = 1e-8  # share of the largest; below it is rounding, whose inverse root would be noise


class KernelLSH(BaseHasher):
    r"""Hash by random hyperplanes in the feature space of a kernel.

    A random direction is a whitened mean of a few anchors, nearly Gaussian by the central limit theorem.
    With K the kernel of p anchors, centered in feature space, and S a random subset of t of them,

    .. math:: w_b = K^{-1/2}\left(e_S - \tfrac{t}{p} 1\right), \qquad
              h_b(x) = \mathrm{sign}\Big(\sum_i w_{bi}\, \tilde k(x, a_i)\Big)

    (Kulis and Grauman 2009), where :math:`\tilde k` is centered with the anchors' means, too.
    The weights of a bit sum to zero, so all that remains of this centering is a constant, the intercept.
    O(n_anchors^3) to fit.

    Parameters
    ----------
    n_bits : int, default=32
    n_anchors : int, default=300
        Training rows drawn at random; all distinct rows if there are no more.
    n_subset : int, default=30
        Anchors that make one direction, at most a quarter of them.
    kernel : {"gaussian", "linear"} or callable, default="gaussian"
        A callable takes two arrays of rows and returns the matrix of kernel values; a model with one cannot
        be saved.
    sigma : float, "rms" or "half_rms", default="rms"
        Width of the Gaussian :math:`\exp(-\|x - a\|^2 / 2\sigma^2)`; "rms" is the root mean squared distance to the
        anchors.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : array of shape (n_anchors, n_features)
    coefficients_ : array of shape (n_bits, n_anchors)
    intercept_ : array of shape (n_bits,)
    scale_ : float, :math:`2\sigma^2`
    kernel_ : the kernel as given

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import KernelLSH
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = KernelLSH(16, random_state=0).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.5  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Kulis, Grauman: Kernelized Locality-Sensitive Hashing for Scalable Image Search",
        year=2009,
        labels="ignored",
        cost="anchors^3 + anchors^2 x n_bits",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_anchors: int = 300,
        n_subset: int = 30,
        kernel: Literal["gaussian", "linear"] | Callable[[np.ndarray, np.ndarray], ArrayLike] = "gaussian",
        sigma: float | Literal["rms", "half_rms"] = "rms",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.n_subset = n_subset
        self.kernel = kernel
        self.sigma = sigma
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> KernelLSH:
        """Draw anchors and directions; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        n_subset = check_integer(self.n_subset, "n_subset", low=1)
        if not callable(self.kernel):
            check_choice(self.kernel, "kernel", ("gaussian", "linear"))
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        self.anchors_ = choose_anchors(X, "random", self.n_anchors, rng)
        self.scale_ = gaussian_scale(self.sigma, X, self.anchors_)
        self.kernel_ = self.kernel
        K = self._kernel_values(self.anchors_).astype(np.float64)
        subset_size = max(1, min(n_subset, len(K) // 4))
        indicators = np.zeros((n_bits, len(K)))
        for row in indicators:
            row[rng.choice(len(K), subset_size, replace=False)] = 1.0
        coefficients = project(indicators - subset_size / len(K), inverse_root(centered_kernel(K)))
        self.coefficients_ = coefficients.astype(X.dtype)
        self.intercept_ = -project(coefficients, K.mean(axis=1)[None])[:, 0].astype(X.dtype)
        return self

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the products with the random directions, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        coefficients, intercept = self.coefficients_.T.astype(X.dtype), self.intercept_.astype(X.dtype)
        return fill_by_tiles(
            len(X), coefficients.shape[1], X.dtype, lambda tile: self._kernel_values(X[tile]) @ coefficients + intercept
        )

    def _kernel_values(self, rows: np.ndarray) -> np.ndarray:
        if callable(self.kernel_):
            return np.asarray(self.kernel_(rows, self.anchors_), dtype=rows.dtype)
        if self.kernel_ == "linear":
            return project(rows, self.anchors_)
        return gaussian_features(rows, self.anchors_, self.scale_)


def centered_kernel(K: np.ndarray) -> np.ndarray:
    """Return the kernel of the same rows minus their mean in feature space."""
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean()


def inverse_root(K: np.ndarray) -> np.ndarray:
    """Return the pseudo-inverse square root; eigenvalues up to 1e-8 of the largest count as zero."""
    with single_threaded_blas():
        values, vectors = np.linalg.eigh(K)
        kept = values > _EIGENVALUE_TOL * max(values[-1], np.finfo(np.float64).tiny)
        return (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
