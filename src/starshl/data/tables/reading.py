"""Read rows, labels, ids, references and metadata from a file of any kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..._common.warn import warn_caller
from ..._common.words import counted
from .cells import as_ids, as_labels, as_metadata, as_references, labels_from_text, typed_cells
from .columns import Cells, Columns, ResolvedColumns, Source, TableRows, resolve_columns
from .errors import ColumnWarning, TableError
from .numbers import check_numbers, identifier_columns, read_raw
from .text import TextSource
from .typed_files import ArraySource, JsonLinesSource, MatrixSource, ParquetSource, open_archive

_SOURCES: dict[str, Callable[[Path], Source]] = {
    ".npy": MatrixSource,
    ".npz": open_archive,
    ".csv": TextSource,
    ".tsv": TextSource,
    ".jsonl": JsonLinesSource,
    ".parquet": ParquetSource,
}
READABLE = tuple(_SOURCES)
_SHOWN = 20  # names in a message
_WHOLE = 2.0**53  # up to which a float holds every whole number


@dataclass(frozen=True, slots=True)
class Table:
    """What was read from a file; what it does not hold is None.

    Attributes
    ----------
    X : matrix of float32 or float64, or a sparse one in CSR format; of objects if raw cells were requested
    y : labels, which :func:`read_table` describes
    ids : integers
    references : text or None, one per row
    metadata : one dictionary per row
    feature_names : the columns that X was made of, if each is one feature
    vectors : the one column or array that X was read from otherwise
    label_column : the column, array or file that y was read from
    decimal : what came before the decimals of numbers in text
    stored_type : the type of the numbers in the file, which is that of X for text
    """

    X: TableRows
    y: np.ndarray | None = None
    ids: np.ndarray | None = None
    references: list[str | None] | None = None
    metadata: list[dict[str, Any]] | None = None
    feature_names: tuple[str, ...] | None = None
    vectors: str | None = None
    label_column: str | None = None
    decimal: str = "."
    stored_type: np.dtype | None = None


def read_table(path: str | os.PathLike[str], columns: Columns | None = None) -> Table:
    """Read the rows of a file and what belongs to them.

    A .npy holds a matrix; an .npz a matrix ``X`` and other arrays, or a sparse matrix of ``scipy.sparse.save_npz``;
    a .csv or .tsv numbers, with a header or without; a .jsonl one object per row; a .parquet one column per feature
    or one of lists. In all but the first two, a column of lists of numbers may hold the rows.

    Labels keep their type. In text they are integers if all of them are plain integers, and text otherwise. A row
    is unlabeled if its cell is null, NaN or empty, or -1 among numbers: y is -1, NaN or None there, as
    ``BaseHasher.fit`` expects it.
    """
    path, columns = check_readable(path), columns or Columns()
    source = _opened(path, columns)
    found = resolve_columns(source, columns)
    X, stored_type, cells = _read(source, found, columns, found.others)
    y = None if found.labels is None else _labels(source, cells[found.labels])
    typed = {name: _typed(source, values) for name, values in cells.items()}
    table = Table(
        X,
        y,
        ids=None if found.ids is None else as_ids(typed[found.ids], found.ids),
        references=None if found.references is None else as_references(cells[found.references], found.references),
        metadata=_metadata(path, typed, found, X.shape[0]) if columns.others == "metadata" else None,
        feature_names=found.feature_names,
        vectors=found.vectors,
        label_column=found.labels,
        decimal=source.decimal if isinstance(source, TextSource) else ".",
        stored_type=stored_type,
    )
    return with_wanted_labels(table, columns)


def read_vectors(path: str | os.PathLike[str], columns: Columns | None = None) -> TableRows:
    """Read only the rows of a file, as :func:`read_table` would."""
    path, columns = check_readable(path), columns or Columns()
    source = _opened(path, columns)
    return _read(source, resolve_columns(source, columns), columns, ())[0]


def read_labels(path: str | os.PathLike[str], n_rows: int | None = None) -> np.ndarray:
    """Read labels from a separate file: a .npy vector, ``y`` of an .npz, or the column of a table.

    A table has one column, or one called ``label`` or ``y``. If ``n_rows`` is given, there must be as many labels.
    """
    path = check_readable(path)
    labels = _read_labels(path)
    if n_rows is not None and len(labels) != n_rows:
        problem = f"holds {counted(len(labels), 'label')}, and there are {counted(n_rows, 'row')} to label"
        raise TableError(path, [problem], "Give one label per row, and an empty one or -1 where there is none.")
    return labels


def _read_labels(path: Path) -> np.ndarray:
    source = _SOURCES[path.suffix.lower()](path)
    if isinstance(source, MatrixSource):
        X, _ = source.read((), (), allow_missing=True)
        if sparse.issparse(X):
            raise TableError(path, ["holds a sparse matrix"], "Give labels as a .npy vector.")
        return as_labels(X)
    names = [name for name in ("label", "y") if name in source.kinds] or list(source.kinds)
    if len(names) != 1:
        known = ", ".join(map(repr, source.kinds)) or "none"
        problem = f"should hold labels in one column, or in one called 'label' or 'y', and has the columns {known}"
        raise TableError(path, [problem], "Rename the column of labels.")
    _, cells = source.read((), names, allow_missing=True)
    return _labels(source, cells[names[0]])


def with_kept_features(table: Table, names: Sequence[str]) -> Table:
    """Return a table whose metadata have the values of these features, too, before those of other columns.

    A column of whole numbers becomes integers, and a missing value None. Names of columns that are metadata already
    change nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.data.tables import Table, with_kept_features
    >>> table = Table(np.array([[70.0, 1.5], [29.0, np.nan]]), feature_names=("age", "size"))
    >>> with_kept_features(table, ["age", "size"]).metadata
    [{'age': 70, 'size': 1.5}, {'age': 29, 'size': None}]
    """
    features = table.feature_names or ()
    rows = table.metadata or [{} for _ in range(table.X.shape[0])]
    others = set(rows[0]) if rows else set()
    unknown = [name for name in names if name not in features and name not in others]
    if unknown:
        known = ", ".join(features[:_SHOWN]) + (", ..." if len(features) > _SHOWN else "")
        which = f"Features come from {known}; name some of these." if features else "Its features have no names."
        raise ValueError(f"{unknown[0]!r} is no column of the table that can become metadata. {which}")
    kept = {name: _values(table, features.index(name)) for name in names if name in features}
    if not kept:
        return table
    values = zip(*kept.values(), strict=True)
    metadata = [dict(zip(kept, cells, strict=True)) | row for cells, row in zip(values, rows, strict=True)]
    return replace(table, metadata=metadata)


def with_wanted_labels(table: Table, columns: Columns) -> Table:
    """Return a table with the labels of the separate file that the columns name, or without any if these say so."""
    if columns.ignore_labels:
        return replace(table, y=None, label_column=None)
    if columns.label_file is None:
        return table
    labels = read_labels(columns.label_file, table.X.shape[0])
    return replace(table, y=labels, label_column=str(columns.label_file))


def check_readable(path: str | os.PathLike[str]) -> Path:
    """Return a path if it is a file of a kind that is read here."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder. Give one file: {', '.join(READABLE)}.")
    if path.suffix.lower() not in _SOURCES:
        raise ValueError(
            f"{str(path)!r} ends in {path.suffix!r}; tables are read from {', '.join(READABLE)}. Convert it first."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}. Check the path.")
    return path


