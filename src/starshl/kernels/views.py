"""Views: named columns of one matrix, each with its own kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .base import Kernel
from .columns import OnColumns

__all__ = ["Columns", "ViewsLike", "check_views", "describe_views", "kernels_of_views", "view_columns", "view_shares"]

Columns: TypeAlias = slice | Sequence[int] | Sequence[str] | ArrayLike
"""What users pass as the columns of a view: a slice, their numbers, or their names if X is a table with names."""

ViewsLike: TypeAlias = Mapping[str, Columns]
"""What users pass as views: the columns of each view by its name."""


def check_views(views: Any) -> None:
    """Refuse what cannot be views, whatever the rows are."""
    if not isinstance(views, Mapping) or len(views) == 0:
        raise ValueError(
            f"views is {views!r}; give a mapping from names to columns, for example "
            "{'pixels': slice(0, 784), 'hog': slice(784, 2404)}."
        )
    for name in views:
        if not isinstance(name, str) or not name:
            raise ValueError(f"views has a view of the name {name!r}; a name is a text of one letter or more.")


def kernels_of_views(
    kernels: Sequence[Kernel], views: ViewsLike, n_features: int, feature_names: np.ndarray | None = None
) -> list[Kernel]:
    """Return every kernel once per view, reading the columns of that view."""
    found = {name: view_columns(name, columns, n_features, feature_names) for name, columns in views.items()}
    return [OnColumns(kernel, columns, name) for name, columns in found.items() for kernel in kernels]


def view_columns(name: str, columns: Columns, n_features: int, feature_names: np.ndarray | None = None) -> np.ndarray:
    """Return the numbers of the columns of a view, in the order in which they were given."""
    if isinstance(columns, slice):
        numbers = _from_slice(name, columns, n_features)
    else:
        asked = np.asarray(columns)
        if asked.dtype.kind == "b":
            numbers = _from_mask(name, asked, n_features)
        elif asked.dtype.kind in "UO" and asked.size:
            numbers = _from_names(name, asked, feature_names)
        else:
            numbers = _from_numbers(name, asked, n_features)
    if numbers.size == 0:
        raise ValueError(f"The view {name!r} has no columns (of {n_features} that X has). Give it one or more.")
    if len(np.unique(numbers)) < numbers.size:
        raise ValueError(f"The view {name!r} names a column twice. Give each of its columns once.")
    return numbers


def _from_slice(name: str, columns: slice, n_features: int) -> np.ndarray:
    """Return the columns of a slice; one that reaches past the last column is a mistake, though Python would cut it."""
    for bound in (columns.start, columns.stop, columns.step):
        if bound is not None and not isinstance(bound, int | np.integer):
            raise ValueError(f"The view {name!r} is {columns!r}; the bounds of a slice are column numbers.")
    ends = [end for end in (columns.start, columns.stop) if end is not None]
    if any(abs(end) > n_features for end in ends):
        raise ValueError(
            f"The view {name!r} is {columns!r}, and X has {n_features} columns. Name columns of X, or leave the end of "
            "the slice open."
        )
    return np.arange(n_features)[columns]


def _from_mask(name: str, mask: np.ndarray, n_features: int) -> np.ndarray:
    if mask.shape != (n_features,):
        raise ValueError(
            f"The mask of the view {name!r} has shape {mask.shape}, and X has {n_features} columns. Give one entry per "
            "column of X."
        )
    return np.flatnonzero(mask)


def _from_numbers(name: str, asked: np.ndarray, n_features: int) -> np.ndarray:
    if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
        raise ValueError(
            f"The columns of the view {name!r} are {asked.tolist()!r}; give a slice, a list of column numbers or a "
            "list of column names."
        )
    wrong = asked[(asked < 0) | (asked >= n_features)]
    if wrong.size:
        raise ValueError(
            f"The view {name!r} has column {wrong[0]}, and X has the columns 0 to {n_features - 1}. Name columns of X."
        )
    return asked.astype(np.int64)


def _from_names(name: str, asked: np.ndarray, feature_names: np.ndarray | None) -> np.ndarray:
    if asked.ndim != 1:
        raise ValueError(f"The columns of the view {name!r} are {asked.tolist()!r}; give a list of column names.")
    if feature_names is None:
        raise ValueError(
            f"The view {name!r} names its columns, such as {str(asked[0])!r}, and X has no column names. Give "
            "X as a table with names, or the columns by their numbers."
        )
    number = {column: position for position, column in enumerate(feature_names.tolist())}
    unknown = [column for column in asked.tolist() if column not in number]
    if unknown:
        known = ", ".join(map(repr, list(number)[:8]))
        raise ValueError(
            f"The view {name!r} has a column {unknown[0]!r} that X does not have. Name columns of X, such as {known}."
        )
    return np.array([number[column] for column in asked.tolist()], dtype=np.int64)


def view_shares(kernels: Sequence[Kernel], weights: np.ndarray) -> dict[str, float]:
    """Return the share of each view in the sum of the kernel weights, (n_kernels,) or (n_bits, n_kernels)."""
    mean = np.atleast_2d(weights).mean(axis=0)
    total = float(mean.sum()) or 1.0
    shares: dict[str, float] = {}
    for kernel, weight in zip(kernels, mean, strict=True):
        if isinstance(kernel, OnColumns) and kernel.view:
            shares[kernel.view] = shares.get(kernel.view, 0.0) + float(weight) / total
    return shares


def describe_views(shares: Mapping[str, float]) -> list[str]:
    """Return what share of the kernel weights each view has, largest first, if there are views."""
    largest_first = sorted(shares, key=lambda view: -shares[view])
    return ["views " + ", ".join(f"{view} {shares[view]:.2f}" for view in largest_first)] if shares else []
