"""Text tables: .csv with commas, semicolons or tabs, and .tsv; and what is wrong with their cells."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO, TypeAlias

import numpy as np

from ..._common.formulas import unguarded
from .cells import is_missing_mark, is_number, is_number_with_comma, number_text
from .columns import Kind
from .errors import MAX_SHOWN, Cause, TableError

_SEPARATORS = ",;\t"
_LABEL_HEADERS = ("label", "labels", "y", "class", "target")
# By the number of the column. NumPy would take names, too.
_Converters: TypeAlias = dict[int | str, Callable[[str], float]]
_ADVICE: dict[Cause, str] = {
    "text": "Features must be numbers. Fill or convert these cells, drop the columns, or use one as labels.",
    "comma": "A comma makes a number into text. Write these numbers with a decimal point and nothing between "
    "thousands, such as 1204.5, or drop the columns.",
    "point": "Decimals follow a comma here, so a point may only stand between thousands, as in 1.204,5. Write these "
    "numbers with a decimal comma, or drop the columns.",
    "infinite": "Numbers must be finite. Convert these cells, or drop the columns.",
    "missing": "A number is missing there. Fill these cells, or drop the columns.",
}
_ADVICE_FOR_A_MODEL: dict[Cause, str] = {
    "text": "The model was fitted on numbers there. Convert these cells.",
    "comma": "A comma makes a number into text. Write these numbers with a decimal point and nothing between "
    "thousands, such as 1204.5.",
    "point": "Decimals follow a comma here, so a point may only stand between thousands, as in 1.204,5. Write these "
    "numbers with a decimal comma.",
    "infinite": "Numbers must be finite. Convert these cells.",
    "missing": "A number is missing there, and the model was not fitted to fill gaps. Fill these cells.",
}


class TextSource:
    """A table in text. Columns without a header are numbered from 0, and -1 is the last.

    ``decimal`` is what comes before the decimals of a number. ``named`` are columns that somebody has named: the first
    line of a single column is a header if it is one of them.
    """

    default_labels = "label"
    default_vectors = None

    def __init__(self, path: Path, decimal: str = ".", named: Collection[str] = ()) -> None:
        self.path = path
        self.decimal = decimal
        first, second = self._first_lines()
        try:
            self._separator = "\t" if path.suffix.lower() == ".tsv" else _separator_of(first, decimal)
            cells = _split(first, self._separator)
        except csv.Error as error:
            raise _unreadable(path, 1, error) from error
        try:
            below = _split(second, self._separator)
        except csv.Error as error:
            raise _unreadable(path, 2, error) from error
        is_named = len(cells) == 1 and cells[0] in named
        as_numbers = ([number_text(cell, decimal) or cell for cell in line] for line in (cells, below))
        self.has_names = is_named or _is_header(*as_numbers)
        self._names = cells if self.has_names else [str(position) for position in range(len(cells))]
        twice = sorted({name for name in self._names if self._names.count(name) > 1})
        if twice:
            problems = [f"has two columns called {name!r}" for name in twice[:MAX_SHOWN]]
            raise TableError(path, problems, "Give every column its own name.")
        self.kinds: Mapping[str, Kind] = dict.fromkeys(self._names, "cells")

    def describe(self, name: str) -> str:
        """Return what a column holds."""
        return "text"

    def position_of(self, name: str) -> str:
        """Return the name of a column, counted from the end for a negative number if there is no header."""
        n = len(self._names)
        if not self.has_names and name.removeprefix("-").isdecimal() and -n <= int(name) < 0:
            return str(int(name) % n)
        return name

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[np.ndarray | None, dict[str, list[str]]]:
        """Read features as numbers and other columns as text, in one pass of NumPy's parser."""
        if not features:
            return None, self._read_text(others)
        # Cells of other columns become numbers as they are read: their place among the distinct ones.
        distinct: dict[str, dict[str, int]] = {name: {} for name in others}
        converters: _Converters = {
            i: _numbered(distinct.get(name)) for i, name in enumerate(self._names) if name not in features
        }
        if allow_missing or self.decimal != ".":
            convert = partial(_number, decimal=self.decimal, allow_missing=allow_missing)
            converters |= {self._names.index(name): convert for name in features}
        values = self._parse(converters, features, allow_missing)
        X = np.ascontiguousarray(values[:, [self._names.index(name) for name in features]])
        if not np.isfinite(X).all() and (np.isinf(X).any() or not allow_missing):  # NumPy reads nan and inf as numbers
            raise self.refusal(features, allow_missing=allow_missing)
        columns = {}
        for name, cells in distinct.items():
            texts = list(cells)
            columns[name] = [texts[int(place)] for place in values[:, self._names.index(name)]]
        return X, columns

    def _first_lines(self) -> tuple[str, str]:
        try:
            with self._open() as file:
                first, second = file.readline(), file.readline()
        except UnicodeDecodeError as error:
            raise TableError(self.path, [f"is not text in UTF-8 ({error.reason})"], "Save it as UTF-8.") from error
        if not first.strip():
            raise TableError(self.path, ["is empty or begins with an empty line"], "Write one row per line.")
        return first, second

    def _open(self, errors: str = "strict") -> TextIO:
        return self.path.open(newline="", encoding="utf-8-sig", errors=errors)

    def _parse(self, converters: _Converters, features: Sequence[str], allow_missing: bool) -> np.ndarray:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*input contained no data")  # said below, as an error
                values = np.loadtxt(
                    self.path,
                    delimiter=self._separator,
                    skiprows=int(self.has_names),
                    converters=converters,
                    comments=None,
                    quotechar='"',
                    ndmin=2,
                    encoding="utf-8-sig",
                )
        except ValueError as error:
            raise self.refusal(features, allow_missing=allow_missing, reason=str(error)) from error
        if len(values) == 0:
            raise TableError(self.path, ["has a header but no rows"], "Give at least one row.")
        if values.shape[1] != len(self._names):  # rows agree among themselves, but not with the header
            raise self.refusal(features, allow_missing=allow_missing, reason="rows and header differ")
        return values

    def _read_text(self, names: Sequence[str]) -> dict[str, list[str]]:
        rows = []
        for line, row in self._lines():
            if len(row) > len(self._names):
                raise TableError(self.path, [_wrong_length(line, row, len(self._names))], "Repair that line.")
            if row or len(self._names) == 1:
                rows.append(row)
        # In a file of one column an empty line is a row with an empty cell.
        places = {name: self._names.index(name) for name in names}
        return {name: [unguarded(row[i].strip()) if len(row) > i else "" for row in rows] for name, i in places.items()}

    def _lines(self, errors: str = "strict") -> Iterator[tuple[int, list[str]]]:
        """Yield the rows below the header with the line in which each ends."""
        last = 0
        with self._open(errors) as file:
            reader = csv.reader(file, delimiter=self._separator)
            try:
                for row in reader:
                    last = reader.line_num
                    if last > int(self.has_names):
                        yield last, row
            except csv.Error as error:
                raise _unreadable(self.path, last + 1, error) from error
            except UnicodeDecodeError as error:
                raise TableError(self.path, [f"is not text in UTF-8 ({error.reason})"], "Save it as UTF-8.") from error

    def refusal(
        self, features: Sequence[str], *, allow_missing: bool, reason: str = "", for_model: bool = False
    ) -> TableError:
        """Return the error for all features with cells that are no numbers; a parser reports only the first cell.

        ``for_model`` says that a fitted model needs these columns, so that none can be left out.
        """
        problems = CellProblems(features, allow_missing=allow_missing, quoted=self.has_names, decimal=self.decimal)
        places = [self._names.index(name) for name in features]
        for line, row in self._lines(errors="replace"):
            if not row:
                continue
            if len(row) != len(self._names):
                problems.add_line(_wrong_length(line, row, len(self._names)))
                continue
            problems.add_row(line, [row[place] for place in places])
        return problems.error(self.path, reason, for_model=for_model)


