"""The figures of one method: a line of the comparison of codes with vectors."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COLUMNS", "MethodFigures"]

COLUMNS = (
    "method",
    "precision at 10",
    "recall of 10 in 100",
    "bytes per item",
    "different codes",
    "model, kB",
    "fit, s",
    "search, ms per query",
)


@dataclass(frozen=True, slots=True)
class MethodFigures:
    """One line of the comparison.

    ``precision_at_10`` is None without labels, ``recall_10_at_100`` if at most 100 rows are searched, and
    ``n_different_codes`` for a search by float numbers. ``model_bytes`` is what a query needs in addition to the items,
    once for all of them; it and ``fit_seconds`` are None for float search.
    """

    name: str
    precision_at_10: float | None
    recall_10_at_100: float | None
    bytes_per_item: float
    n_different_codes: int | None
    model_bytes: int | None
    fit_seconds: float | None
    search_milliseconds: float

    def cells(self) -> tuple[str, ...]:
        """Return the figures as text, one for each of ``COLUMNS``."""
        shares = (_shown(share, ".3f") for share in (self.precision_at_10, self.recall_10_at_100))
        sizes = (f"{self.bytes_per_item:,g}", _shown(self.n_different_codes, ",d"))
        kilobytes = None if self.model_bytes is None else self.model_bytes / 1000
        times = (_shown(self.fit_seconds, ".2f"), f"{self.search_milliseconds:.4f}")
        return (self.name, *shares, *sizes, _shown(kilobytes, ",.0f"), *times)

    def line(self) -> str:
        """Return the figures as a line of a Markdown table."""
        return f"| {' | '.join(self.cells())} |"


def _shown(number: float | None, how: str) -> str:
    return "-" if number is None else f"{number:{how}}"
