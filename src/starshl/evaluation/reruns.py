"""Compare runs that were done again with their earlier summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .summaries import RunSummary

__all__ = ["PRINTED_DIGIT", "Rerun", "compare_rerun"]

PRINTED_DIGIT = 5e-4  # tables show three digits


@dataclass(frozen=True, slots=True)
class Rerun:
    """What changed when a run was done again.

    Attributes
    ----------
    differences : dict
        Name of a score -> its value before and now, of those that differ in their third digit; None is an undefined
        score. If one of the two runs failed, "status" has both.
    versions : dict
        Name of a library -> its version before and now, of those that differ.
    """

    differences: dict[str, tuple[Any, Any]]
    versions: dict[str, tuple[str, str | None]]

    @property
    def equal(self) -> bool:
        return not self.differences


def compare_rerun(before: RunSummary, now: RunSummary) -> Rerun:
    """Compare all scores from -1 to 1 that the earlier summary has; counts and seconds are not scores.

    Examples
    --------
    >>> from starshl.evaluation import Record, RunKey
    >>> record = Record(RunKey("paper-usps", 0, "lsh", 16, seed=7, split_digest="..."), "usps", "ok")
    >>> before, now = (RunSummary(record, {}, {"pr_area": 0.61, "accuracy": value}) for value in (0.9, 0.92))
    >>> compare_rerun(before, now).differences
    {'accuracy': (0.9, 0.92)}
    """
    pairs = _pairs("", before.scores, now.scores)
    differences = {name: (first, second) for name, first, second in pairs if _differs(first, second)}
    if before.record.ok != now.record.ok:
        differences = {"status": (before.record.status, now.record.status)}
    old, new = before.record.versions, now.record.versions
    return Rerun(differences, {name: (old[name], new.get(name)) for name in old if old[name] != new.get(name)})


def _pairs(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield every value of the earlier scores with its name and the present one, whatever it is nested in."""
    if isinstance(before, dict):
        for key, value in before.items():
            yield from _pairs(f"{name} {key}".strip(), value, now.get(key) if isinstance(now, dict) else None)
    elif isinstance(before, list):
        present = now if isinstance(now, list) else []
        for place, value in enumerate(before):
            yield from _pairs(f"{name} {place}", value, present[place] if place < len(present) else None)
    else:
        yield name, before, now


def _differs(before: Any, now: Any) -> bool:
    if _is_score(before) and _is_score(now):
        return abs(before - now) > PRINTED_DIGIT
    return (before is None) != (now is None)


def _is_score(value: Any) -> bool:
    return isinstance(value, float) and abs(value) <= 1
