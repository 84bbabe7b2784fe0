"""The comparison of codes with vectors: its figures, and the page that shows them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .figures import MethodFigures

__all__ = ["FROM_VECTORS", "Comparison"]

_EXPLANATION = (
    "Different codes: how many different codes the searched rows have; rows with the same code are equally near. "
    "Precision at 10: the share of the query's class among the 10 nearest, averaged over all orders of equal "
    "distances. Recall of 10 in 100: the share of the 10 nearest vectors that are among the 100 nearest codes; equal "
    "distances are ordered by the real-valued scores of the query. Shown only when more than 100 rows are searched."
)

FROM_VECTORS = "coded from vectors alone"
_ABOUT_VECTORS_ALONE = (
    "Coded from vectors alone: the same items and queries, but the labels of the items are not used. These items are "
    "the rows of the fit; new items without labels may lose more."
)
# A ceiling that shows as 1.000.
_NEARLY_ONE = 0.9995


@dataclass(frozen=True, slots=True)
class Comparison:
    """Codes against vectors on held-out queries; float search comes first, then the hasher, then other methods.

    If the hasher codes items by their labels, a second line has the same items coded from their vectors alone.

    Attributes
    ----------
    n_queries, n_items : rows held out, and rows that were fitted on and searched
    n_labeled_queries, n_labeled_items : how many of them have labels; precision is about these alone
    precision_ceiling : the precision at 10 of a perfect ranking; below 1 if a class has fewer than 10 labeled items.
        None if precision was not measured
    methods : the figures of each method
    verdict : what the codes of the hasher are good for and what they lose, in plain words
    left_out : why some methods could not be compared
    """

    n_queries: int
    n_items: int
    n_labeled_queries: int
    n_labeled_items: int
    precision_ceiling: float | None
    methods: list[MethodFigures]
    verdict: str
    left_out: dict[str, str] = field(default_factory=dict)

    def page(self) -> str:
        """Return the comparison as one page of Markdown."""
        lines = [
            "# Codes against vectors",
            "",
            f"{self.n_queries} rows, drawn at random, were held out as queries; the other {self.n_items} were "
            "fitted on and searched.",
            *self._label_lines(),
            "",
            self.verdict,
            "",
            "| method | bytes per item | different codes | precision at 10 | recall of 10 in 100 | fit, s "
            "| search, ms per query |",
            "|---|---|---|---|---|---|---|",
            *(method.line() for method in self.methods),
            *(f"\n{name} was left out: {reason}" for name, reason in self.left_out.items()),
            "",
            _EXPLANATION + self._about_vectors_alone(),
            "",
        ]
        return "\n".join(lines)

    def _label_lines(self) -> list[str]:
        """Return on how many labels precision rests, and how high it can get."""
        if self.precision_ceiling is None:
            return []
        counts = f"Precision is measured on {self.n_labeled_queries} labeled queries and {self.n_labeled_items} labeled"
        if self.precision_ceiling > _NEARLY_ONE:
            return [f"{counts} items."]
        return [
            f"{counts} items. No ranking can exceed {self.precision_ceiling:.3f}, because some queries have fewer than "
            "10 labeled items of their class."
        ]

    def _about_vectors_alone(self) -> str:
        is_shown = any(method.name.endswith(FROM_VECTORS) for method in self.methods)
        return f" {_ABOUT_VECTORS_ALONE}" if is_shown else ""
