"""UnitLength: rows divided by their length, so that only directions count."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._types import LabelsLike, SamplesLike
from ..linalg import unit_rows
from .step import Step

__all__ = ["UnitLength"]


class UnitLength(Step):
    """Divide every row by its length; rows of zeros stay as they are.

    Reduced texts need it: a text of rare words has a short vector, which is near to everything otherwise.

    Examples
    --------
    >>> from starshl.features import UnitLength
    >>> UnitLength().fit_transform([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the number of columns; there is nothing else to learn."""
        self.n_features_out_ = self._rows(X, fitting=True).shape[1]
        return self

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return rows of length one."""
        check_is_fitted(self)
        return unit_rows(self._rows(X, fitting=False))

    def _rows(self, X: SamplesLike, *, fitting: bool) -> np.ndarray:
        return validate_data(self, X, reset=fitting, dtype=[np.float64, np.float32])

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(self.n_features_out_ == self.n_features_in_, "n_features_out_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
