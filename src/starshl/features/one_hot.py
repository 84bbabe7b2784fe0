"""OneHot: one column of zeros and ones per category."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._types import LabelsLike, SamplesLike
from .impute import with_none
from .step import Step

__all__ = ["OneHot"]


class OneHot(Step):
    """Turn each column into one column per category, as scikit-learn's OneHotEncoder does.

    A missing value is its own category if ``fit`` saw one. Categories that ``fit`` did not see give zeros.

    Attributes
    ----------
    category_values_ : array of all categories, column after column
    category_counts_ : array of shape (n_features,), the number of categories in each column

    Examples
    --------
    >>> from starshl.features import OneHot
    >>> step = OneHot().fit([["red"], ["blue"]])
    >>> step.transform([["red"], ["green"]]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    category_values_: np.ndarray
    category_counts_: np.ndarray

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the categories of each column."""
        categories = OneHotEncoder().fit(self._rows(X, fitting=True)).categories_
        self.category_counts_ = np.array([len(values) for values in categories], dtype=np.int64)
        self.category_values_ = np.array([None] * int(self.category_counts_.sum()), dtype=object)
        self.category_values_[:] = [value for values in categories for value in values.tolist()]
        self.n_features_out_ = len(self.category_values_)
        return self

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return zeros and ones, shape (n_samples, n_categories)."""
        check_is_fitted(self)
        rows = self._rows(X, fitting=False)
        result = np.zeros((len(rows), self.n_features_out_))
        start = 0
        for column, count in zip(rows.T, self.category_counts_.tolist(), strict=True):
            number = {_key(value): start + j for j, value in enumerate(self.category_values_[start : start + count])}
            places = np.array([number.get(_key(value), -1) for value in column.tolist()])
            known = np.flatnonzero(places >= 0)
            result[known, places[known]] = 1.0
            start += count
        return result

    def _rows(self, X: SamplesLike, *, fitting: bool) -> np.ndarray:
        rows: np.ndarray = validate_data(self, X, reset=fitting, dtype=None, ensure_all_finite=False)
        # One word for missing: pandas.NA cannot be sorted or saved.
        return with_none(rows) if rows.dtype.kind == "O" else rows

    def _check_restored(self) -> None:
        self._require_counts()
        counts, values = getattr(self, "category_counts_", None), getattr(self, "category_values_", None)
        self._require(
            isinstance(counts, np.ndarray)
            and counts.dtype == np.int64
            and counts.shape == (self.n_features_in_,)
            and bool((counts >= 1).all())
            # The largest first: a sum of crafted counts can overflow.
            and int(counts.max()) <= self.n_features_out_
            and sum(counts.tolist()) == self.n_features_out_,
            "category_counts_",
        )
        self._require(
            isinstance(values, np.ndarray) and values.dtype == object and values.shape == (self.n_features_out_,),
            "category_values_",
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _key(value: object) -> object:
    # NaN is not equal to itself; it means for numbers what None means for text.
    return None if isinstance(value, float) and value != value else value
