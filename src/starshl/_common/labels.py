"""Labels: which classes each row has, parsed once from whatever users pass as y, and passed on whole from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..exceptions import InputError
from .lazy import library
from .warn import warn_caller

sklearn_exceptions = library("sklearn.exceptions")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labels:
    """The classes of rows: one for most, none where a row is unlabeled, and possibly several.

    Row ``i`` has the classes ``classes[members[offsets[i] : offsets[i + 1]]]``, each of them once.

    Attributes
    ----------
    classes : array of shape (n_classes,)
    offsets : array of int, shape (n_rows + 1,)
    members : array of int, indices into ``classes``, ascending within a row
    dtype : the type that the labels had in an array
    given : the array that they were parsed from, one entry per row; None if they were not parsed
    """

    classes: np.ndarray
    offsets: np.ndarray
    members: np.ndarray
    dtype: np.dtype
    given: np.ndarray | None = None

    @classmethod
    def from_index(cls, classes: np.ndarray, index: np.ndarray, dtype: np.dtype) -> Self:
        """Return labels of at most one class per row, by its index in ``classes``, which is -1 for none."""
        return cls(classes, _offsets(index >= 0), index[index >= 0], dtype)

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def labeled(self) -> np.ndarray:
        """Which rows have a class."""
        return self._n_classes_of_rows > 0

    @property
    def index(self) -> np.ndarray:
        """The index in ``classes`` of each row's class, -1 where it has none; rows with several are refused."""
        n_classes = self._n_classes_of_rows
        several = np.flatnonzero(n_classes > 1)
        if len(several):
            raise InputError(
                "Row {row} of {parameter} has {n_classes} classes",
                "at most one class per row is possible here",
                parameter="y",
                row=int(several[0]),
                n_classes=int(n_classes[several[0]]),
            )
        index = np.full(self.n_rows, -1)
        index[n_classes > 0] = self.members
        return index

    @property
    def class_counts(self) -> np.ndarray:
        """How many rows each class has."""
        return np.bincount(self.members, minlength=len(self.classes))

    def take(self, rows: np.ndarray | slice) -> Self:
        """Return the labels of some rows; classes that do not occur among them are gone."""
        rows = np.arange(self.n_rows)[rows]
        n_classes = self._n_classes_of_rows[rows]
        offsets = _offsets(n_classes)
        taken = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], n_classes)
        present, members = np.unique(self.members[taken], return_inverse=True)
        given = None if self.given is None else self.given[rows]
        return type(self)(self.classes[present], offsets, members, self.dtype, given)

    def among(self, classes: np.ndarray) -> Self:
        """Return the labels as indices into other classes; those that are not among these are gone."""
        index_of = {label: index for index, label in enumerate(classes.tolist())}
        new_index = np.array([index_of.get(label, -1) for label in self.classes.tolist()], np.int64)
        members, rows = new_index[self.members], np.repeat(np.arange(self.n_rows), self._n_classes_of_rows)
        members, rows = members[members >= 0], rows[members >= 0]
        if (rows[1:] == rows[:-1]).any():
            members = members[np.lexsort((members, rows))]
        return type(self)(classes, _offsets(np.bincount(rows, minlength=self.n_rows)), members, self.dtype)

    def positions_in(self, classes: np.ndarray) -> np.ndarray:
        """Return where the label of each row stands among other classes, -1 if it does not or there is none.

        Rows with several of these classes are refused; :meth:`among` takes them.
        """
        return self.among(classes).index

    @property
    def shape(self) -> tuple[int]:
        return (self.n_rows,)

    def __len__(self) -> int:
        return self.n_rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return one label per row, so that methods of others can read them; None marks rows without one if they do."""
        labels = self.given
        if labels is None:
            labels = np.full(self.n_rows, None, dtype=object)
            labels[self.labeled] = self.classes[self.index[self.labeled]]
        return np.array(labels, dtype=dtype, copy=copy)

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __getitem__(self, rows: Any) -> Any:
        """Return one label per row for some rows, as an array would; :meth:`take` returns labels."""
        return np.asarray(self)[rows]

    def __eq__(self, other: object) -> bool:
        """Return whether the classes are the same, and the same rows have each of them."""
        return (
            isinstance(other, Labels)
            and self.classes.tolist() == other.classes.tolist()
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.members, other.members)
        )

    def __repr__(self) -> str:
        return f"Labels({self.n_rows} rows, {int(self.labeled.sum())} labeled, {len(self.classes)} classes)"

    @property
    def _n_classes_of_rows(self) -> np.ndarray:
        return np.diff(self.offsets)


LabelsLike: TypeAlias = ArrayLike | Labels | None
"""What users pass as y: one label per sample, or None."""
Label: TypeAlias = str | int | bool
"""What users see of the label of one item."""


def check_labels(y: LabelsLike, n_rows: int) -> Labels:
    """Parse labels, some of which may be missing; labels that were parsed before come back unchanged.

    Unlabeled is -1 among numbers of any type, NaN, None, the empty text, as in a table, and what a masked array hides.
    ``y=None`` means that every row is unlabeled.
    """
    if y is None:
        return Labels.from_index(np.empty(0, np.int64), np.full(n_rows, -1), np.dtype(np.int64))
    labels = y if isinstance(y, Labels) else _one_column(y)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"y has shape {labels.shape}; X has {n_rows} rows, so y must have shape ({n_rows},). "
            "Give one label per row."
        )
    return labels if isinstance(labels, Labels) else _parsed(labels)


def parsed_if_labels(y: Any) -> Any:
    """Return labels if y holds some, and otherwise y as it is: a method that reads no labels takes anything."""
    if y is None or isinstance(y, Labels):
        return y
    try:
        labels = _one_column(y)
        return _parsed(labels) if labels.ndim == 1 else y
    except (TypeError, ValueError):
        return y


def _parsed(y: np.ndarray) -> Labels:
    missing = _missing_labels(y)
    _refuse_continuous(y[~missing])
    try:
        classes, members = np.unique(y[~missing], return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y[~missing]})
        raise ValueError(
            f"y mixes labels of the types {', '.join(kinds)}, which cannot be sorted. "
            "Use labels of one type; mark unlabeled rows by None, NaN or empty text."
        ) from error
    return Labels(classes, _offsets(~missing), members, y.dtype, y)


def _offsets(n_classes_of_rows: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(n_classes_of_rows)])


def _one_column(y: Any) -> np.ndarray:
    labels = as_label_array(y)
    if labels.ndim != 2 or labels.shape[1] != 1:
        return labels
    warn_caller(
        f"A column-vector y was passed when a 1d array was expected: its shape is {labels.shape}. It is read as one "
        "label per row; pass y.ravel() to silence this warning.",
        sklearn_exceptions.DataConversionWarning,
    )
    return labels[:, 0]


def as_label_array(y: ArrayLike) -> np.ndarray:
    """Return labels as an array; of a list, NaN among strings stays NaN where NumPy would make it the text "nan"."""
    array = np.asarray(_with_marked_gaps(y))
    if array.dtype.kind not in "US" or hasattr(y, "dtype"):
        return array
    items = np.asarray(y, dtype=object)
    return items if any(_is_missing(label) for label in items.ravel()) else array


def _with_marked_gaps(y: Any) -> Any:
    """Return labels with a mark where others keep gaps beside the values, which NumPy would drop or turn to floats."""
    if isinstance(y, np.ma.MaskedArray):
        return _with_masked_gaps(y)
    if hasattr(y, "iloc") and np.ndim(y) == 2 and np.shape(y)[1] == 1:
        return np.reshape(_with_marked_gaps(y.iloc[:, 0]), (-1, 1))
    if hasattr(getattr(y, "dtype", None), "categories"):
        return np.asarray(y.astype(object), dtype=object)
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if kind in ("i", "u") and hasattr(y, "to_numpy") and hasattr(y, "isna") and y.isna().any():
        return y.to_numpy(dtype=np.int64, na_value=-1)
    if hasattr(y, "fill_null") and hasattr(y, "null_count") and y.null_count() and y.dtype.is_integer():
        return y.cast(int).fill_null(-1)
    return y


def _with_masked_gaps(y: np.ma.MaskedArray) -> np.ndarray:
    if y.dtype.kind in "iu" and np.ma.is_masked(y):
        return np.where(np.ma.getmaskarray(y), -1, y.data.astype(np.int64))
    if not np.ma.is_masked(y):
        return y.data
    labels = y.data.astype(object)
    labels[np.ma.getmaskarray(y)] = None
    return labels


def _refuse_continuous(labels: np.ndarray) -> None:
    """Refuse measurements: they would make nearly every row its own class."""
    numbers = labels
    if labels.dtype.kind == "O" and len(labels) and all(isinstance(label, (float, np.floating)) for label in labels):
        numbers = labels.astype(np.float64)
    if numbers.dtype.kind == "f" and np.any(numbers != np.floor(numbers)):
        example = numbers[numbers != np.floor(numbers)][0]
        raise ValueError(
            f"Unknown label type: continuous. y holds numbers such as {example:g}, but labels name classes. Give "
            "whole numbers or strings. To learn from measurements, cut them into classes first, for example with "
            "numpy.digitize."
        )


def _missing_labels(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind in "iu":
        return y == -1
    if y.dtype.kind == "f":
        if np.isinf(y).any():
            raise ValueError("y contains infinity; labels must be finite, and NaN marks an unlabeled row.")
        return np.isnan(y) | (y == -1)
    if y.dtype.kind == "O":
        return np.array([_is_missing(label) for label in y], dtype=bool)
    if y.dtype.kind in "US":
        return y == y.dtype.type()
    if y.dtype.kind == "b":
        return np.zeros(len(y), dtype=bool)
    raise ValueError(f"y has dtype {y.dtype}; labels must be integers, floats, booleans, strings or objects.")


def _is_missing(label: object) -> bool:
    # Text and -1 are compared by type first: what arrives in an object array may answer == with anything.
    if isinstance(label, str):
        return not label
    return is_gap(label) or (isinstance(label, (int, float, np.number)) and label == -1)


def is_gap(value: object) -> bool:
    """Tell whether a value stands for a missing one: None, NaN, or the NA or NaT of pandas."""
    # pandas.NA answers neither == nor bool(), and pandas is not a dependency: its name has to do.
    is_none = value is None or type(value).__name__ in ("NAType", "NaTType")
    return is_none or (isinstance(value, (float, np.floating)) and bool(value != value))
