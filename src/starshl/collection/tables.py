"""Vectors with ids, references and metadata from files: .npy, .npz and .parquet."""

from __future__ import annotations

import datetime
import math
import os
import warnings
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._extras import require

__all__ = [
    "Content",
    "Table",
    "check_finite",
    "list_column",
    "load_arrays",
    "make_table",
    "read_table",
    "read_vectors",
    "stack_lists",
]


class Table(NamedTuple):
    """Rows to encode; ``ids`` and ``references`` are None where the file has none, ``metadata`` one dictionary a row.

    ``vectors`` is the column of lists, or the array, that the vectors were read from, ``feature_names`` the columns
    if they were read from one a feature.
    """

    X: np.ndarray
    ids: np.ndarray | None
    metadata: list[dict[str, Any]]
    references: list[str | None] | None = None
    vectors: str | None = None
    feature_names: tuple[str, ...] | None = None

    def labels(self, name: str) -> np.ndarray:
        """Return one metadata field as labels, unlabeled where it is missing; integers stay integers."""
        if not any(name in entry for entry in self.metadata):
            known = sorted({key for entry in self.metadata[:1] for key in entry})
            raise ValueError(f"There is no column {name!r}; there are: {', '.join(known) or 'none'}.")
        labels = [entry.get(name) for entry in self.metadata]
        if all(isinstance(label, int | None) for label in labels):
            return np.array([-1 if label is None else label for label in labels])
        return np.array(labels, dtype=object)


class Content(NamedTuple):
    """What is in a file: vectors, the one column or the many that they came from, and the values of all others."""

    X: np.ndarray
    vectors: str | None
    feature_names: tuple[str, ...] | None
    others: dict[str, list]


class _Choice(NamedTuple):
    """Which columns hold the vectors and which ones something else; ``others`` is whether these are read, too."""

    vectors: str | None
    features: Sequence[str] | None
    named: Sequence[str]
    drop: Sequence[str]
    others: bool


def read_table(
    path: str | os.PathLike,
    *,
    vectors: str | None = None,
    ids: str | None = None,
    labels: str | None = None,
    references: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
) -> Table:
    """Read vectors from a file.

    Parameters
    ----------
    path : .npy (a matrix), .npz (a matrix ``X`` and other arrays, one value a row) or .parquet
    vectors : str, default=None
        The Parquet column of lists, or the array of the .npz. By default ``features`` if they are given, else the
        only column of lists of numbers, or, if no column holds lists, all columns of floating-point numbers; and
        ``X`` of an .npz.
    ids : str, default=None
        The column or array of integer ids.
    labels : str, default=None
        A column that holds no part of the vectors; it becomes metadata like all other columns.
    references : str, default=None
        The column or array that tells where the picture or text of an item is.
    drop : sequence of str, default=()
        Columns to leave out. All columns that are named nowhere become metadata: dates as ISO text, NaN as None.
    features : sequence of str, default=None
        Names of the columns that make up the vectors, in this order. Ignored if the file has no such columns
        because it is a .npy or .npz.
    """
    path = Path(path)
    named = [name for name in (ids, labels, references) if name is not None]
    content = _read(path, _Choice(vectors, features, named, drop, others=True))
    return make_table(content, path, ids=ids, labels=labels, references=references)


def make_table(content: Content, path: Path, *, ids: str | None, labels: str | None, references: str | None) -> Table:
    """Make ids, references and metadata of the columns beside the vectors, as :func:`read_table` describes."""
    columns = dict(content.others)
    for name in (ids, labels, references):
        if name is not None and name not in columns:
            raise ValueError(
                f"Column {name!r} of {str(path)!r} is part of the vectors; it cannot be something else, too."
            )
    found_ids = None if ids is None else _checked_ids(columns.pop(ids), ids)
    found_references = None if references is None else _checked_references(columns.pop(references), references)
    plain = [[_plain(value, name) for value in values] for name, values in columns.items()]
    metadata = [dict(zip(columns, values, strict=True)) for values in zip(*plain, strict=True)]
    metadata = metadata or [{} for _ in range(len(content.X))]
    return Table(content.X, found_ids, metadata, found_references, content.vectors, content.feature_names)


