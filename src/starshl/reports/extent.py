"""How much of what the figures plan was run."""

from __future__ import annotations

from dataclasses import dataclass

from ..experiments import CONTESTANTS, FIGURES
from .document import counted, listed
from .results import ProtocolResults

__all__ = ["Extent", "extent_of"]

Place = tuple[str, int | None, int]


@dataclass(frozen=True, slots=True)
class Extent:
    """Runs as (method, bits, run): those that the figures plan for a protocol, and those of them that were done.

    ``failed`` holds methods of which a run failed.
    """

    planned: frozenset[Place]
    done: frozenset[Place]
    failed: frozenset[str] = frozenset()

    @property
    def missing(self) -> list[str]:
        """Name what is missing, in words: runs, lengths and methods as a whole, then what else each method lacks."""
        if not self.planned:
            return []
        methods, lengths, runs = (dict.fromkeys(place[part] for place in self._ordered) for part in range(3))
        done_methods, done_lengths, done_runs = ({place[part] for place in self.done} for part in range(3))
        words = []
        if len(done_runs) < len(runs):
            words.append(f"{len(done_runs)} of {counted(len(runs), 'run')}")
        if lacking := [n_bits for n_bits in lengths if n_bits is not None and n_bits not in done_lengths]:
            words.append(f"no codes of {listed(lacking)} bits")
        lost = [method for method in methods if method not in done_methods]
        if absent := [method for method in lost if method not in self.failed]:
            words.append(f"{listed(absent)} {'was' if len(absent) == 1 else 'were'} not run")
        if broken := [method for method in lost if method in self.failed]:
            words.append(f"{listed(broken)} failed")
        rest = [p for p in self._ordered if p not in self.done and p[0] in done_methods]
        rest = [p for p in rest if p[2] in done_runs and (p[1] in done_lengths or p[1] is None)]
        if rest:
            lacks = {method: sum(place[0] == method for place in rest) for method, *_ in rest}
            words.append(f"single fits lacking: {listed(f'{n} of {method}' for method, n in lacks.items())}")
        return words

    @property
    def _ordered(self) -> list[Place]:
        order = {entry.title: place for place, entry in enumerate(CONTESTANTS.values())}
        return sorted(self.planned, key=lambda place: (order[place[0]], place[1] or 0, place[2]))


def extent_of(found: ProtocolResults) -> Extent:
    """Compare a protocol with all figures that it is part of; a protocol of no figure has nothing planned."""
    planned = frozenset(place for entry in FIGURES.values() for place in _planned(entry, found.name))
    done = frozenset((run.method, run.n_bits, run.run) for run in found.runs)
    return Extent(planned, planned & done, frozenset(found.failed))


def _planned(entry, name: str) -> set[Place]:
    """Return the runs of one figure, in full or quick, on the protocol of a name."""
    full = any(protocol.name == name for protocol in entry.protocols)
    entry = entry if full else entry.quick()
    places = set()
    for protocol in entry.protocols:
        if protocol.name == name:
            n_runs = min(protocol.n_runs, entry.n_runs or protocol.n_runs)
            for chosen in map(CONTESTANTS.__getitem__, entry.contestants):
                lengths = (entry.bits or protocol.bits) if chosen.kind == "hasher" else (None,)
                places |= {(chosen.title, n_bits, run) for n_bits in lengths for run in range(n_runs)}
    return places
