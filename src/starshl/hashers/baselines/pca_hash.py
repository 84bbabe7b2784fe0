"""PCA hashing: signs of the leading principal components."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_rows
from ...learning.linalg import column_means, principal_directions, project, required_directions
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts


class PCAHash(LinearHasher):
    r"""Cut the rows at their mean along the n_bits directions of largest variance.

    .. math:: h_b(x) = \mathrm{sign}(p_b^\top (x - \bar x))

    The variance of later directions is small, so later bits are nearly noise and retrieval gets worse with
    many bits; a rotation helps (:class:`RandomRotation`, :class:`ITQ`). It is the start of Wang, Kumar and
    Chang (2012) and of Gong and Lazebnik (2011). O(n d min(n, d)) to fit.

    Parameters
    ----------
    n_bits : int, default=32
    overflow : {"raise", "random"}, default="raise"
        What to do when n_bits exceeds the rank of the centered rows: refuse, or add random directions.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the random directions.

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    variances_ : array of shape (n_directions,), variance along the principal directions

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import PCAHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = PCAHash(16).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.6  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Wang, Kumar, Chang: Semi-Supervised Hashing for Large-Scale Search (its unsupervised case)",
        year=2012,
        labels="ignored",
        cost="n x features x min(n, features)",
        max_bits="rank",
        sparse=True,
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        overflow: Literal["raise", "random"] = "raise",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.overflow = overflow
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> PCAHash:
        """Compute the principal directions; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        overflow = check_choice(self.overflow, "overflow", ("raise", "random"))
        X = check_rows(self, X, fitting=True, accept_sparse=True)
        if overflow == "raise":
            directions, self.variances_ = required_directions(X, n_bits, "n_bits")
        else:
            directions, self.variances_ = principal_directions(X, n_bits)
            rng = check_random_state(self.random_state)
            extra = rng.standard_normal((n_bits - len(directions), X.shape[1]))
            directions = np.vstack([directions, extra])
        mean = column_means(X)
        self.components_ = directions.astype(X.dtype)
        self.intercept_ = -project(directions, mean[None])[:, 0].astype(X.dtype)
        return self
