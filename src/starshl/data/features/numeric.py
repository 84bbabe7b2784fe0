"""Steps for numbers: Impute fills gaps, Scale and UnitLength bring columns and rows to one size, Reduce leaves few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self, TypeAlias, get_args

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.sparsefuncs import inplace_column_scale
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from ..._common.labels import LabelsLike, is_gap
from ..._common.validation import Rows, SamplesLike, check_choice, check_flag, check_integer
from ...learning.linalg import principal_directions, project, unit_rows
from .step import Step

#: What fills the gaps of a column.
Strategy: TypeAlias = Literal["median", "mean", "most_frequent"]


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
    >>> from starshl.data.features import Impute
    >>> Impute().fit_transform([[1.0], [float("nan")], [5.0]]).tolist()
    [[1.0], [3.0], [5.0]]
    """

    fill_values_: np.ndarray

    def __init__(self, strategy: Strategy = "median"):
        self.strategy = strategy

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn what fills each column."""
        check_choice(self.strategy, "strategy", get_args(Strategy))
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
        self._require(self.strategy in get_args(Strategy), "strategy")
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
    >>> from starshl.data.features import Scale
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


class Reduce(Step):
    """Project rows on their main directions (a truncated singular value decomposition of the centered rows).

    Features of several kinds come as views, such as the pixels and the colors of pictures. Each view is centered and
    divided by the root of its mean squared length first, so that no kind drowns the others.

    Parameters
    ----------
    n_components : int, default=256
        Number of features, fewer if rows differ in fewer directions.
    view_sizes : list of int, default=None
        How many columns each view has, in their order; None is one view.
    max_rows : int, default=2000
        Learn from at most this many rows, chosen at random.
    random_state : int, default=0
        Chooses these rows.

    Attributes
    ----------
    components_ : array of shape (n_features_out_, n_features_in_), the directions, times the weight of each view
    intercept_ : array of shape (n_features_out_,)

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.data.features import Reduce
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0]])
    >>> Reduce().fit_transform(X).tolist()
    [[-1.0], [1.0]]
    """

    components_: np.ndarray
    intercept_: np.ndarray

    def __init__(
        self,
        n_components: int = 256,
        *,
        view_sizes: Sequence[int] | None = None,
        max_rows: int = 2000,
        random_state: int = 0,
    ):
        self.n_components = n_components
        self.view_sizes = view_sizes
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the mean, the weight of each view and the main directions."""
        n_components = check_integer(self.n_components, "n_components", low=1)
        max_rows = check_integer(self.max_rows, "max_rows", low=1)
        rows = self._rows(X, fitting=True)
        if len(rows) > max_rows:
            chosen = check_random_state(self.random_state).permutation(len(rows))[:max_rows]
            rows = rows[np.sort(chosen)]
        rows = rows.astype(np.float64)
        mean = rows.mean(axis=0)
        weights = self._weights(rows - mean)
        directions, _ = principal_directions(rows * weights, n_components)
        if not len(directions):
            # All rows are the same: one direction, along which nothing differs.
            directions = np.eye(1, rows.shape[1])
        components = directions * weights
        self.components_ = components.astype(np.float32)
        self.intercept_ = -(self.components_.astype(np.float64) @ mean).astype(np.float32)
        self.n_features_out_ = len(components)
        return self

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return the rows along the main directions, in the dtype of X."""
        check_is_fitted(self)
        return project(self._rows(X, fitting=False), self.components_, self.intercept_)

    def _weights(self, centered: np.ndarray) -> np.ndarray:
        """Return the weight of each column, that of its view."""
        n_columns = centered.shape[1]
        given = [n_columns] if self.view_sizes is None else self.view_sizes
        sizes = [check_integer(size, "view_sizes", low=1) for size in given]
        if sum(sizes) != n_columns:
            raise ValueError(
                f"view_sizes is {list(sizes)}, which makes {sum(sizes)} columns; X has {n_columns}. Give the size of "
                "each view, in their order."
            )
        views = np.split(centered, np.cumsum(sizes)[:-1], axis=1)
        lengths = [np.sqrt(np.mean(np.sum(view**2, axis=1))) for view in views]
        return np.repeat([1.0 / length if length > 0 else 0.0 for length in lengths], sizes)

    def _rows(self, X: SamplesLike, *, fitting: bool) -> np.ndarray:
        return validate_data(self, X, reset=fitting, dtype=[np.float64, np.float32])

    def _check_restored(self) -> None:
        self._require_counts()
        self._require_numbers("components_", (self.n_features_out_, self.n_features_in_))
        self._require_numbers("intercept_", (self.n_features_out_,))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class UnitLength(Step):
    """Divide every row by its length; rows of zeros stay as they are.

    Reduced texts need it: a text of rare words has a short vector, which is near to everything otherwise.

    Examples
    --------
    >>> from starshl.data.features import UnitLength
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
