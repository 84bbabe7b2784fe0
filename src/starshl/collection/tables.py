"""Vectors with ids and metadata from files: .npy, .npz and .parquet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._extras import require

__all__ = ["Table", "load_arrays", "read_table"]


class Table(NamedTuple):
    """Rows to encode; ``ids`` is None where the file has none, ``metadata`` one dictionary a row."""

    X: np.ndarray
    ids: np.ndarray | None
    metadata: list[dict[str, Any]]

    def labels(self, name: str) -> np.ndarray:
        """Return one metadata field as labels, None where it is missing; integers stay integers."""
        if not any(name in entry for entry in self.metadata):
            known = sorted({key for entry in self.metadata[:1] for key in entry})
            raise ValueError(f"There is no column {name!r}; there are: {', '.join(known) or 'none'}.")
        labels = [entry.get(name) for entry in self.metadata]
        if all(isinstance(label, int) for label in labels):
            return np.array(labels)
        return np.array(labels, dtype=object)


def read_table(path: str | os.PathLike, *, vectors: str | None = None, ids: str | None = None) -> Table:
    """Read vectors from a file.

    Parameters
    ----------
    path : .npy (a matrix), .npz (a matrix ``X`` and other arrays, one value a row) or .parquet
    vectors : str, default=None
        The Parquet column of lists, or the array of the .npz. By default the only column of lists, or else
        all columns of floating-point numbers; and ``X``.
    ids : str, default=None
        The column or array of integer ids. All other columns become metadata.
    """
    path = Path(path)
    readers = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise ValueError(f"{str(path)!r} ends in {path.suffix!r}; vectors are read from {', '.join(readers)}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    X, columns = readers[path.suffix](path, vectors)
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(
            f"The vectors of {str(path)!r} have dtype {X.dtype} and shape {X.shape}; they must be a matrix of "
            "numbers, one row an item."
        )
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
    if ids is not None and ids not in columns:
        raise ValueError(f"{str(path)!r} has no column {ids!r} of ids; it has {', '.join(columns) or 'none'}.")
    found = np.asarray(columns.pop(ids)) if ids is not None else None
    names = list(columns)
    metadata = [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return Table(X, found, metadata or [{} for _ in range(len(X))])


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


def _read_npy(path: Path, vectors: str | None) -> tuple[np.ndarray, dict[str, list]]:
    if vectors is not None:
        raise ValueError(f"A .npy file has one array and no columns; leave out {vectors!r}.")
    return load_arrays(path)["X"], {}


def _read_npz(path: Path, vectors: str | None) -> tuple[np.ndarray, dict[str, list]]:
    name = vectors or "X"
    arrays = load_arrays(path)
    if name not in arrays:
        raise ValueError(f"{str(path)!r} has no array {name!r}; it has {', '.join(arrays)}.")
    X = arrays.pop(name)
    return X, {key: values.tolist() for key, values in arrays.items() if values.shape == X.shape[:1]}


def _read_parquet(path: Path, vectors: str | None) -> tuple[np.ndarray, dict[str, list]]:
    pyarrow = require("pyarrow", extra="parquet")
    try:
        table = require("pyarrow.parquet", extra="parquet").read_table(path)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{str(path)!r} is not a readable Parquet file ({error}).") from error
    types = pyarrow.types
    lists = [f.name for f in table.schema if types.is_list(f.type) or types.is_fixed_size_list(f.type)]
    floats = [f.name for f in table.schema if types.is_floating(f.type)]
    if vectors is not None and vectors not in table.column_names:
        raise ValueError(f"{str(path)!r} has no column {vectors!r}; it has {', '.join(table.column_names)}.")
    if vectors is None and len(lists) > 1:
        raise ValueError(f"{str(path)!r} has several columns of lists ({', '.join(lists)}); name one of them.")
    chosen = [vectors] if vectors else lists or floats
    if not chosen:
        raise ValueError(f"{str(path)!r} has neither a column of lists nor columns of floating-point numbers.")
    others = table.drop_columns(chosen)
    columns = {name: others.column(name).to_pylist() for name in others.column_names}
    if chosen == floats and not lists:
        return np.column_stack([table.column(name).to_numpy() for name in chosen]), columns
    return _stack_lists(table.column(chosen[0]).combine_chunks(), len(table), path), columns


def _stack_lists(column, n_rows: int, path: Path) -> np.ndarray:
    values = column.flatten().to_numpy(zero_copy_only=False)
    if column.null_count or n_rows == 0 or len(values) % n_rows:
        raise ValueError(f"The vectors of {str(path)!r} are missing or not all of one length.")
    lengths = {len(row) for row in column}
    if len(lengths) != 1:
        raise ValueError(f"The vectors of {str(path)!r} have lengths {sorted(lengths)[:5]}; all must agree.")
    return values.reshape(n_rows, -1)
