"""The comparison of codes with vectors: its figures, and the page that shows them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from .._words import counted
from .figures import COLUMNS, MethodFigures
from .measure import FLOAT_QUERIES, FROM_VECTORS
from .questions import Question

__all__ = ["EXPLANATION", "Comparison", "LengthComparison"]

EXPLANATION = (
    "Different codes: how many different codes the searched rows have; rows with the same code are equally near. "
    "Precision at 10: the share of the 10 nearest that have the query's class, averaged over all orders of equal "
    "distances. Recall of 10 in 100: the share of the 10 nearest vectors that are among the 100 nearest codes; equal "
    "distances are ordered by the real-valued scores of the query. Shown only when more than 100 rows are searched. "
    "Model: what turns a query into a code, kept once for all items."
)
_ABOUT_VECTORS_ALONE = (
    "Coded from vectors alone: the same items and queries, but without the labels of the items. These items are the "
    "training rows; new items without labels may lose more."
)
_ABOUT_FLOAT_QUERIES = (
    "Float queries: only items become codes; a query keeps its full precision, and distances are estimated."
)
# A ceiling that shows as 1.000.
_NEARLY_ONE = 0.9995
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class LengthComparison:
    """All methods at one code length.

    Attributes
    ----------
    n_bits : length of the codes
    methods : the figures of the hasher, those of items coded from vectors alone if they differ, and of the others
    verdict : what the codes of the hasher are good for and what they lose, in plain words
    left_out : why some methods could not be compared
    """

    n_bits: int
    methods: list[MethodFigures]
    verdict: str
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Codes against vectors on held-out queries.

    Attributes
    ----------
    choice : which method was chosen and why, in plain words
    n_queries, n_items : rows held out, and rows that were fitted on and searched
    n_labeled_queries, n_labeled_items : how many of them have labels; precision is measured only on these
    precision_ceiling : the precision at 10 of a perfect ranking; below 1 if a class has fewer than 10 labeled items.
        None if precision was not measured
    exact : the figures of float search
    lengths : one comparison per code length
    n_bits : the length to use, which :func:`binarize` stores
    length_choice : why this length, in plain words; empty if there is only one
    questions : some of the queries, and what each method finds for them with codes of this length
    """

    choice: str
    n_queries: int
    n_items: int
    n_labeled_queries: int
    n_labeled_items: int
    precision_ceiling: float | None
    exact: MethodFigures
    lengths: list[LengthComparison]
    n_bits: int
    length_choice: str
    questions: list[Question]

    @property
    def chosen(self) -> LengthComparison:
        """The comparison at the chosen length."""
        return next(length for length in self.lengths if length.n_bits == self.n_bits)

    @property
    def methods(self) -> list[MethodFigures]:
        """Float search, then the hasher and the other methods at the chosen length."""
        return [self.exact, *self.chosen.methods]

    @property
    def method(self) -> str:
        """The name of the hasher."""
        return self.chosen.methods[0].name.removesuffix(FLOAT_QUERIES).rstrip()

    @property
    def verdict(self) -> str:
        """The verdict on the codes of the chosen length."""
        return self.chosen.verdict

    @property
    def left_out(self) -> dict[str, str]:
        """Why some methods could not be compared at the chosen length."""
        return self.chosen.left_out

    @property
    def bytes_before(self) -> float:
        """Bytes of a vector."""
        return self.exact.bytes_per_item

    @property
    def bytes_after(self) -> float:
        """Bytes of a code of the chosen length."""
        return self.chosen.methods[0].bytes_per_item

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; verdict and methods are those of the chosen length."""
        sizes = {"bytes_before": self.bytes_before, "bytes_after": self.bytes_after}
        own = {"verdict": self.verdict, "methods": [asdict(method) for method in self.methods]}
        return {**own, **sizes, **asdict(self)}

    def sentences(self) -> list[str]:
        """Return what was compared and chosen, and what it means, one paragraph each."""
        held_out = (
            f"{counted(self.n_queries, 'row')}, drawn at random, "
            f"{'was held out as a query' if self.n_queries == 1 else 'were held out as queries'}; "
            f"the other {self.n_items:,} were used to fit, and searched."
        )
        paragraphs = [self.verdict, self.choice, self.length_choice, self._sizes(), held_out + self._about_labels()]
        return [paragraph for paragraph in paragraphs if paragraph]

    def page(self) -> str:
        """Return the comparison as one page of Markdown."""
        lines = ["# Codes against vectors"]
        for paragraph in self.sentences():
            lines += ["", paragraph]
        for length in self.lengths:
            if len(self.lengths) > 1:
                lines += ["", f"## {counted(length.n_bits, 'bit')}"]
            if length.n_bits != self.n_bits:
                lines += ["", length.verdict]
            lines += ["", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
            lines += [method.line() for method in (self.exact, *length.methods)]
            lines += [f"\n{name} was left out: {reason}" for name, reason in length.left_out.items()]
        return "\n".join([*lines, "", self.explanation(), ""])

    def explanation(self) -> str:
        """Return what the columns and names of the tables mean."""
        names = [method.name for length in self.lengths for method in length.methods]
        parts = [EXPLANATION]
        if any(name.endswith(FROM_VECTORS) for name in names):
            parts.append(_ABOUT_VECTORS_ALONE)
        if any(FLOAT_QUERIES in name for name in names):
            parts.append(_ABOUT_FLOAT_QUERIES)
        return " ".join(parts)

    def _sizes(self) -> str:
        n_rows, model = self.n_queries + self.n_items, self.chosen.methods[0].model_bytes or 0
        before, after = (_amount(n_rows * size) for size in (self.bytes_before, self.bytes_after))
        return (
            f"A vector takes {self.bytes_before:,g} bytes, a code {self.bytes_after:,g}: {n_rows:,} items take {after} "
            f"instead of {before}, {self.bytes_before / self.bytes_after:,.0f} times less. The model that encodes "
            f"queries takes {_amount(model)}, however many items there are."
        )

    def _about_labels(self) -> str:
        """Return on how many labels precision rests, and how high it can get."""
        if self.precision_ceiling is None:
            return ""
        counts = (
            f" Precision is measured on {counted(self.n_labeled_queries, 'labeled query', 'labeled queries')} and "
            f"{counted(self.n_labeled_items, 'labeled item')}."
        )
        if self.precision_ceiling > _NEARLY_ONE:
            return counts
        return (
            f"{counts} No ranking can exceed {self.precision_ceiling:.3f}, because some queries have fewer than 10 "
            "labeled items of their class."
        )


def _amount(n_bytes: float) -> str:
    """Write a number of bytes in the largest unit that keeps it above one.

    Examples
    --------
    >>> _amount(800), _amount(30_400), _amount(15_564_800)
    ('800 bytes', '30.4 kB', '15.6 MB')
    """
    power = 0
    while n_bytes >= 1000 and power < len(_UNITS) - 1:
        n_bytes, power = n_bytes / 1000, power + 1
    return f"{n_bytes:,.{1 if power else 0}f} {_UNITS[power]}"
