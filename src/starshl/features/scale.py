"""Scale: bring every column to mean 0 and standard deviation 1."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.sparsefuncs import inplace_column_scale
from sklearn.utils.validation import check_is_fitted, validate_data

from .._types import LabelsLike, Rows, SamplesLike
from .._validation import check_flag
from .step import Step

__all__ = ["Scale"]


class Scale(Step):
    """Subtract each column's mean and divide by its standard deviation, as scikit-learn's StandardScaler does.

    Missing values (NaN) are ignored by ``fit`` and kept by ``transform``. Constant columns are only centered.

    Parameters
    ----------
    center : bool, default=True
        Subtract the mean. False keeps sparse rows sparse.

    Attributes
    ----------
    mean_ : array of shape (n_features,), zeros without centering
    scale_ : array of shape (n_features,)

    Examples
    --------
    >>> from starshl.features import Scale
    >>> Scale().fit_transform([[0.0, 100.0], [2.0, 300.0]]).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """

    mean_: np.ndarray
    scale_: np.ndarray

    def __init__(self, center: bool = True):
        self.center = center

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the mean and the standard deviation of each column."""
        check_flag(self.center, "center")
        rows = self._rows(X, fitting=True)
        if sparse.issparse(rows) and self.center:
            raise ValueError("Centering would fill a sparse matrix. Use Scale(center=False), or dense rows.")
        scaler = StandardScaler(with_mean=self.center).fit(rows)
        self.mean_ = scaler.mean_ if self.center else np.zeros(rows.shape[1])
        self.scale_ = scaler.scale_
        self.n_features_out_ = rows.shape[1]
        return self

    def transform(self, X: SamplesLike) -> Rows:
        """Return the scaled rows."""
        check_is_fitted(self)
        rows = self._rows(X, fitting=False).copy()
        if sparse.issparse(rows):
            inplace_column_scale(rows, 1 / self.scale_)
            return rows
        # In place: the arithmetic is that of float64, and float32 rows stay float32.
        rows -= self.mean_
        rows /= self.scale_
        return rows

    def _rows(self, X: SamplesLike, *, fitting: bool) -> Rows:
        return validate_data(
            self,
            X,
            reset=fitting,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(self.n_features_out_ == self.n_features_in_, "n_features_out_")
        self._require(type(self.center) is bool, "center")
        self._require_numbers("mean_", (self.n_features_in_,))
        self._require_numbers("scale_", (self.n_features_in_,))
        self._require(bool((self.scale_ > 0).all()), "scale_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = not self.center
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
