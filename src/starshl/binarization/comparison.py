"""The comparison of codes with vectors: its figures, and the page that shows them."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Comparison", "MethodFigures"]

_EXPLANATION = (
    "Different codes: how many different codes the searched rows have; rows with the same code are equally near. "
    "Precision at 10: the share of the query's class among the 10 nearest, averaged over all orders of equal "
    "distances. Recall of 10 in 100: the share of the 10 nearest vectors that are among the 100 nearest codes; equal "
    "distances are ordered by the real-valued scores of the query. Shown only when more than 100 rows are searched."
)


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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Codes against vectors on held-out queries; float search comes first, then the hasher, then other methods.

    ``left_out`` says why some methods could not be compared.
    """

    n_queries: int
    n_items: int
    methods: list[MethodFigures]
    left_out: dict[str, str] = field(default_factory=dict)

    def page(self) -> str:
        """Return the comparison as one page of Markdown."""
        lines = [
            "# Codes against vectors",
            "",
            f"{self.n_queries} rows, drawn at random, were held out as queries; the other {self.n_items} were "
            "fitted on and searched.",
            "",
            "| method | bytes per item | different codes | precision at 10 | recall of 10 in 100 | fit, s "
            "| search, ms per query |",
            "|---|---|---|---|---|---|---|",
            *(method.line() for method in self.methods),
            *(f"\n{name} was left out: {reason}" for name, reason in self.left_out.items()),
            "",
            _EXPLANATION,
            "",
        ]
        return "\n".join(lines)
