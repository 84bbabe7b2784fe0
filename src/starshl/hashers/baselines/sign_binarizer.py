"""Binary quantization: one bit per feature, as vector databases do to embeddings."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from ..._common.labels import LabelsLike
from ..._common.validation import SamplesLike, check_choice, check_integer, check_rows
from ...exceptions import InputError
from ...learning.linalg import column_means
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts


class SignBinarizer(BaseHasher):
    r"""Cut each feature at its mean, its median or zero.

    .. math:: h_j(x) = \mathrm{sign}(x_j - t_j)

    Made for embeddings, in which every feature carries some meaning, at one bit per feature. The leading features of
    other data need not carry any: the first pixels of a picture are its empty margin.

    Parameters
    ----------
    n_bits : int or "all", default="all"
        The leading features to keep, at most n_features. Only embeddings whose leading features matter most
        ("Matryoshka") should be shortened this way.
    threshold : {"mean", "median", "zero"}, default="mean"
        "median" balances every bit on the training rows; "zero" is what databases do without training.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.

    Attributes
    ----------
    thresholds_ : array of shape (n_bits,)

    Examples
    --------
    >>> from starshl.hashers.baselines import SignBinarizer
    >>> SignBinarizer().fit_transform([[0.0, 5.0], [2.0, 1.0]]).tolist()
    [[-1, 1], [1, -1]]
    """

    facts = Facts(
        paper="Common practice: binary quantization of embeddings, as in vector databases",
        year=2023,
        labels="ignored",
        cost="n x features",
        max_bits="n_features",
        sparse=True,
        full_length=True,
    )

    def __init__(
        self,
        n_bits: int | Literal["all"] = "all",
        *,
        threshold: Literal["mean", "median", "zero"] = "mean",
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits  # type: ignore[assignment]  # fit turns "all" into a number, n_bits_
        self.threshold = threshold
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> SignBinarizer:
        """Compute the thresholds; y is ignored. Sparse rows have no median here."""
        threshold = check_choice(self.threshold, "threshold", ("mean", "median", "zero"))
        everything = isinstance(self.n_bits, str) and self.n_bits == "all"
        n_bits = None if everything else check_integer(self.n_bits, "n_bits", low=1)
        X = check_rows(self, X, fitting=True, accept_sparse=threshold != "median")
        if not everything and n_bits > X.shape[1]:
            raise InputError(
                "{parameter} is {value}",
                "X has {most} feature(s), and each gives one bit, so {parameter} can be at most {most} here",
                "Lower it, or use a method without this limit, such as LSHash.",
                parameter="n_bits",
                value=n_bits,
                most=X.shape[1],
            )
        X = X[:, :n_bits]
        if threshold == "mean":
            thresholds = column_means(X)
        elif threshold == "median":
            thresholds = np.median(X, axis=0)
        else:
            thresholds = np.zeros(X.shape[1])
        self.thresholds_ = thresholds.astype(X.dtype)
        self.n_bits_ = len(thresholds)
        return self

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the features minus their thresholds, shape (n_samples, n_bits)."""
        kept = check_rows(self, X, fitting=False, accept_sparse=True)[:, : self.n_bits_]
        rows = kept.toarray() if isinstance(kept, csr_array) else kept
        return rows - self.thresholds_.astype(rows.dtype, copy=False)
