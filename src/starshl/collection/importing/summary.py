"""What an import or an addition did, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..._common.words import counted

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
            f"Features: {self.features}, {counted(self.n_features, 'number')}. Codes: {counted(self.n_bits, 'bit')}.",
            self.choice,
        ]
        return "\n".join(lines + _left_out(self.n_other_files, self.skipped))


@dataclass(frozen=True, slots=True)
class AdditionSummary:
    """What was added to a collection, how many items it has now, and what was left out.

    ``n_present`` items were there already, and were not stored again.
    """

    collection: str
    kind: str
    n_stored: int
    n_items: int
    n_labeled: int
    skipped: tuple[Skipped, ...] = ()
    n_other_files: int = 0
    n_present: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return asdict(self) | {"skipped": [asdict(each) for each in self.skipped]}

    def text(self) -> str:
        """Return a few lines in plain words."""
        labeled = f"{self.n_labeled:,} of them with a label" if self.n_labeled else "without labels"
        labeled = f", {labeled}" if self.n_stored else ""
        first = f"{counted(self.n_stored, self.kind[:-1])} stored{labeled}; {self.n_items:,} items in total"
        return "\n".join([first, *present_lines(self.n_present), *_left_out(self.n_other_files, self.skipped)])


def present_lines(n_present: int) -> list[str]:
    """Say how many items were not stored because they were there already; nothing if there are none."""
    if not n_present:
        return []
    was, it = ("was", "it") if n_present == 1 else ("were", "them")
    return [f"{counted(n_present, 'item')} {was} there already and not stored again; --again stores {it} once more."]


def _left_out(n_other_files: int, skipped: Sequence[Skipped]) -> list[str]:
    """Say which files were left out."""
    lines = [f"{counted(n_other_files, 'file')} of other kinds left alone."] if n_other_files else []
    if skipped:
        lines.append(f"{counted(len(skipped), 'file')} skipped:")
        lines += [f"  {each.reason}" for each in skipped[:_SHOWN]]
        if len(skipped) > _SHOWN:
            lines.append(f"  and {len(skipped) - _SHOWN:,} more; --json lists all.")
    return lines
