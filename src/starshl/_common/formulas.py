"""Text in cells of CSV files, written so that a spreadsheet never takes it for a formula."""

from __future__ import annotations

_STARTS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def guarded(cell: object) -> object:
    """Return what to write for a cell: text that a spreadsheet would evaluate begins with an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and _is_evaluated(cell) else cell


def unguarded(cell: str) -> str:
    """Return the text that :func:`guarded` was given; other text stays as it is."""
    return cell[1:] if cell.startswith("'") and _is_evaluated(cell[1:]) else cell


def _is_evaluated(text: str) -> bool:
    # With its own apostrophes before such a start, too, or reading would take one of them off.
    return text.lstrip("'").startswith(_STARTS_OF_FORMULAS)
