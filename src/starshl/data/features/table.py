"""Cells of a table as numbers: TableFeatures for columns of any kind, and OneHot for categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._common.labels import LabelsLike
from ..._common.validation import SamplesLike, check_choice, check_flag, check_integer
from ..._common.warn import warn_caller
from .minilm import MiniLM
from .numeric import Impute, Scale, UnitLength, is_missing, with_none
from .onnx_model import OnnxModel
from .reading import cut_note, read_items
from .registry import named_steps
from .sentence_model import SentenceTransformerModel
from .step import Reader, Step
from .text import Text, texts_of

Column = str | int
_TEXT_STEPS = ("vectorizer_", "normalizer_")  # the attributes that hold the steps of an embedder


class OneHot(Step):
    """Turn each column into one column per category, as scikit-learn's OneHotEncoder does.

    A missing value is its own category if ``fit`` saw one. Categories that ``fit`` did not see give zeros.

    Attributes
    ----------
    category_values_ : array of all categories, column after column
    category_counts_ : array of shape (n_features,), the number of categories in each column

    Examples
    --------
    >>> from starshl.data.features import OneHot
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


class TableFeatures(Step):
    """Turn a table of numbers, categories and text into numeric features.

    Columns of numbers come first, then one column per category, then the features of the text column.

    Parameters
    ----------
    categories : list of column names or positions, or "auto", default="auto"
        Columns to turn into one column per category. "auto" takes every column that holds anything but numbers and is
        not the text column; an empty list refuses such columns.
    text : column name or position, default=None
        The column whose words become features.
    drop : list of column names or positions, default=()
        Columns to leave out, for example ids.
    impute : bool, default=True
        Fill missing numbers with the median of their column and missing categories with the most frequent one. Without
        it, missing numbers stay NaN and a missing category is its own category.
    scale : bool, default=True
        Bring the columns of numbers to mean 0 and standard deviation 1.
    n_components : int, default=100
        Number of features made from the words of the text, without an embedder.
    embedder : str, default=None
        What makes features of the text: a name of :func:`make_embedder`, such as "minilm". None is :class:`Text`.

    Attributes
    ----------
    n_features_in_ : int, number of columns of the table
    feature_names_in_ : array of column names, if the table has them
    number_columns_, category_columns_ : positions of the columns of each kind
    text_column_ : position of the text column, -1 without one

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.data.features import TableFeatures
    >>> table = np.array([[1.0, "red"], [3.0, "blue"], [None, "red"]], dtype=object)
    >>> TableFeatures(scale=False).fit_transform(table).tolist()
    [[1.0, 0.0, 1.0], [3.0, 1.0, 0.0], [2.0, 0.0, 1.0]]
    """

    feature_names_in_: np.ndarray
    number_columns_: np.ndarray
    category_columns_: np.ndarray
    text_column_: int
    encoder_: OneHot

    def __init__(
        self,
        categories: str | Sequence[Column] = "auto",
        text: Column | None = None,
        drop: Sequence[Column] = (),
        impute: bool = True,
        scale: bool = True,
        n_components: int = 100,
        embedder: str | None = None,
    ):
        self.categories = categories
        self.text = text
        self.drop = drop
        self.impute = impute
        self.scale = scale
        self.n_components = n_components
        self.embedder = embedder

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn what each column holds and how to turn it into numbers."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: SamplesLike, y: LabelsLike = None, **params: Any) -> np.ndarray:
        """Fit the step and return the features of the same rows, whose texts are read once."""
        check_flag(self.impute, "impute")
        check_flag(self.scale, "scale")
        columns, names = _columns_of(X)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.n_features_in_ = len(columns)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._assign_columns(columns, names)
        features = self._features(columns, fitting=True)
        self.n_features_out_ = features.shape[1]
        return features

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return the features of the rows of a table with the same columns."""
        check_is_fitted(self)
        return self._features(self._matching_columns(X), fitting=False)

    def number_steps(self) -> dict[str, Step]:
        """Return the steps that columns of numbers go through, not fitted, by the attributes of the fitted ones."""
        return ({"imputer_": Impute()} if self.impute else {}) | ({"scaler_": Scale()} if self.scale else {})

    def _assign_columns(self, columns: list[np.ndarray], names: list[str] | None) -> None:
        text = -1 if self.text is None else _position(self.text, "text", names, len(columns))
        dropped = {_position(column, "drop", names, len(columns)) for column in self.drop}
        free = [j for j in range(len(columns)) if j not in dropped and j != text]
        if isinstance(self.categories, str):
            check_choice(self.categories, "categories", ("auto",))
            categories = [j for j in free if not _holds_numbers(columns[j])]
        else:
            categories = [_position(column, "categories", names, len(columns)) for column in self.categories]
        times_named = Counter([*categories, *dropped, *([] if text < 0 else [text])])
        for j in sorted(j for j, times in times_named.items() if times > 1):
            raise ValueError(
                f"{_column_name(j, names)} is named twice. Name it only once, in categories, text or drop."
            )
        numbers = [j for j in free if j not in categories]
        for j in numbers:
            if not _holds_numbers(columns[j]):
                raise ValueError(
                    f"{_column_name(j, names)} holds something other than numbers. Name it in categories or drop."
                )
        if text < 0 and not free:
            raise ValueError("No column is left for features. Drop fewer columns.")
        self.number_columns_ = np.array(numbers, dtype=np.int64)
        self.category_columns_ = np.array(sorted(categories), dtype=np.int64)
        self.text_column_ = text

    def _features(self, columns: list[np.ndarray], *, fitting: bool) -> np.ndarray:
        parts = []
        if len(self.number_columns_):
            numbers = np.stack([self._as_numbers(columns[j], j) for j in self.number_columns_], axis=1)
            parts.append(self._run(self.number_steps(), numbers, fitting=fitting))
        if len(self.category_columns_):
            cells = np.stack([_as_categories(columns[j]) for j in self.category_columns_], axis=1)
            parts.append(self._run(self._category_steps(), cells, fitting=fitting))
        if self.text_column_ >= 0:
            parts.append(self._text_features(columns[self.text_column_], fitting=fitting))
        return np.hstack(parts)

    def _text_features(self, cells: np.ndarray, *, fitting: bool) -> np.ndarray:
        if fitting:
            words = [Text(self.n_components)]
            made = words if self.embedder is None else named_steps(self.embedder, "texts").steps
            for name, step in zip(_TEXT_STEPS, made, strict=False):
                setattr(self, name, step)
        steps = self.text_steps
        readers = list(takewhile(lambda step: isinstance(step, Reader), steps))
        rows: Any = texts_of(cells)
        if readers:
            note = cut_note(str(self.embedder), readers, rows)
            if note is not None:
                warn_caller(note)
            rows = read_items(rows, ["texts"], readers, progress=None)
        for step in steps[len(readers) :]:
            rows = (step.fit(rows) if fitting else step).transform(rows)
        return np.asarray(rows)

    @property
    def text_steps(self) -> list[Step]:
        """The fitted steps that turn the text column into features."""
        return [getattr(self, name) for name in _TEXT_STEPS if hasattr(self, name)]

    def _as_numbers(self, cells: np.ndarray, position: int) -> np.ndarray:
        if cells.dtype.kind == "O":
            cells = np.where(is_missing(cells), np.nan, cells)
        try:
            return cells.astype(np.float64)
        except (TypeError, ValueError) as error:
            row = next(row for row, cell in enumerate(cells.tolist()) if not _is_number(cell))
            names = getattr(self, "feature_names_in_", None)
            raise ValueError(
                f"{_column_name(position, names)} holds {cells[row]!r} in row {row}, counting from 0; the step was "
                "fitted on numbers there. Convert it first."
            ) from error

    def _run(self, steps: dict[str, Step], cells: np.ndarray, *, fitting: bool) -> np.ndarray:
        for name, new in steps.items():
            if fitting:
                setattr(self, name, new.fit(cells))
            cells = getattr(self, name).transform(cells)
        return cells

    def _category_steps(self) -> dict[str, Step]:
        filled = {"category_imputer_": Impute("most_frequent")} if self.impute else {}
        return filled | {"encoder_": OneHot()}

    def _matching_columns(self, X: SamplesLike) -> list[np.ndarray]:
        columns, names = _columns_of(X)
        fitted_names = getattr(self, "feature_names_in_", None)
        if names is not None and fitted_names is not None:
            by_name = dict(zip(names, columns, strict=True))
            absent = [repr(name) for name in fitted_names if name not in by_name]
            if absent:
                raise ValueError(f"X lacks the columns {', '.join(absent)} that the step was fitted on. Add them.")
            return [by_name[name] for name in fitted_names]
        if len(columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(columns)} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input. Give the columns of the fit, in their order."
            )
        return columns

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(type(self.impute) is bool and type(self.scale) is bool, "impute")
        self._require(type(self.text_column_) is int and -1 <= self.text_column_ < self.n_features_in_, "text_column_")
        if hasattr(self, "feature_names_in_"):
            names = self.feature_names_in_
            self._require(isinstance(names, np.ndarray) and names.shape == (self.n_features_in_,), "feature_names_in_")
        n_features = 0
        for name, steps in (("number_columns_", self.number_steps()), ("category_columns_", self._category_steps())):
            self._require(_are_positions(getattr(self, name, None), self.n_features_in_), name)
            columns = getattr(self, name)
            n_features += self._checked_size(steps, len(columns)) if len(columns) else 0
        n_features += self._checked_text_size() if self.text_column_ >= 0 else 0
        self._require(n_features == self.n_features_out_, "n_features_out_")

    def _checked_text_size(self) -> int:
        # Not compared with those of the embedder: the weights of a network need not be here to open a model.
        kinds = (Text | MiniLM | OnnxModel | SentenceTransformerModel, UnitLength)
        self._require(hasattr(self, _TEXT_STEPS[0]), "embedder")
        n_columns = 1
        for step, kind in zip(self.text_steps, kinds, strict=False):
            self._require(isinstance(step, kind) and step.n_features_in_ == n_columns, "embedder")
            n_columns = step.n_features_out_
        return n_columns

    def _checked_size(self, steps: dict[str, Step], n_columns: int) -> int:
        """Return the number of features that restored steps make; refuse steps that do not follow each other."""
        for name, new in steps.items():
            part: Any = getattr(self, name, None)
            self._require(type(part) is type(new) and part.n_features_in_ == n_columns, name)
            n_columns = part.n_features_out_
        return n_columns

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


def _columns_of(X: Any) -> tuple[list[np.ndarray], list[str] | None]:
    """Return the columns of a data frame or a matrix, and their names if it has some."""
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        keys = list(X.columns)
        names = [str(key) for key in keys]  # a number and its text are different keys of a table, and the same name
        if len(set(names)) < len(names):
            twice = next(name for position, name in enumerate(names) if name in names[:position])
            raise ValueError(f"X has two columns of the name {twice!r}. Rename one of them.")
        return [np.asarray(X[key]) for key in keys], names
    if sparse.issparse(X):
        raise ValueError("X is a sparse matrix; a table needs its cells. Call toarray(), or use Scale(center=False).")
    # A list of rows becomes objects: NumPy would turn numbers next to text into text.
    cells = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if cells.ndim != 2 or 0 in cells.shape:
        raise ValueError(f"X has shape {cells.shape}; a table has at least one row and one column.")
    return list(cells.T), None


def _are_positions(columns: Any, n_columns: int) -> bool:
    if not isinstance(columns, np.ndarray) or columns.dtype != np.int64 or columns.ndim != 1:
        return False
    return bool(((columns >= 0) & (columns < n_columns)).all())


def _position(column: Column, parameter: str, names: list[str] | None, n_columns: int) -> int:
    if isinstance(column, str):
        if names is None or column not in names:
            known = ", ".join(map(repr, names)) if names else f"the positions 0 to {n_columns - 1}"
            raise ValueError(f"{parameter} names the column {column!r}; the table has {known}.")
        return names.index(column)
    return check_integer(column, parameter, low=0, high=n_columns - 1)


def _column_name(position: int, names: Sequence[str] | np.ndarray | None) -> str:
    return f"Column {position}" if names is None else f"Column {names[position]!r}"


def _holds_numbers(cells: np.ndarray) -> bool:
    if cells.dtype.kind == "O":
        return all(isinstance(cell, Real) for cell in cells[~is_missing(cells)])
    if cells.dtype.kind in "mMcV":
        raise ValueError(f"A column holds {cells.dtype}; convert it to numbers or text first.")
    return cells.dtype.kind in "biuf"


def _is_number(cell: object) -> bool:
    try:
        np.float64(cell)  # type: ignore[arg-type]  # it is asked whether the type fits
    except (TypeError, ValueError):
        return False
    return True


def _as_categories(cells: np.ndarray) -> np.ndarray:
    """Return cells as text, None where missing; 3 and 3.0 are one category."""
    result = np.empty(len(cells), dtype=object)
    missing = is_missing(cells)
    result[:] = [
        None if gone else cell if isinstance(cell, str) else _number_text(cell)
        for cell, gone in zip(cells.tolist(), missing, strict=True)
    ]
    return result


def _number_text(value: object) -> str:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    return str(value)
