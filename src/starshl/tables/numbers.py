"""Checks of the matrix of rows: finite numbers, and no ids among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from .errors import MAX_SHOWN, TableError
from .source import Rows, Source

__all__ = ["check_numbers", "identifier_columns"]

_ID_NAMES = ("", "id", "_id", "index", "uuid", "row", "rowid", "row_id", "unnamed: 0")
_INFINITY = "infinity"
_MIN_ROWS_TO_COUNT = 3  # two rows count up too easily


def check_numbers(X: Rows, names: Sequence[str] | None, source: Source, *, allow_missing: bool) -> Rows:
    """Return rows as float32 or float64; refuse anything but a matrix of finite numbers, naming all bad columns.

    Three dimensions are several matrices of kernel values.
    """
    if X.dtype.kind not in "biuf":
        raise TableError(source.path, [f"holds rows of dtype {X.dtype}"], "Rows must hold numbers. Convert it first.")
    if X.ndim not in (2, 3) or 0 in X.shape:
        raise TableError(
            source.path,
            [f"holds rows of shape {X.shape}"],
            "It must be a matrix, (rows, features), with at least one of each. Reshape it first.",
        )
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    bad = _bad_entries(X, allow_missing)
    if bad:
        labels = {column: repr(names[column]) if names and source.has_names else str(column) for column in bad}
        problems = [
            f"holds {what} in column {labels[column]}, first in row {row}" for column, (what, row) in bad.items()
        ]
        rest = len(problems) - MAX_SHOWN
        problems = problems[:MAX_SHOWN] + ([f"holds such entries in {rest} more columns"] if rest > 0 else [])
        raise TableError(
            source.path,
            problems,
            "Every entry must be a finite number; rows count from 0. Fill such entries, or drop their rows or columns.",
            droppable=[names[column] for column in bad] if names else (),
            causes=["infinite" if what == _INFINITY else "missing" for what, _ in bad.values()],
        )
    return X


def identifier_columns(X: Rows, names: Sequence[str]) -> list[str]:
    """Return columns that look like ids: integers that never repeat, under such a name or counting the rows."""
    if sparse.issparse(X) or X.ndim != 2 or len(X) < _MIN_ROWS_TO_COUNT:
        return []
    by_name = [j for j, name in enumerate(names) if name.lower() in _ID_NAMES and _never_repeats(X[:, j])]
    counts_rows = bool((np.diff(X[:, 0]) == 1).all() and _never_repeats(X[:, 0]))
    return [names[j] for j in sorted({*by_name, *([0] if counts_rows else [])})]


def _never_repeats(values: np.ndarray) -> bool:
    return bool((values == np.round(values)).all()) and len(np.unique(values)) == len(values)


def _bad_entries(X: Rows, allow_missing: bool) -> dict[int, tuple[str, int]]:
    """Return the first bad entry of each column: what it is, and its row."""
    is_bad = np.isinf if allow_missing else lambda values: ~np.isfinite(values)
    if sparse.issparse(X):
        entries = sparse.coo_array(X)
        places = is_bad(entries.data)
        rows, columns, values = entries.row[places], entries.col[places], entries.data[places]
    else:
        # A sum is finite when all entries are; only then is no second pass needed.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(X.sum()):
                return {}
        *_, rows, columns = np.nonzero(is_bad(X))
        values = X[is_bad(X)]
    bad: dict[int, tuple[str, int]] = {}
    for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
        if column not in bad or row < bad[column][1]:
            bad[column] = ("a missing value (NaN)" if value != value else _INFINITY, row)
    return bad
