"""CellProblems: the cells of a text table that are no numbers, one per column, and what to do about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from .cells import is_missing_mark, is_number, is_number_with_comma, number_text
from .errors import MAX_SHOWN, Cause, TableError

__all__ = ["CellProblems"]

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
