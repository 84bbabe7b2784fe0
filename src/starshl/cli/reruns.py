"""``starshl reproduce --again``: runs done anew, apart from earlier ones, and whether their scores are equal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..evaluation import Rerun, SummaryFolder
    from ..paper import Plan

__all__ = ["Comparison", "earlier_summaries", "fresh_records"]

_FOLDER = Path("starshl-again")
_N_SCORES_SHOWN = 3


def fresh_records() -> Path:
    """Return a folder that does not exist yet."""
    return _FOLDER / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"


def earlier_summaries(path: Path, plan: Plan, records: Path) -> SummaryFolder:
    """Return the summaries to compare with; refuse a folder that has none of these runs or gets the new ones."""
    from ..evaluation import SummaryFolder

    if path.resolve() == (records / "summaries").resolve():
        raise ValueError(
            f"--again would write the summaries of the new runs to {str(path)!r}, which it compares them with. "
            "Name another folder with --records, or leave that out."
        )
    summaries = SummaryFolder(path)
    if not any(summaries.get(planned.key) for planned in plan.runs):
        raise ValueError(
            f"--again compares with earlier summaries, and {str(path)!r} has none of these runs. Name a folder that "
            "has with --summaries, choose other runs, or leave out --again."
        )
    return summaries


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed in each run, by title; None if there is nothing to compare it with."""

    earlier: Path
    reruns: dict[str, Rerun | None]

    @classmethod
    def of(cls, plan: Plan, earlier: SummaryFolder, now: SummaryFolder) -> Comparison:
        from ..evaluation import compare_rerun

        reruns: dict[str, Rerun | None] = {}
        for planned in plan.runs:
            before, after = earlier.get(planned.key), now.get(planned.key)
            reruns[planned.title] = compare_rerun(before, after) if before and after else None
        return cls(earlier.path, reruns)

    @property
    def compared(self) -> dict[str, Rerun]:
        return {title: rerun for title, rerun in self.reruns.items() if rerun is not None}

    @property
    def n_different(self) -> int:
        return sum(not rerun.equal for rerun in self.compared.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "compared_with": str(self.earlier),
            "n_equal": len(self.compared) - self.n_different,
            "n_different": self.n_different,
            "n_not_compared": len(self.reruns) - len(self.compared),
            "compared": {
                title: {"equal": rerun.equal, "differences": rerun.differences, "versions": rerun.versions}
                for title, rerun in self.compared.items()
            },
        }

    def tell(self) -> None:
        """Print a line for each run, then how many are equal, and which libraries have other versions."""
        for title, rerun in self.reruns.items():
            typer.echo(f"{_verdict(rerun)}: {title}{_told(rerun)}")
        typer.echo(
            f"Compared with {self.earlier} in the third digit of every score: "
            f"{len(self.compared) - self.n_different} equal, {self.n_different} different, "
            f"{len(self.reruns) - len(self.compared)} without an earlier summary."
        )
        different = [rerun for rerun in self.compared.values() if not rerun.equal]
        versions = {(name, *pair) for rerun in different for name, pair in rerun.versions.items()}
        if versions:
            listed = "; ".join(f"{name} {old}, now {new or 'absent'}" for name, old, new in sorted(versions))
            typer.echo(f"Other versions of libraries may be the cause: {listed}.")


def _verdict(rerun: Rerun | None) -> str:
    if rerun is None:
        return "no earlier summary"
    return "equal" if rerun.equal else "different"


def _told(rerun: Rerun | None) -> str:
    """Write the first scores that differ, and how many others do."""
    if rerun is None or rerun.equal:
        return ""
    shown = [f"{name} {_number(before)}, now {_number(now)}" for name, (before, now) in rerun.differences.items()]
    others = f"; {len(shown) - _N_SCORES_SHOWN} more" if len(shown) > _N_SCORES_SHOWN else ""
    return f" ({'; '.join(shown[:_N_SCORES_SHOWN])}{others})"


def _number(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "undefined" if value is None else str(value)
