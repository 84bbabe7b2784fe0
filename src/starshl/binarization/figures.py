"""The figures of one method: a line of the comparison of codes with vectors."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MethodFigures"]


@dataclass(frozen=True, slots=True)
class MethodFigures:
    """One line of the comparison.

    ``precision_at_10`` is None without labels, ``recall_10_at_100`` if at most 100 rows are searched,
    ``n_different_codes`` and ``fit_seconds`` for float search.
    """

    name: str
    bytes_per_item: float
    n_different_codes: int | None
    precision_at_10: float | None
    recall_10_at_100: float | None
    fit_seconds: float | None
    search_milliseconds: float

    def line(self) -> str:
        """Return the figures as a line of a Markdown table."""
        different = "-" if self.n_different_codes is None else f"{self.n_different_codes:,}"
        figures = (self.precision_at_10, self.recall_10_at_100, self.fit_seconds)
        shown = " | ".join("-" if figure is None else f"{figure:.3f}" for figure in figures)
        return f"| {self.name} | {self.bytes_per_item:g} | {different} | {shown} | {self.search_milliseconds:.4f} |"
