"""Locality-sensitive hashing: random hyperplanes (Charikar 2002) or thresholds (Gionis et al. 1999)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_rows
from ...learning.linalg import column_means, project
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts, Variant


class LSHash(BaseHasher):
    r"""Hash by the side of random hyperplanes through the mean of the training rows.

    Two rows agree in a bit with probability :math:`1 - \angle(x - m, z - m)/\pi`, where m is the mean
    (Charikar 2002). ``variant="super_bit"`` makes the directions orthogonal within blocks of at most n_features bits,
    which keeps this law and lowers the variance of the estimated angle (Ji et al. 2012).

    With ``variant="bit_sampling"`` a bit is :math:`[x_j \ge t]` for a random feature j and
    threshold t, a sampled bit of the unary code of Gionis, Indyk and Motwani (1999): rows within the training
    range agree with probability :math:`1 - \|x - z\|_1 / \sum_j r_j`, where :math:`r_j` is the range of
    feature j. Features are drawn in proportion to their range, which makes this law exact when ranges differ
    and never wastes a bit on a constant feature.

    Parameters
    ----------
    n_bits : int, default=32
    variant : {"gaussian", "super_bit", "bit_sampling"}, default="gaussian"
    center : bool, default=True
        Subtract the training mean. Without it, non-negative data (pixels) get nearly equal codes. Thresholds
        of "bit_sampling" move with the data, so it makes no difference there.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    variant_ : str
    components_ : array of shape (n_bits, n_features), of the hyperplanes
    intercept_ : array of shape (n_bits,), of the hyperplanes
    features_ : array of shape (n_bits,), "bit_sampling" only
    thresholds_ : array of shape (n_bits,), "bit_sampling" only

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import LSHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = LSHash(16, random_state=0).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.4  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Charikar: Similarity Estimation Techniques from Rounding Algorithms",
        year=2002,
        labels="ignored",
        cost="features x n_bits",
        sparse=True,
    )
    variants = (
        Variant(
            "Super-bit LSH",
            {"variant": "super_bit"},
            {"paper": "Ji, Li, Yan, Zhang, Tian: Super-Bit Locality-Sensitive Hashing", "year": 2012},
        ),
        Variant(
            "LSHash bit sampling",
            {"variant": "bit_sampling"},
            {
                "paper": "Gionis, Indyk, Motwani: Similarity Search in High Dimensions via Hashing",
                "year": 1999,
                "sparse": False,
            },
        ),
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        variant: Literal["gaussian", "super_bit", "bit_sampling"] = "gaussian",
        center: bool = True,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.variant = variant
        self.center = center
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> LSHash:
        """Draw the hyperplanes or thresholds; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        variant = check_choice(self.variant, "variant", ("gaussian", "super_bit", "bit_sampling"))
        X = check_rows(self, X, fitting=True, accept_sparse=variant != "bit_sampling")
        rng = check_random_state(self.random_state)
        self.variant_ = variant
        if variant == "bit_sampling":
            self._fit_thresholds(X, n_bits, rng)
        else:
            self._fit_hyperplanes(X, n_bits, rng)
        return self

    def _fit_hyperplanes(self, X: np.ndarray | csr_array, n_bits: int, rng: np.random.RandomState) -> None:
        n_features = X.shape[1]
        directions = rng.standard_normal((n_bits, n_features))
        if self.variant_ == "super_bit":
            blocks = range(0, n_bits, n_features)
            directions = np.vstack([_orthonormal_rows(directions[b : b + n_features]) for b in blocks])
        mean = column_means(X) if self.center else np.zeros(n_features)
        self.components_ = directions.astype(X.dtype)
        self.intercept_ = -project(directions, mean[None])[:, 0].astype(X.dtype)

    def _fit_thresholds(self, X: np.ndarray, n_bits: int, rng: np.random.RandomState) -> None:
        low, ranges = X.min(axis=0), np.ptp(X, axis=0).astype(np.float64)
        weights = ranges if ranges.any() else np.ones(len(ranges))
        self.features_ = rng.choice(len(ranges), n_bits, p=weights / weights.sum())
        share = rng.random_sample(n_bits)
        self.thresholds_ = (low[self.features_] + share * ranges[self.features_]).astype(X.dtype)

    def _learned_indices(self) -> dict[str, int]:
        return {"features_": self.n_features_in_} if self.variant_ == "bit_sampling" else {}

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return signed distances to the hyperplanes or thresholds, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False, accept_sparse=self.variant_ != "bit_sampling")
        if self.variant_ != "bit_sampling":
            return project(X, self.components_, self.intercept_)
        return X[:, self.features_] - self.thresholds_


def _orthonormal_rows(block: np.ndarray) -> np.ndarray:
    with single_threaded_blas():
        q, r = np.linalg.qr(block.T)
    # The signs of R's diagonal belong to the draw: with them the rows are uniform on the sphere.
    return (q * np.where(np.diag(r) >= 0, 1.0, -1.0)).T
