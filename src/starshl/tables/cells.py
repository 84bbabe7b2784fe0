"""What one cell of text says: a number, a missing value, a number with commas or something else."""

from __future__ import annotations

import re

__all__ = ["DECIMALS", "is_missing_mark", "is_number", "is_number_with_comma", "number_text"]

#: What may come before the decimals of a number.
DECIMALS = (".", ",")

# What spreadsheets, databases, R, pandas and people write where a value is missing.
_MISSING_MARKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-", "?"})
# Where the comma comes before the decimals, a point separates thousands, and may do so only in front of a comma: 1.204
# alone could be either.
_WITH_DECIMAL_COMMA = re.compile(r"[+-]?(\d+(,\d*)?|,\d+|\d{1,3}(\.\d{3})+,\d*)([eE][+-]?\d+)?")
# 4,126 and 1.204,5, where the comma comes before the decimals; 1,204 and 1,204.5, where it separates thousands.
_NUMBER_WITH_COMMA = re.compile(r"[+-]?(\d+,\d+|\d{1,3}(\.\d{3})+,\d+|\d{1,3}(,\d{3})+(\.\d+)?)([eE][+-]?\d+)?")


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