def _unreadable(path: Path, line: int, error: csv.Error) -> TableError:
    most = csv.field_size_limit()
    if "field limit" not in str(error):
        return TableError(path, [f"cannot be read as a table from line {line} on ({error})"], "Repair that line.")
    return TableError(
        path,
        [f"has a cell of more than {most:,} characters in the row that begins in line {line}"],
        "A quotation mark that nobody closed makes such a cell: close it. Texts that are really as long can be read "
        "from .jsonl or .parquet.",
    )


def _wrong_length(line: int, row: Sequence[str], n_columns: int) -> str:
    return f"has {len(row)} cells in line {line} and {n_columns} in the first line"


def _numbered(distinct: dict[str, int] | None) -> Callable[[str], float]:
    if distinct is None:
        return lambda cell: 0.0
    return lambda cell: distinct.setdefault(unguarded(cell.strip()), len(distinct))


def _number(cell: str, *, decimal: str, allow_missing: bool) -> float:
    if allow_missing and is_missing_mark(cell):
        return np.nan
    number = number_text(cell, decimal)
    if number is None:
        raise ValueError(f"{cell!r} is not a number")
    return float(number)


def _separator_of(line: str, decimal: str) -> str:
    """Return what separates the cells of a line; commas do not if others stand between numbers with commas."""
    for separator in ";" if decimal == "." else ";\t":
        if separator in line and any(is_number_with_comma(cell) for cell in _split(line, separator)):
            return separator
    if decimal == "," and is_number_with_comma(line):
        return ";"  # one column, in which commas come before decimals
    return max(_SEPARATORS, key=line.count)