def warn_of_identifiers(X: TableRows, names: Sequence[str], source: Source) -> None:
    """Warn of features that look like ids."""
    suspects = identifier_columns(X, names)
    if suspects and len(suspects) < len(names):
        shown = ", ".join(map(repr, suspects))
        warn_caller(
            ColumnWarning(
                "{path!r} has a different integer in every row of {shown}, like an id",
                advice="It is used as a feature: drop it if it is an id.",
                path=str(source.path),
                shown=shown,
                columns=tuple(suspects),
            ),
        )


def _opened(path: Path, columns: Columns) -> Source:
    opener = _SOURCES[path.suffix.lower()]
    return TextSource(path, columns.decimal or ".", columns.named) if opener is TextSource else opener(path)


def _read(
    source: Source, found: ResolvedColumns, columns: Columns, others: Sequence[str]
) -> tuple[TableRows, np.dtype, Mapping[str, Cells]]:
    if columns.raw and not found.is_vectors:
        raw, cells = read_raw(source, found.features, columns, others)
        return raw, raw.dtype, cells
    if isinstance(source, ArraySource):
        source.require_entry_per_row(found.named if others else (), found.features[0])
    try:
        X, cells = source.read(found.features, others, allow_missing=columns.allow_missing)
    except TableError as error:
        if isinstance(source, TextSource) and error.causes and columns.features is not None:
            raise source.refusal(found.features, allow_missing=columns.allow_missing, for_model=True) from error
        raise
    assert X is not None  # features were asked for
    names, stored_type = found.features if not found.is_vectors else None, X.dtype
    X = check_numbers(X, names, source, allow_missing=columns.allow_missing)
    if columns.features is None and names is not None:
        warn_of_identifiers(X, names, source)
    return X, stored_type, cells


def _labels(source: Source, cells: Cells) -> np.ndarray:
    return labels_from_text(list(cells)) if isinstance(source, TextSource) else as_labels(cells)


def _typed(source: Source, cells: Cells) -> Cells:
    return typed_cells(list(cells), decimal=source.decimal) if isinstance(source, TextSource) else cells


def _metadata(path: Path, cells: Mapping[str, Cells], found: ResolvedColumns, n_rows: int) -> list[dict[str, Any]]:
    columns, problems, unfit = {}, [], []
    for name in found.metadata:
        if name not in cells:  # an array of another length, which was left out with a warning
            continue
        try:
            columns[name] = as_metadata(cells[name], name)
        except ValueError as error:
            problems.append(str(error))
            unfit.append(name)
    if problems:
        raise TableError(
            path,
            problems,
            "Metadata may be text, finite numbers, booleans, dates, or lists of these. Convert or drop such columns.",
            droppable=unfit,
        )
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return rows or [{} for _ in range(n_rows)]


def _values(table: Table, position: int) -> list[Any]:
    column = table.X[:, [position]]
    cells = (column.toarray() if hasattr(column, "toarray") else np.asarray(column))[:, 0]
    values = as_metadata(cells, table.feature_names[position] if table.feature_names else str(position))
    if all(value is None or _is_whole(value) for value in values):
        return [None if value is None else int(value) for value in values]
    return values


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) <= _WHOLE