def read_vectors(
    path: str | os.PathLike, *, vectors: str | None = None, features: Sequence[str] | None = None
) -> np.ndarray:
    """Read only the vectors of a file; the arguments are those of :func:`read_table`."""
    return _read(Path(path), _Choice(vectors, features, (), (), others=False)).X


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a .npz, or that of a .npy as X; never unpickle."""
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return {"X": found}
        with found:
            return {name: found[name] for name in found.files}
    except Exception as error:  # a damaged file raises whatever zipfile, zlib, struct and tokenize raise
        raise ValueError(
            f"{str(path)!r} is not a readable array file ({error}). It is damaged, or holds Python objects: "
            "save arrays of numbers or text again with numpy.save or numpy.savez."
        ) from error


def list_column(schema, vectors: str | None, besides: Container[str], path: Path) -> str | None:
    """Return the Parquet column of lists of numbers that holds the vectors; None if there are no lists at all.

    Scalar columns are never taken in the place of lists that are there but of the wrong kind: they would be
    something else, such as prices.
    """
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{str(path)!r} has two columns called {twice!r}; every column needs a name of its own.")
    lists = {field.name: field.type for field in schema if _is_list(field.type)}
    fitting = [name for name, kind in lists.items() if _is_number(kind.value_type)]
    if vectors is not None:
        if vectors not in schema.names:
            raise ValueError(f"{str(path)!r} has no column {vectors!r}; it has {', '.join(schema.names)}.")
        if vectors not in fitting:
            raise ValueError(
                f"Column {vectors!r} of {str(path)!r} holds {schema.field(vectors).type}; a column of vectors holds "
                f"lists of numbers. Such columns are: {', '.join(fitting) or 'none'}."
            )
        return vectors
    free = [name for name in fitting if name not in besides]
    if len(free) > 1:
        raise ValueError(f"{str(path)!r} has several columns of lists ({', '.join(free)}); name one with --vectors.")
    if free:
        return free[0]
    unfit = [f"{name} ({kind})" for name, kind in lists.items() if name not in besides]
    if unfit:
        raise ValueError(
            f"{str(path)!r} has lists, but not of numbers: {', '.join(unfit)}. Convert them, or leave them out with "
            "--drop to have the vectors made of scalar columns."
        )
    return None


def stack_lists(column, name: str, path: Path) -> np.ndarray:
    """Return a Parquet column of lists, which must be of one length, as a matrix."""
    column = column.combine_chunks()
    if column.null_count or len(column) == 0:
        raise ValueError(f"Column {name!r} of {str(path)!r} has no vector in {column.null_count or 'all'} rows.")
    lengths = set(require("pyarrow.compute", extra="parquet").list_value_length(column).to_pylist())
    if len(lengths) != 1:
        raise ValueError(f"The vectors of {str(path)!r} have lengths {sorted(lengths)[:5]}; all must agree.")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def check_finite(X: np.ndarray, names: Sequence[str] | None, path: Path) -> None:
    """Refuse NaN and infinity, naming the column."""
    bad = ~np.isfinite(X)
    if bad.any():
        *_, row, column = np.argwhere(bad)[0].tolist()
        what = "a missing value (NaN)" if np.isnan(X[..., row, column]).any() else "infinity"
        name = column if names is None else repr(names[column])
        raise ValueError(
            f"{str(path)!r} holds {what} in column {name}, first in row {row} (rows and columns count from 0); "
            "every entry must be a finite number. Fill or drop such rows first."
        )


def _read(path: Path, choice: _Choice) -> Content:
    readers = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{str(path)!r} ends in {path.suffix!r}; vectors are read from {', '.join(readers)}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    content = reader(path, choice)
    X = content.X
    _check_matrix(X, path)
    check_finite(X, content.feature_names, path)
    return content._replace(X=X if X.dtype in (np.float32, np.float64) else X.astype(np.float32))


def _check_matrix(X: np.ndarray, path: Path) -> None:
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(
            f"The vectors of {str(path)!r} have dtype {X.dtype} and shape {X.shape}; they must be a matrix of "
            "numbers, one row an item."
        )


def _read_npy(path: Path, choice: _Choice) -> Content:
    if choice.vectors is not None:
        raise ValueError(f"A .npy file has one array and no columns; leave out {choice.vectors!r}.")
    _check_names(choice, [], path)
    return Content(load_arrays(path)["X"], None, None, {})


def _read_npz(path: Path, choice: _Choice) -> Content:
    name = choice.vectors or "X"
    arrays = load_arrays(path)
    if name not in arrays:
        raise ValueError(f"{str(path)!r} has no array {name!r}; it has {', '.join(arrays)}.")
    X = arrays.pop(name)
    _check_matrix(X, path)
    if not choice.others:
        return Content(X, name, None, {})
    _check_names(choice, list(arrays), path)
    unfit = {key: values.shape for key, values in arrays.items() if values.shape != X.shape[:1]}
    for key, shape in unfit.items():
        problem = f"{key!r} of {str(path)!r} has shape {shape}, and there are {len(X)} rows in {name!r}"
        if key in choice.named:
            raise ValueError(f"{problem}; give one value a row.")
        if key not in choice.drop:
            warnings.warn(f"{problem}; it is left out.", stacklevel=4)
    kept = {key: _listed(values) for key, values in arrays.items() if key not in unfit and key not in choice.drop}
    return Content(X, name, None, kept)


def _listed(values: np.ndarray) -> list:
    if values.dtype.kind != "M":
        return values.tolist()
    # tolist would turn dates in nanoseconds into bare integers.
    missing = np.isnat(values)
    return [None if skip else text for text, skip in zip(values.astype(str).tolist(), missing, strict=True)]


def _read_parquet(path: Path, choice: _Choice) -> Content:
    pyarrow = require("pyarrow", extra="parquet")
    parquet = require("pyarrow.parquet", extra="parquet")
    try:
        schema = parquet.read_schema(path)
        lists, chosen = None, _feature_columns(schema.names, choice, path)
        if chosen is None:
            lists = list_column(schema, choice.vectors, {*choice.named, *choice.drop}, path)
            chosen = [lists] if lists else _floating_columns(schema, choice, path)
        _check_names(choice, schema.names, path)
        others = [name for name in schema.names if choice.others and name not in (*chosen, *choice.drop)]
        table = parquet.ParquetFile(path).read(columns=[*chosen, *others])
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{str(path)!r} is not a readable Parquet file ({error}).") from error
    columns = {name: table.column(name).to_pylist() for name in others}
    if lists:
        return Content(stack_lists(table.column(lists), lists, path), lists, None, columns)
    X = np.column_stack([_numbers(table.column(name), name, path) for name in chosen])
    return Content(X, None, tuple(chosen), columns)


def _check_names(choice: _Choice, names: Sequence[str], path: Path) -> None:
    for name in (*choice.named, *choice.drop):
        if name not in names:
            raise ValueError(f"{str(path)!r} has no column {name!r}; it has {', '.join(names) or 'none'}.")


def _feature_columns(names: Sequence[str], choice: _Choice, path: Path) -> list[str] | None:
    """Return the columns that a model asks for, or None if it asks for none; a column named as vectors comes first."""
    if choice.features is None or choice.vectors is not None:
        return None
    missing = [name for name in choice.features if name not in names]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise ValueError(
            f"{str(path)!r} lacks {len(missing)} of the {len(choice.features)} columns that the model was fitted on: "
            f"{shown}. Give rows with the same columns, in any order, or name a column of lists with --vectors."
        )
    return list(choice.features)


def _floating_columns(schema, choice: _Choice, path: Path) -> list[str]:
    is_floating = require("pyarrow", extra="parquet").types.is_floating
    skipped = {*choice.named, *choice.drop}
    found = [field.name for field in schema if is_floating(field.type) and field.name not in skipped]
    if not found:
        raise ValueError(f"{str(path)!r} has neither a column of lists nor columns of floating-point numbers.")
    return found


def _numbers(column, name: str, path: Path) -> np.ndarray:
    values = column.to_numpy()
    if values.dtype.kind not in "biuf":
        raise ValueError(f"Column {name!r} of {str(path)!r} holds {column.type}; vectors are made of numbers.")
    return values


def _is_list(kind) -> bool:
    types = require("pyarrow", extra="parquet").types
    checks = (
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    return any(check(kind) for check in checks)


def _is_number(kind) -> bool:
    types = require("pyarrow", extra="parquet").types
    return types.is_floating(kind) or types.is_integer(kind)


def _checked_ids(values: list, name: str) -> np.ndarray:
    wrong = [value for value in values if not isinstance(value, int) or isinstance(value, bool)]
    if wrong:
        raise ValueError(f"The column {name!r} of ids holds {wrong[0]!r}; an id is an integer. Keep it as metadata.")
    return np.array(values)


def _checked_references(values: list, name: str) -> list[str | None]:
    wrong = [value for value in values if not isinstance(value, str | None)]
    if wrong:
        raise ValueError(f"The column {name!r} of references holds {wrong[0]!r}; a reference is text, such as a path.")
    return values


def _plain(value: Any, column: str) -> Any:
    """Return a value as JSON can hold it: dates and times as ISO text, NaN as None."""
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
    elif isinstance(value, str | bool | int | float | None):
        return value
    elif isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    elif isinstance(value, list | tuple):
        return [_plain(part, column) for part in value]
    elif isinstance(value, dict):
        return {key: _plain(part, column) for key, part in value.items()}
    raise ValueError(
        f"Column {column!r} holds {value!r}, which metadata cannot: it may be text, finite numbers, booleans, dates, "
        "or lists of these. Convert the column, or leave it out with --drop."
    )
