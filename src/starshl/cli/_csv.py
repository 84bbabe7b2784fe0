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

__all__ = ["read_csv", "read_csv_cells", "read_csv_labels"]

_SEPARATORS = ",;\t"
_LABEL_HEADERS = ("label", "labels", "y", "class", "target")


def read_csv(path: Path, labels: str | None, drop: Sequence[str], keep: Sequence[str] | None) -> Table:
    """Read a table, with a header or without."""
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


def read_csv_cells(path: Path) -> dict[str, list[str]]:
    """Read every column as text; columns without names are numbered from 0."""
    layout = _look_at(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file, delimiter=layout.separator))[layout.n_header_lines :]
    names = layout.names or tuple(map(str, range(layout.n_columns)))
    return {name: [row[column].strip() for row in rows if row] for column, name in enumerate(names)}


def read_csv_labels(path: Path) -> np.ndarray:
    """Read labels from a file with one column, or from its column ``label`` or ``y``."""
    layout = _look_at(path)
    names = layout.names or ()
    column = next((names.index(name) for name in ("label", "y") if name in names), 0)
    if layout.n_columns > 1 and not {"label", "y"} & set(names):
        raise ValueError(
            f"{str(path)!r} has {layout.n_columns} columns and none called 'label' or 'y'; "
            "a file of labels needs one column, or one with such a name."
        )
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file, delimiter=layout.separator))[layout.n_header_lines :]
    if layout.n_columns > 1:
        rows = [row for row in rows if row]
    # In a file of one column an empty line is an unlabeled row.
    return labels_from_text(np.array([row[column].strip() if len(row) > column else "" for row in rows], dtype=object))


@dataclass(frozen=True, slots=True)
class _Layout:
    separator: str
    names: tuple[str, ...] | None
    n_columns: int

    @property
    def n_header_lines(self) -> int:
        return 0 if self.names is None else 1


def _look_at(path: Path) -> _Layout:
    """Find the separator and the header from the first two lines."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [file.readline(), file.readline()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not text in UTF-8 ({error.reason}). Save it as UTF-8.") from error
    if not lines[0].strip():
        raise ValueError(f"{str(path)!r} is empty or begins with an empty line; it must be a table, a row a line.")
    separator = max(_SEPARATORS, key=lines[0].count)
    first, second = (_cells(line, separator) for line in lines)
    return _Layout(separator, tuple(first) if _is_header(first, second) else None, len(first))


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _is_header(first: list[str], second: list[str]) -> bool:
    """Tell a header from a row with a label in text, such as ``5.1,3.5,setosa``.

    A header is text in all cells, or text above a number, or text beside numbers that count the columns.
    """
    if len(first) == 1 and first[0].lower() not in _LABEL_HEADERS and not (second and _is_number(second[0])):
        return False  # a column of labels in text
    is_text = [not _is_number(cell) for cell in first]
    above_number = any(text and cell and _is_number(cell) for text, cell in zip(is_text, second, strict=False))
    counted = all(text or first[position] == str(position) for position, text in enumerate(is_text))
    return any(is_text) and (above_number or counted)


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
                skiprows=layout.n_header_lines,
                converters=converters,
                comments=None,
                quotechar='"',
                ndmin=2,
                encoding="utf-8-sig",
            )
    except ValueError as error:
        raise ValueError(_explain(path, layout, features, str(error))) from error
    if len(values) == 0:
        raise ValueError(f"{str(path)!r} has a header and no rows. Give at least one row.")
    if values.shape[1] != layout.n_columns:  # rows agree among themselves, but not with the header
        raise ValueError(_explain(path, layout, features))
    return values


def _explain(path: Path, layout: _Layout, features: list[int], reason: str = "rows and header differ") -> str:
    """Find the cell that NumPy's parser stumbled over; it tells a position but no name."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file, delimiter=layout.separator)
        for row in reader:
            if reader.line_num <= layout.n_header_lines or not row:
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
    return f"{str(path)!r} cannot be read as a table of numbers ({reason})."
