"""Compare what was run with what the figures plan."""

from __future__ import annotations

from dataclasses import dataclass

from ..reports.document import counted, listed
from ..reports.results import ProtocolResults
from .figures import FIGURES, Figure
from .lineup import LINEUP, title_of

__all__ = ["Extent", "extent_of", "planned_cells"]

Place = tuple[str, int | None, int]


@dataclass(frozen=True, slots=True)
class Extent:
    """Fits as (method, bits, run): those that the figures plan for a protocol, and those of them that were done.

    ``failed`` holds the methods that have a failed run.
    """

    planned: frozenset[Place]
    done: frozenset[Place]
    failed: frozenset[str] = frozenset()

    @property
    def missing(self) -> list[str]:
        """Say in words what is missing: whole runs, lengths and methods first, then single fits."""
        if not self.planned:
            return []
        methods = dict.fromkeys(method for method, _, _ in self._ordered)
        lengths = dict.fromkeys(n_bits for _, n_bits, _ in self._ordered)
        runs = {run for _, _, run in self.planned}
        done_methods = {method for method, _, _ in self.done}
        done_lengths = {n_bits for _, n_bits, _ in self.done}
        done_runs = {run for _, _, run in self.done}
        words = []
        if len(done_runs) < len(runs):
            words.append(f"{len(done_runs)} of {counted(len(runs), 'run')}")
        if lacking := [n_bits for n_bits in lengths if n_bits is not None and n_bits not in done_lengths]:
            words.append(f"no codes of {listed(lacking)} bits")
        lost = [method for method in methods if method not in done_methods]
        if absent := [title_of(method) for method in lost if method not in self.failed]:
            words.append(f"{listed(absent)} {'was' if len(absent) == 1 else 'were'} not run")
        if broken := [title_of(method) for method in lost if method in self.failed]:
            words.append(f"{listed(broken)} failed")
        rest = [p for p in self._ordered if p not in self.done and p[0] in done_methods]
        rest = [p for p in rest if p[2] in done_runs and (p[1] in done_lengths or p[1] is None)]
        if rest:
            lacks = {method: sum(place[0] == method for place in rest) for method, *_ in rest}
            singles = listed(f"{n} of {title_of(method)}" for method, n in lacks.items())
            words.append(f"single fits missing: {singles}")
        return words

    @property
    def _ordered(self) -> list[Place]:
        order = {key: place for place, key in enumerate(LINEUP)}
        return sorted(self.planned, key=lambda place: (order[place[0]], place[1] or 0, place[2]))


def extent_of(protocol: ProtocolResults) -> Extent:
    """Compare a protocol with all figures that use it; if none does, nothing is planned."""
    planned = frozenset(place for figure in FIGURES.values() for place in planned_cells(figure, protocol.name))
    done = frozenset((run.method, run.n_bits, run.run) for run in protocol.runs)
    return Extent(planned, planned & done, frozenset(protocol.failed))


def planned_cells(figure: Figure, name: str) -> set[Place]:
    """Return the fits of one figure, in full or quick, on the protocol of a name."""
    full = any(protocol.name == name for protocol in figure.protocols)
    figure = figure if full else figure.quick()
    cells = (cell for protocol in figure.protocols if protocol.name == name for cell in figure.cells(protocol))
    return {(chosen.key, n_bits, run) for run, chosen, n_bits in cells}
