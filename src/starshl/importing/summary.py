"""What an import did, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .._words import counted

__all__ = ["ImportSummary", "Skipped"]

_SHOWN = 10  # skipped files listed on the screen


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that could not be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What was made: where, of what, with which labels and codes, and what was left out.

    ``labels`` and ``choice`` say in a sentence each what became of the labels, and which hasher was chosen and why.
    """

    collection: str
    kind: str
    n_items: int
    n_labeled: int
    classes: list[str]
    features: str
    n_features: int
    method: str
    n_bits: int
    labels: str
    choice: str
    seconds: float
    skipped: tuple[Skipped, ...] = ()
    n_other_files: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return asdict(self) | {"skipped": [asdict(each) for each in self.skipped]}

    def text(self) -> str:
        """Return a few lines in plain words."""
        lines = [
            f"{counted(self.n_items, self.kind[:-1])} in {self.collection}, in {self.seconds:.1f} s.",
            self.labels,
            f"Features: {self.features}, {self.n_features:,} numbers. Codes: {self.n_bits} bits.",
            self.choice,
        ]
        if self.n_other_files:
            lines.append(f"{counted(self.n_other_files, 'file')} of other kinds left alone.")
        if self.skipped:
            lines.append(f"{counted(len(self.skipped), 'file')} skipped:")
            lines += [f"  {each.reason}" for each in self.skipped[:_SHOWN]]
            if len(self.skipped) > _SHOWN:
                lines.append(f"  and {len(self.skipped) - _SHOWN:,} more; --json lists all.")
        return "\n".join(lines)
