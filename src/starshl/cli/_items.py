"""Items for a collection from every kind of file that `starshl fit` reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..collection.tables import Content, Table, make_table, read_table, read_vectors
from ._csv import read_csv_cells
from .io import check_readable, read_rows

__all__ = ["read_items", "read_queries"]


def read_items(
    path: Path,
    *,
    vectors: str | None = None,
    ids: str | None = None,
    labels: str | None = None,
    references: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
) -> Table:
    """Read vectors, ids, references and metadata; the arguments are those of ``read_table``.

    In a .csv without a header, or for a model without names, every column is a feature that is not named as
    something else, as it is for `starshl fit`.
    """
    check_readable(path)
    if path.suffix.lower() != ".csv":
        return read_table(
            path, vectors=vectors, ids=ids, labels=labels, references=references, drop=drop, features=features
        )
    named = [name for name in (ids, labels, references) if name is not None]
    rows = read_rows(path, drop=[*named, *drop], keep=features, vectors=vectors)
    cells = read_csv_cells(path)
    for name in (*named, *drop):
        if name not in cells:  # such as -1, the last column of a file without a header
            raise ValueError(f"{str(path)!r} has no column {name!r}; it has {', '.join(cells)}.")
    taken = rows.names or [name for name in cells if name not in (*named, *drop)]
    others = {name: _values(column) for name, column in cells.items() if name not in (*taken, *drop)}
    if references is not None and references in others:
        others[references] = [cell or None for cell in cells[references]]
    return make_table(Content(rows.X, None, rows.names, others), path, ids=ids, labels=labels, references=references)


def read_queries(path: Path, *, vectors: str | None, features: Sequence[str] | None) -> np.ndarray:
    """Read only the vectors of a file."""
    check_readable(path)
    if path.suffix.lower() == ".csv":
        return read_rows(path, keep=features, vectors=vectors).X
    return read_vectors(path, vectors=vectors, features=features)


def _values(cells: list[str]) -> list[Any]:
    """Return a column as integers, numbers or text, whichever fits all its cells; an empty cell is None."""
    for kind in (int, float):
        try:
            return [kind(cell) if cell else None for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]
