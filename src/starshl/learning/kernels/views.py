"""Kernels that read some columns of their rows, and views: named columns of one matrix, each with its own kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, hstack

from ..._common.validation import Rows
from .distances import as_floats
from .kernel import Kernel, KernelSamples
from .vectors import median_distance

Columns: TypeAlias = slice | Sequence[int] | Sequence[str] | ArrayLike
"""What users pass as the columns of a view: a slice, their numbers, or their names if X is a table with names."""
ViewsLike: TypeAlias = Mapping[str, Columns]
"""What users pass as views: the columns of each view by its name."""


@dataclass(frozen=True, eq=False)
class OnColumns(Kernel):
    """A kernel between some columns of the rows, those of one view of the samples.

    Parameters
    ----------
    kernel : Kernel
        A kernel on rows of numbers.
    columns : array of int, the columns it reads
    view : str, default=""
        The name of the view.
    scales : array of float, default=None
        What each of these columns is multiplied by before the kernel sees it; None leaves them as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.learning.kernels import NormalizedLinear, OnColumns
    >>> rows = np.array([[1.0, 0.0, 5.0], [1.0, 0.0, -5.0]])
    >>> OnColumns(NormalizedLinear(), [0, 1])(rows, rows)[0, 1].item()
    1.0
    """

    kernel: Kernel
    columns: np.ndarray
    view: str = ""
    scales: np.ndarray | None = None

    def __post_init__(self) -> None:
        _check_inner(self.kernel)
        object.__setattr__(self, "columns", _check_columns(self.columns))
        if not isinstance(self.view, str):
            raise ValueError(f"view is {self.view!r}; it must be a name.")
        if self.scales is not None:
            object.__setattr__(self, "scales", _check_scales(self.scales, len(self.columns)))

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]  # what the kernel inside says
        return self.kernel.takes_sparse

    @property
    def largest_diagonal(self) -> float | None:  # type: ignore[override]  # what the kernel inside says
        return self.kernel.largest_diagonal

    def fit(self, samples: KernelSamples, sample_weight: np.ndarray | None = None) -> OnColumns:
        return self.around(self.kernel.fit(self.read(samples), sample_weight))

    def around(self, kernel: Kernel) -> OnColumns:
        """Return another kernel on the same columns."""
        return OnColumns(kernel, self.columns, self.view, self.scales)

    def read(self, samples: KernelSamples) -> Rows:
        """Return the columns that the kernel inside sees."""
        rows = as_floats(samples)
        if self.columns.max() >= rows.shape[1]:
            raise ValueError(
                f"This kernel reads column {self.columns.max()}, and the rows have {rows.shape[1]} columns. Give rows "
                "like those that the columns were chosen for."
            )
        taken = _take_columns(rows, self.columns)
        if self.scales is None:
            return taken
        scaled = taken * self.scales.astype(taken.dtype)[None, :]
        return scaled if isinstance(scaled, np.ndarray) else csr_array(scaled)

    def __call__(self, A: KernelSamples, B: KernelSamples) -> np.ndarray:
        return self.kernel(self.read(A), self.read(B))

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        return self.kernel.diagonal(self.read(samples))


def _check_inner(kernel: object) -> None:
    if isinstance(kernel, OnColumns):
        raise ValueError("kernel reads columns already. Give a kernel that reads whole rows.")
    if not isinstance(kernel, Kernel) or not kernel.on_vectors:
        raise ValueError(
            f"kernel is {kernel!r}; on columns, use a kernel on rows of numbers, such as Gaussian(). A function can "
            "take its columns itself."
        )


def _check_columns(columns: object) -> np.ndarray:
    numbers = np.asarray(columns)
    is_right = numbers.ndim == 1 and numbers.size > 0 and numbers.dtype.kind in "iu" and bool(np.all(numbers >= 0))
    if not is_right or len(np.unique(numbers)) < numbers.size:
        raise ValueError(f"columns is {columns!r}; give the numbers of one or more columns, from 0, each once.")
    return numbers.astype(np.int64)


def _check_scales(scales: object, n_columns: int) -> np.ndarray:
    factors = np.asarray(scales, dtype=np.float64)
    if factors.shape != (n_columns,) or not np.isfinite(factors).all():
        raise ValueError(f"scales has shape {factors.shape}; give one finite number per column, {n_columns} in all.")
    return factors


def _take_columns(rows: Rows, columns: np.ndarray) -> Rows:
    if not isinstance(rows, np.ndarray):
        return rows[:, columns]
    first, last = int(columns[0]), int(columns[-1])
    if last - first + 1 == len(columns) and np.all(np.diff(columns) == 1):
        return np.ascontiguousarray(rows[:, first : last + 1])
    return np.take(rows, columns, axis=1)


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Kernels of a list that read the same columns.

    Parameters
    ----------
    kernels : what they are between these columns
    positions : where they stand in the list
    reader : one of them, None if they read whole rows
    """

    kernels: list[Kernel]
    positions: list[int]
    reader: OnColumns | None

    def read(self, rows: Rows) -> Rows:
        """Return what these kernels see of rows."""
        return rows if self.reader is None else self.reader.read(rows)


def reads_columns(kernels: Sequence[Kernel]) -> bool:
    """Tell whether some kernel reads columns."""
    return any(isinstance(kernel, OnColumns) for kernel in kernels)


def by_columns(kernels: Sequence[Kernel]) -> list[ColumnGroup]:
    """Return the kernels grouped by the columns they read, in the order of their first ones."""
    groups: dict[tuple[bytes, bytes] | None, ColumnGroup] = {}
    for position, kernel in enumerate(kernels):
        reader = kernel if isinstance(kernel, OnColumns) else None
        key = None
        if reader is not None:
            key = reader.columns.tobytes(), b"" if reader.scales is None else reader.scales.tobytes()
        group = groups.setdefault(key, ColumnGroup([], [], reader))
        group.kernels.append(kernel if reader is None else reader.kernel)
        group.positions.append(position)
    return list(groups.values())


def balance_columns(rows: Rows, kernels: Sequence[Kernel]) -> Rows:
    """Return the columns of all views side by side, each view in units of its median distance between rows.

    All views count the same in distances between these rows, whatever their units are. Rows without views stay as they
    are.
    """
    if not reads_columns(kernels):
        return rows
    parts = [group.read(rows) for group in by_columns(kernels)]
    scaled = [part / part.dtype.type(median_distance(part) * np.sqrt(len(parts))) for part in parts]
    if all(isinstance(part, np.ndarray) for part in scaled):
        return np.hstack(scaled)
    return csr_array(hstack(scaled))


def view_scales(kernels: Sequence[Kernel], weights: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    r"""Return what to multiply columns by so that one kernel on all of them weighs views as a mixture does.

    The squared scale of a column is :math:`\sum_v w_v / d_v^2` over the views that read it, with the view's share w of
    the kernel weights and its median distance d between rows. None if no kernel reads columns.
    """
    if not reads_columns(kernels):
        return None
    squared = np.zeros(rows.shape[1])
    for group in by_columns(kernels):
        columns = np.arange(rows.shape[1]) if group.reader is None else group.reader.columns
        scales = 1.0 if group.reader is None or group.reader.scales is None else group.reader.scales
        share = float(weights[group.positions].sum()) / float(weights.sum() or 1.0)
        squared[columns] += np.square(scales) * max(share, 0.0) / median_distance(group.read(rows)) ** 2
    return np.sqrt(squared)


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