def _split(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _is_header(first: list[str], second: list[str]) -> bool:
    """Return whether the first line is a header, and not a row with a label in text, such as ``5.1,3.5,setosa``.

    A header has text in all cells, or text above a number, or text next to numbers that count the columns.
    """
    if len(first) == 1 and first[0].lower() not in _LABEL_HEADERS and not (second and is_number(second[0])):
        return False  # a column of labels in text
    is_text = [cell != "" and not is_number(cell) and not is_number_with_comma(cell) for cell in first]
    # A first line may lack a number, too.
    is_name = [text and not is_missing_mark(cell) for text, cell in zip(is_text, first, strict=True)]
    above_number = any(name and is_number(cell) for name, cell in zip(is_name, second, strict=False))
    counted = all(text or first[position] == str(position) for position, text in enumerate(is_text))
    return any(is_text) and (above_number or counted)


class CellProblems:
    """Collects what is wrong with a table of numbers: one cell per column, and lines of the wrong length.

    Parameters
    ----------
    names : the columns that must hold numbers
    allow_missing : whether cells of theirs may be missing
    quoted : whether columns have names, which are then put in quotes
    decimal : what comes before the decimals of a number
    """

    def __init__(self, names: Sequence[str], *, allow_missing: bool, quoted: bool, decimal: str = ".") -> None:
        self._names = tuple(names)
        self._allow_missing = allow_missing
        self._quoted = quoted
        self._decimal = decimal
        self._lines: list[str] = []
        self._cells: dict[str, tuple[Cause, str]] = {}

    def add_line(self, problem: str) -> None:
        """Note a line that has too few or too many cells."""
        self._lines.append(problem)

    def add_row(self, line: int, cells: Sequence[str]) -> None:
        """Note the cells of a line, in the order of the names, that are no numbers."""
        for name, cell in zip(self._names, cells, strict=True):
            earlier = self._cells.get(name)
            # A cell of text says more about a column than a missing one that came before.
            if earlier is not None and earlier[0] != "missing":
                continue
            cause = _cause(cell.strip(), self._decimal)
            if cause is None or (cause == "missing" and (self._allow_missing or earlier is not None)):
                continue
            self._cells[name] = cause, self._described(name, cell.strip(), cause, line)

    def error(self, path: Path, reason: str, *, for_model: bool) -> TableError:
        """Return everything in one error; ``reason`` is what the parser said, in case nothing was found."""
        cells = [described for _, described in self._cells.values()]
        problems = _first_of(self._lines, "such lines") + _first_of(cells, "such columns")
        if not problems:
            return TableError(path, [f"cannot be read as a table of numbers ({reason})"])
        found = {cause for cause, _ in self._cells.values()}
        advice = _ADVICE_FOR_A_MODEL if for_model else _ADVICE
        causes: list[Cause] = [cause for cause in advice if cause in found]
        # What to do with text says what to do with missing cells, too.
        sentences = [advice[cause] for cause in causes if cause != "missing" or "text" not in causes]
        return TableError(
            path,
            problems,
            " ".join(sentences) or "Every line needs as many cells as the first. Repair these lines.",
            droppable=() if for_model else tuple(self._cells),
            causes=causes,
        )

    def _described(self, name: str, cell: str, cause: Cause, line: int) -> str:
        label = repr(name) if self._quoted else name
        if not cell:
            what = "an empty cell"
        elif cause == "infinite":
            what = f"infinity ({cell!r})"
        elif cause == "missing":
            what = f"a missing value ({cell!r})"
        else:
            what = repr(cell)
        return f"has {what} in column {label}, line {line}"


def _cause(cell: str, decimal: str) -> Cause | None:
    if is_missing_mark(cell):
        return "missing"
    number = number_text(cell, decimal)
    if number is not None:
        return "infinite" if math.isinf(float(number)) else None
    if is_number(cell):
        return "point"
    return "comma" if is_number_with_comma(cell) else "text"


def _first_of(problems: list[str], what: str) -> list[str]:
    rest = len(problems) - MAX_SHOWN
    return problems[:MAX_SHOWN] + ([f"has {rest} more {what}"] if rest > 0 else [])
