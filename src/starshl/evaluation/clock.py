"""Estimate the time left from what was done so far and how much work each task is expected to be."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

__all__ = ["Clock"]

Kind = tuple[Hashable, ...]


class Clock:
    """Estimates the time left of tasks, from the pace of those that are done.

    Parameters
    ----------
    efforts : mapping of the name of each task to (kind, effort)
        Efforts are expected seconds on some machine; only their ratios matter. A kind is a tuple that goes from the
        general to the special. Tasks go on at the pace of those whose kinds begin like theirs for longest.
    n_workers : int, default=1

    Examples
    --------
    >>> clock = Clock({"a": (("lsh",), 1.0), "b": (("lsh",), 3.0), "c": (("ksh",), 10.0)})
    >>> clock.note("a", 2.0)
    >>> clock.seconds_left()
    26.0
    """

    def __init__(self, efforts: Mapping[str, tuple[Kind, float]], n_workers: int = 1):
        self._left = dict(efforts)
        self._n_workers = n_workers
        # Seconds and effort of what is done, by every beginning of a kind.
        self._done: dict[Kind, tuple[float, float]] = {}

    def note(self, task: str, seconds: float) -> None:
        """Take a task for done."""
        kind, effort = self._left.pop(task)
        for beginning in _beginnings(kind):
            known = self._done.get(beginning, (0.0, 0.0))
            self._done[beginning] = (known[0] + seconds, known[1] + effort)

    def seconds_left(self) -> float:
        """Return the time that the other tasks will take, zero before any is done."""
        total = sum(effort * self._pace(kind) for kind, effort in self._left.values())
        return total / max(1, min(self._n_workers, len(self._left)))

    def _pace(self, kind: Kind) -> float:
        for beginning in _beginnings(kind):
            seconds, effort = self._done.get(beginning, (0.0, 0.0))
            if effort:
                return seconds / effort
        return 0.0


def _beginnings(kind: Kind) -> list[Kind]:
    """Return the kind itself and all that it begins with, the longest first."""
    return [kind[:length] for length in range(len(kind), -1, -1)]
