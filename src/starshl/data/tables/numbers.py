"""The features of a table: a matrix of finite numbers, or of numbers and text, with a warning where one looks odd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from ..._common.warn import warn_caller
from .cells import is_missing_mark, is_number, is_number_with_comma, number_text, typed_cells
from .columns import Cells, Columns, Source, TableRows
from .errors import MAX_SHOWN, ColumnWarning, TableError
from .text import TextSource

_ID_NAMES = ("", "id", "_id", "index", "uuid", "row", "rowid", "row_id", "unnamed: 0")
_INFINITY = "infinity"
_MIN_ROWS_TO_COUNT = 3  # two rows count up too easily
_MOSTLY = 0.5  # of the cells of a column: more of them are mentioned in a warning
_FEWEST = 20  # rows in which it is counted how many categories a column has


def check_numbers(X: TableRows, names: Sequence[str] | None, source: Source, *, allow_missing: bool) -> TableRows:
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


def _bad_entries(X: TableRows, allow_missing: bool) -> dict[int, tuple[str, int]]:
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


def identifier_columns(X: TableRows, names: Sequence[str]) -> list[str]:
    """Return columns that look like ids: integers that never repeat, under such a name or counting the rows."""
    if sparse.issparse(X) or X.ndim != 2 or len(X) < _MIN_ROWS_TO_COUNT:
        return []
    by_name = [j for j, name in enumerate(names) if name.lower() in _ID_NAMES and _never_repeats(X[:, j])]
    counts_rows = bool((np.diff(X[:, 0]) == 1).all() and _never_repeats(X[:, 0]))
    return [names[j] for j in sorted({*by_name, *([0] if counts_rows else [])})]


def _never_repeats(values: np.ndarray) -> bool:
    return bool((values == np.round(values)).all()) and len(np.unique(values)) == len(values)


def read_raw(
    source: Source, features: Sequence[str], columns: Columns, others: Sequence[str]
) -> tuple[np.ndarray, Mapping[str, Cells]]:
    """Return the features as a matrix of numbers, text and None, and the other columns.

    Refused are missing numbers unless they are allowed, numbers with commas, which would become text, and text in
    columns that a model was fitted on as numbers.
    """
    _, cells = source.read((), [*features, *others], allow_missing=True)
    read: dict[str, list[Any]]
    if isinstance(source, TextSource):
        read = {name: _typed(cells[name], name, columns, source.decimal) for name in features}
        unfit = [name for name in features if _is_unfit(read[name], name, columns, source.decimal)]
        if unfit:
            raise source.refusal(unfit, allow_missing=columns.allow_missing, for_model=columns.numbers is not None)
    else:
        read = {name: list(cells[name]) for name in features}
        _refuse_values(source, read, columns)
    if columns.features is None:
        _warn_of_text({name: read[name] for name in features if name != columns.text}, source)
    X = np.empty((len(read[features[0]]), len(read)), dtype=object)
    for j, name in enumerate(features):
        X[:, j] = read[name]
    return X, {name: cells[name] for name in others}


def _typed(cells: Cells, name: str, columns: Columns, decimal: str) -> list[Any]:
    texts = list(cells)
    if name == columns.text:
        return [text or None for text in texts]
    if columns.numbers is None:
        return typed_cells(texts, decimal=decimal)
    if name not in columns.numbers:
        # "NA" is a category if it was one when the model was fitted.
        return typed_cells(texts, with_marks=False, decimal=decimal)
    # What is left as text is refused later, with the line.
    numbers = [number_text(text, decimal) for text in texts]
    return [
        None if is_missing_mark(text) else text if number is None else float(number)
        for text, number in zip(texts, numbers, strict=True)
    ]


def _is_unfit(values: list[Any], name: str, columns: Columns, decimal: str) -> bool:
    """Return whether a column of a text table holds numbers, or must hold them, and some cells are none."""
    if name == columns.text:
        return False
    present = [value for value in values if value is not None]
    if all(not isinstance(value, str) for value in present):
        must_be_full = not columns.allow_missing and (columns.numbers is None or name in columns.numbers)
        return must_be_full and len(present) < len(values)
    if columns.numbers is not None:
        return name in columns.numbers
    known = [value for value in present if not is_missing_mark(value)]
    of_other_kind = any(
        is_number_with_comma(value) if decimal == "." else number_text(value, decimal) is None for value in known
    )
    return of_other_kind and all(is_number(value) or is_number_with_comma(value) for value in known)


def _refuse_values(source: Source, read: Mapping[str, list[Any]], columns: Columns) -> None:
    """Refuse what a file with types says differently from a file of text, which has lines."""
    problems, unfit, missing = [], [], False
    for name, values in read.items():
        gaps = [value is None or (isinstance(value, float) and value != value) for value in values]
        other = [not gap and not isinstance(value, Real) for value, gap in zip(values, gaps, strict=True)]
        must_be_numbers = columns.numbers is not None and name in columns.numbers
        must_be_full = not columns.allow_missing and name != columns.text
        if any(other) and must_be_numbers:
            row = other.index(True)
            problems.append(f"has {values[row]!r} in column {name!r}, row {row}")
            unfit.append(name)
        elif any(gaps) and not any(other) and must_be_full and (must_be_numbers or columns.numbers is None):
            problems.append(f"has a missing value in column {name!r}, row {gaps.index(True)}")
            unfit.append(name)
            missing = True
    if problems:
        advice = "There must be numbers; rows count from 0. Fill or convert these cells."
        raise TableError(
            source.path,
            problems,
            advice,
            droppable=() if columns.numbers is not None else unfit,
            causes=["missing"] if missing else ["text"],
        )


def _warn_of_text(read: Mapping[str, list[Any]], source: Source) -> None:
    """Warn of columns of text that hold mostly numbers, or a different text in most rows."""
    for name, values in read.items():
        present = [value for value in values if value is not None]
        texts = [value for value in present if isinstance(value, str)]
        if not texts:
            continue
        words = [text for text in texts if not is_number(text) and not is_missing_mark(text)]
        n_numbers = sum(not isinstance(value, str) or is_number(value) for value in present)
        n_different = len(set(texts))
        if words and n_numbers > _MOSTLY * len(present):
            arrived = (
                "{path!r} has numbers in {n_numbers:,} rows of {name!r}, but also {word!r}, so the column is read as "
                "categories"
            )
            advice = "To have numbers, leave cells empty where there is none."
        elif len(values) >= _FEWEST and n_different > _MOSTLY * len(present):
            arrived = "{path!r} has {n_different:,} different texts in the {n_rows:,} rows of {name!r}"
            advice = "Each becomes a category of its own, which says little about new rows."
        else:
            continue
        warning = ColumnWarning(
            arrived,
            advice=advice,
            path=str(source.path),
            name=name,
            columns=(name,),
            n_numbers=n_numbers,
            n_different=n_different,
            n_rows=len(present),
            word=next(iter(words), None),
        )
        warn_caller(warning)
