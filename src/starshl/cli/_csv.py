"""Comma-separated tables: features as numbers, one column of labels of any kind."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ._columns import choose_columns, labels_from_text
from .io import Table

__all__ = ["read_csv", "read_csv_labels"]

_SEPARATORS = ",;\t"


def read_csv(path: Path, labels: str | None, drop: Sequence[str], keep: Sequence[str] | None) -> Table:
    """Read a table whose first line is a header if any of its cells is not a number."""
    layout = _look_at(path)
    features, label = choose_columns(layout.names, layout.n_columns, labels, drop, keep, str(path))
    cells: dict[str, int] = {}
    # Labels become numbers as they are read, so that one pass of NumPy's parser reads the whole table.
    converters = dict.fromkeys(range(layout.n_columns), lambda cell: 0.0)
    for column in features:
        del converters[column]
    if label is not None:
        converters[label] = lambda cell: cells.setdefault(cell.strip(), len(cells))
    values = _parse(path, layout, converters, features)
    y = None
    if label is not None:
        y = labels_from_text(np.array(list(cells), dtype=object)[values[:, label].astype(np.int64)])
    names = None if layout.names is None else tuple(layout.names[column] for column in features)
    return Table(np.ascontiguousarray(values[:, features]), names, y)


def read_csv_labels(path: Path) -> np.ndarray:
    """Read labels from a file with one column, or from its column ``label`` or ``y``."""
    layout = _look_at(path, header_is_text=False)
    names = layout.names or ()
    column = next((names.index(name) for name in ("label", "y") if name in names), 0)
    if layout.n_columns > 1 and column == 0 and names[:1] not in (("label",), ("y",)):
        raise ValueError(
            f"{str(path)!r} has {layout.n_columns} columns and none called 'label' or 'y'; "
            "a file of labels needs one column, or one with such a name."
        )
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file, delimiter=layout.separator) if row or layout.n_columns == 1]
    rows = rows[1:] if layout.names else rows
    return labels_from_text(np.array([row[column].strip() if row else "" for row in rows], dtype=object))


@dataclass(frozen=True, slots=True)
class _Layout:
    separator: str
    names: tuple[str, ...] | None
    n_columns: int


def _look_at(path: Path, *, header_is_text: bool = True) -> _Layout:
    """Find the separator and the header from the first line."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            separator = max(_SEPARATORS, key=first.count)
            cells = [cell.strip() for cell in next(csv.reader([first], delimiter=separator), [])]
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not text in UTF-8 ({error.reason}). Save it as UTF-8.") from error
    if not any(cells):
        raise ValueError(f"{str(path)!r} is empty or begins with an empty line; it must be a table, a row a line.")
    # The first label of a file without features may be text, so there only known names make a header.
    is_header = not all(map(_is_number, cells)) if header_is_text else _names_labels(cells)
    return _Layout(separator, tuple(cells) if is_header else None, len(cells))


def _names_labels(cells: list[str]) -> bool:
    return len(cells) > 1 or cells[0].lower() in ("label", "labels", "y", "class", "target")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == ""
    return True


def _parse(path: Path, layout: _Layout, converters: dict, features: list[int]) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*input contained no data")  # said below, as an error
            values = np.loadtxt(
                path,
                delimiter=layout.separator,
                skiprows=0 if layout.names is None else 1,
                converters=converters,
                comments=None,
                quotechar='"',
                ndmin=2,
                encoding="utf-8-sig",
            )
    except ValueError as error:
        raise ValueError(_explain(path, layout, features, error)) from error
    if len(values) == 0:
        raise ValueError(f"{str(path)!r} has a header and no rows. Give at least one row.")
    return values


def _explain(path: Path, layout: _Layout, features: list[int], error: ValueError) -> str:
    """Find the cell that NumPy's parser stumbled over; it tells a position but no name."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file, delimiter=layout.separator)
        for row in reader:
            if (reader.line_num == 1 and layout.names is not None) or not row:
                continue
            if len(row) != layout.n_columns:
                return (
                    f"Line {reader.line_num} of {str(path)!r} has {len(row)} cells and the first line "
                    f"{layout.n_columns}; every line must have as many. Repair that line."
                )
            for column in features:
                if row[column].strip() == "" or not _is_number(row[column]):
                    what = "an empty cell" if row[column].strip() == "" else repr(row[column])
                    name = column if layout.names is None else repr(layout.names[column])
                    return (
                        f"{str(path)!r} has {what} in column {name}, line {reader.line_num}; features must be numbers. "
                        "Fill it, or name the column in --labels or --drop."
                    )
    return f"{str(path)!r} cannot be read as a table of numbers ({error})."
