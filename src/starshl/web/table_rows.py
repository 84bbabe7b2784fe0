"""Rows of a table from outside, with text, numbers and gaps, for a collection whose hasher prepares them itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..base import BaseHasher
from ..collection.prepared_rows import kept_rows, kept_width, takes_cells
from ..features import PreparedHasher, TableFeatures
from ..tables.cells import is_number
from .futures import mapped
from .raw import submitted
from .requests import NewItems
from .searcher import Searcher

__all__ = ["Cell", "TableRow", "row_items", "row_vectors"]

Cell = str | int | float | None
TableRow = Mapping[str, Cell] | Sequence[Cell]

_SHOWN = 20  # columns named in a message
_LONGEST = 80  # letters of a cell in a message


def row_vectors(searcher: Searcher, rows: Sequence[TableRow], name: str = "rows[{}]") -> Future[np.ndarray]:
    """Return what the hasher makes of rows before it encodes them, or the cells if it has nothing to make.

    ``name`` is what errors call a row, with its number in place of the braces.
    """

    def prepare() -> np.ndarray:
        with searcher.opened() as collection:
            hasher = collection.hasher
        cells = _cells(hasher, rows, name)
        width = kept_width(hasher)
        return cells if width is None or width == cells.shape[1] else kept_rows(hasher, cells, width)

    return submitted(prepare)


def row_items(searcher: Searcher, rows: Sequence[TableRow], items: NewItems) -> Future[NewItems]:
    """Return items with what the hasher makes of their rows; columns that other items have as metadata join it."""

    def complete(vectors: np.ndarray) -> NewItems:
        with searcher.opened() as collection:
            names = [str(name) for name in getattr(collection.hasher, "feature_names_in_", ())]
            kept = collection.kept_features()
        metadata = list(items.metadata or [{}] * len(rows))
        for number, row in enumerate(rows if kept else ()):
            cells = row if isinstance(row, Mapping) else dict(zip(names, row, strict=True))
            metadata[number] = {name: cells[name] for name in kept} | dict(metadata[number])
        return replace(items, vectors=vectors, metadata=metadata)

    return mapped(row_vectors(searcher, rows, "items[{}].row"), complete)


def _cells(hasher: BaseHasher, rows: Sequence[TableRow], name: str) -> np.ndarray:
    """Return rows as a matrix of cells in the order of the columns that the hasher was fitted on."""
    if not takes_cells(hasher):
        raise ValueError(
            "The hasher of this collection takes vectors, not rows of a table with text. Send vectors: lists of "
            "numbers."
        )
    width = int(hasher.n_features_in_)
    names = [str(name) for name in getattr(hasher, "feature_names_in_", ())]
    cells = np.empty((len(rows), width), dtype=object)
    for number, row in enumerate(rows):
        if isinstance(row, Mapping):
            cells[number] = _in_order(row, names, name.format(number))
        elif len(row) != width:
            given = f"{name.format(number)} has {len(row)} values"
            raise ValueError(f"{given}; a row has {width}{_listed(names)}. Send all.")
        else:
            cells[number] = list(row)
    _check_numbers(hasher, cells, names, name)
    return cells


def _check_numbers(hasher: BaseHasher, cells: np.ndarray, names: list[str], name: str) -> None:
    """Refuse what is no number where the hasher was fitted on numbers; its steps do not know rows and names."""
    steps = cast(PreparedHasher, hasher).steps_
    if not isinstance(steps[0], TableFeatures):
        return
    fills_gaps = steps[0].impute or len(steps) > 1
    for column in steps[0].number_columns_.tolist():
        where = repr(names[column]) if names else f"column {column}, counted from 0"
        for number, cell in enumerate(cells[:, column].tolist()):
            if cell is None and not fills_gaps:
                raise ValueError(
                    f"{name.format(number)} has no value in {where}, and the model was not fitted to fill gaps. Send a "
                    "number."
                )
            if isinstance(cell, str) and not (is_number(cell) and not math.isinf(float(cell))):
                raise ValueError(
                    f"{name.format(number)} has {cell[:_LONGEST]!r} in {where}; the model was fitted on numbers there. "
                    f"Send a number{', or null if it is missing' if fills_gaps else ''}."
                )


def _in_order(row: Mapping[str, Cell], names: list[str], which: str) -> list[Any]:
    if not names:
        raise ValueError(f"{which} names columns, and those of this collection have no names. Send lists.")
    missing, unknown = [name for name in names if name not in row], sorted(set(row) - set(names))
    if missing or unknown:
        what = f"lacks {missing[0]!r}" if missing else f"has {unknown[0]!r}, which is no column here"
        raise ValueError(
            f"{which} {what}. A row has {len(names)} values{_listed(names)}. Send these, null where a value is missing."
        )
    return [cast(Any, row[name]) for name in names]


def _listed(names: list[str]) -> str:
    return f": {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}" if names else ""
