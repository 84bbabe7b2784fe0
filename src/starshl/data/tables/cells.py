"""Cells of a table: what a cell of text says, and the labels, ids, references and metadata that columns become."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .columns import Cells

# What spreadsheets, databases, R, pandas and people write where a value is missing.
_MISSING_MARKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-", "?"})
# Where the comma comes before the decimals, a point separates thousands, and may do so only in front of a comma: 1.204
# alone could be either.
_WITH_DECIMAL_COMMA = re.compile(r"[+-]?(\d+(,\d*)?|,\d+|\d{1,3}(\.\d{3})+,\d*)([eE][+-]?\d+)?")
# 4,126 and 1.204,5, where the comma comes before the decimals; 1,204 and 1,204.5, where it separates thousands.
_NUMBER_WITH_COMMA = re.compile(r"[+-]?(\d+,\d+|\d{1,3}(\.\d{3})+,\d+|\d{1,3}(,\d{3})+(\.\d+)?)([eE][+-]?\d+)?")
# Without a leading zero: 0123 is a zip code, and 123 another.
_PLAIN_NUMBER = re.compile(r"-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_INT64 = np.iinfo(np.int64)


def is_missing_mark(cell: str) -> bool:
    """Return whether a cell is empty or holds a common mark of a missing value, in capital or small letters.

    Only next to numbers does it mean that: among other text, ``NA`` may be North America.

    Examples
    --------
    >>> [is_missing_mark(cell) for cell in ("NA", "n/a", "-", "-1", "none", "nobody")]
    [True, True, True, False, True, False]
    """
    return cell.strip().casefold() in _MISSING_MARKS


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number; ``nan`` counts as one."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def number_text(cell: str, decimal: str) -> str | None:
    """Return a number that is written with this decimal mark as Python writes it, None if a cell holds none.

    Examples
    --------
    >>> [number_text(cell, ",") for cell in ("4,5", "1.204,5", "70", "4.5", "x")]
    ['4.5', '1204.5', '70', None, None]
    """
    if decimal == ".":
        return cell if is_number(cell) else None
    stripped = cell.strip()
    if _WITH_DECIMAL_COMMA.fullmatch(stripped):
        return stripped.replace(".", "").replace(",", ".")
    return cell if is_number(cell) and "." not in cell else None  # nan and inf


def is_number_with_comma(cell: str) -> bool:
    """Return whether a cell looks like a number with a decimal comma, or with commas between thousands."""
    return _NUMBER_WITH_COMMA.fullmatch(cell.strip()) is not None


def typed_cells(cells: Sequence[str], *, with_marks: bool = True, decimal: str = ".") -> list[Any]:
    """Return cells of text as integers, numbers or text, whichever fits all of them; an empty cell is None.

    ``with_marks`` makes common marks of missing values, such as NA, None too if all other cells are numbers;
    ``decimal`` is what comes before the decimals of a number.

    Examples
    --------
    >>> typed_cells(["1.5", "NA", ""]), typed_cells(["EU", "NA", ""])
    ([1.5, None, None], ['EU', 'NA', None])
    """
    distinct = set(cells)
    missing = {cell for cell in distinct if (is_missing_mark(cell) if with_marks else cell == "")}
    present = {cell: number_text(cell, decimal) or "" for cell in distinct - missing}
    if present and all(_is_plain_integer(number) for number in present.values()):
        return [None if cell in missing else int(present[cell]) for cell in cells]
    if present and all(_PLAIN_NUMBER.fullmatch(number) for number in present.values()):
        return [None if cell in missing else float(present[cell]) for cell in cells]
    return [cell or None for cell in cells]


def labels_from_text(cells: Sequence[str]) -> np.ndarray:
    """Return integers if all labels are plain integers, else text; an empty cell is unlabeled.

    Unlabeled is -1 among integers and None among text. A plain integer is one that comes back unchanged when it is
    written again: ``0123``, ``1_0``, ``+1`` and ``1.0`` are text, so that no two labels become one. ``nan`` is
    unlabeled where all other labels are numbers.

    Examples
    --------
    >>> labels_from_text(["3", "", "10"]).tolist(), labels_from_text(["3", "", "03"]).tolist()
    ([3, -1, 10], ['3', None, '03'])
    """
    distinct = set(cells) - {""}
    if all(is_number(cell) for cell in distinct):
        distinct -= {cell for cell in distinct if cell.lower() == "nan"}
        cells = [cell if cell in distinct else "" for cell in cells]
    if all(_is_plain_integer(cell) for cell in distinct):
        return np.array([int(cell) if cell else -1 for cell in cells], dtype=np.int64)
    return _objects([cell or None for cell in cells])


def as_labels(values: Cells) -> np.ndarray:
    """Return labels in their own type; null, NaN and the empty text are unlabeled.

    They become -1 among integers, NaN among floats and None among everything else; -1 among floats stays, and means
    unlabeled, too.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind not in "UO":
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind == "U" and values.all():
        return values
    values = [None if value == "" else value for value in _listed(values)]
    labels = [value for value in values if value is not None]
    if all(type(label) is int for label in labels) and all(_INT64.min <= label <= _INT64.max for label in labels):
        return np.array([-1 if value is None else value for value in values], dtype=np.int64)
    if all(type(label) in (int, float) for label in labels):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return _objects(values)


def as_ids(values: Cells, name: str) -> np.ndarray:
    """Return a column of integers; refuse anything else."""
    values = _listed(values)
    wrong = [value for value in values if type(value) is not int]
    if wrong:
        raise ValueError(f"The column {name!r} of ids holds {wrong[0]!r}; an id is an integer. Keep it as metadata.")
    return np.array(values)


def as_references(values: Cells, name: str) -> list[str | None]:
    """Return a column of text, None where it is empty; refuse anything else."""
    references = [None if value == "" else value for value in _listed(values)]
    wrong = [value for value in references if not isinstance(value, str | None)]
    if wrong:
        raise ValueError(f"The column {name!r} of references holds {wrong[0]!r}; a reference is text, such as a path.")
    return references


def as_metadata(values: Cells, name: str) -> list[Any]:
    """Return a column as JSON can hold it: dates and times as ISO text, NaN as None.

    The error for anything else is the end of a sentence that begins with the name of the file.
    """
    return [_plain(value, name) for value in _listed(values)]


def _is_plain_integer(cell: str) -> bool:
    # The bound on the length keeps int() from reading a million digits.
    if len(cell) > 20 or not cell.isascii() or not cell.lstrip("-").isdigit():
        return False
    number = int(cell) if cell.count("-") <= 1 else None
    return number is not None and str(number) == cell and _INT64.min <= number <= _INT64.max


def _objects(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _listed(values: Cells) -> list[Any]:
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind != "M":
        return values.tolist()
    # tolist would turn dates in nanoseconds into bare integers.
    missing = np.isnat(values)
    return [None if skip else text for text, skip in zip(values.astype(str).tolist(), missing, strict=True)]


def _plain(value: Any, column: str) -> Any:
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
    raise ValueError(f"holds {value!r} in column {column!r}, which metadata cannot hold")
