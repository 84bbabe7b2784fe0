"""Impute: fill missing values."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._types import LabelsLike, SamplesLike
from .._validation import check_choice, is_gap
from .step import Step

__all__ = ["Impute", "is_missing", "with_none"]

_STRATEGIES = ("median", "mean", "most_frequent")


def is_missing(cells: np.ndarray) -> np.ndarray:
    """Return which entries are missing: NaN, None, or the NA or NaT of pandas."""
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    if cells.dtype.kind != "O":
        return np.zeros(cells.shape, dtype=bool)
    return np.array([is_gap(cell) for cell in cells.ravel()], dtype=bool).reshape(cells.shape)


def with_none(cells: np.ndarray) -> np.ndarray:
    """Return objects with None wherever one is missing."""
    marked = cells.astype(object)
    marked[is_missing(cells)] = None
    return marked


class Impute(Step):
    """Replace missing values by a value of their column, as scikit-learn's SimpleImputer does.

    In columns of numbers, NaN is missing; in text, None and NaN are. A column without any value is filled with zeros,
    or with empty text.

    Parameters
    ----------
    strategy : {"median", "mean", "most_frequent"}, default="median"
        What fills a column. Columns of text take "most_frequent" only.

    Attributes
    ----------
    fill_values_ : array of shape (n_features,)

    Examples
    --------
    >>> from starshl.features import Impute
    >>> Impute().fit_transform([[1.0], [float("nan")], [5.0]]).tolist()
    [[1.0], [3.0], [5.0]]
    """

    fill_values_: np.ndarray

    def __init__(self, strategy: str = "median"):
        self.strategy = strategy

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn what fills each column."""
        check_choice(self.strategy, "strategy", _STRATEGIES)
        rows = self._rows(X, fitting=True)
        is_text = rows.dtype.kind == "O"
        if is_text and self.strategy != "most_frequent":
            raise ValueError(
                f"X holds text, which has no {self.strategy}. Use strategy='most_frequent', or a TableFeatures step "
                "for a table with numbers and text."
            )
        self.fill_values_ = _most_frequent_text(rows) if is_text else _fill_numbers(rows, self.strategy)
        self.n_features_out_ = rows.shape[1]
        return self

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return the rows without missing values."""
        check_is_fitted(self)
        rows = self._rows(X, fitting=False)
        return np.where(is_missing(rows), self.fill_values_.astype(rows.dtype), rows)

    def _rows(self, X: SamplesLike, *, fitting: bool) -> np.ndarray:
        rows: np.ndarray = validate_data(self, X, reset=fitting, dtype=None, ensure_all_finite=False)
        if rows.dtype.kind in "biu":
            rows = rows.astype(np.float64)
        if rows.dtype.kind in "US":
            rows = rows.astype(object)
        if rows.dtype.kind == "O" and (not fitting and self.fill_values_.dtype.kind == "f"):
            rows = np.where(is_missing(rows), np.nan, rows).astype(np.float64)
        elif rows.dtype.kind == "O" and fitting:
            rows = _numbers_if_possible(rows)
        if rows.dtype.kind == "f" and np.isinf(rows).any():
            raise ValueError("Input X contains infinity; only NaN counts as missing. Replace infinite values first.")
        return rows

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(self.n_features_out_ == self.n_features_in_, "n_features_out_")
        self._require(self.strategy in _STRATEGIES, "strategy")
        fill = getattr(self, "fill_values_", None)
        if isinstance(fill, np.ndarray) and fill.dtype.kind == "O":
            self._require(fill.shape == (self.n_features_in_,) and not is_missing(fill).any(), "fill_values_")
        else:
            self._require_numbers("fill_values_", (self.n_features_in_,))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = self.strategy == "most_frequent"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _numbers_if_possible(X: np.ndarray) -> np.ndarray:
    """Return an object array as float64 if all its values are numbers."""
    try:
        return np.where(is_missing(X), np.nan, X).astype(np.float64)
    except ValueError:  # text; anything but text and numbers raises a TypeError
        return X


def _fill_numbers(X: np.ndarray, strategy: str) -> np.ndarray:
    # A column without a value is kept, so that the number of features does not depend on what is missing.
    imputer = SimpleImputer(strategy=strategy, keep_empty_features=True).fit(X)
    return np.nan_to_num(np.asarray(imputer.statistics_, dtype=np.float64))


def _most_frequent_text(X: np.ndarray) -> np.ndarray:
    cells = with_none(X)
    imputer = SimpleImputer(missing_values=None, strategy="most_frequent", keep_empty_features=True).fit(cells)
    return np.array([fill if isinstance(fill, str) else "" for fill in imputer.statistics_], dtype=object)
