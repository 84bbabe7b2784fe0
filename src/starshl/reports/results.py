"""Read a folder of records as values by protocol, method, code length and run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..evaluation import PROTOCOLS, Protocol, Record, RecordFolder
from ..experiments import CONTESTANTS, scores_of

__all__ = ["Failure", "MethodRun", "ProtocolResults", "Results", "base_protocol", "read_results"]

_ORDER = {entry.title: position for position, entry in enumerate(CONTESTANTS.values())}


@dataclass(frozen=True, slots=True)
class MethodRun:
    """One finished run and its values by name of the metric ("P@10", "mAP", "fit s", ...)."""

    method: str
    n_bits: int | None
    run: int
    seed: int
    values: dict[str, float]
    curve: dict[str, list[float]] | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed, and why."""

    protocol: str
    method: str
    n_bits: int | None
    run: int
    message: str


@dataclass(slots=True)
class ProtocolResults:
    """All finished runs of one protocol.

    ``base`` is the named protocol, of which this one may be a reduced form; None if it is neither.
    """

    name: str
    dataset: str
    base: Protocol | None
    n_train: int
    n_query: int
    n_classes: int
    smallest_class: int
    runs: list[MethodRun] = field(default_factory=list)

    @property
    def task(self) -> str:
        return self.base.task if self.base else "retrieval"

    @property
    def reduced(self) -> bool:
        """Whether fewer rows were used than the named protocol says."""
        return self.base is None or self.base.name != self.name

    @property
    def methods(self) -> list[str]:
        """Methods in the order of the line-up, others last."""
        return sorted({run.method for run in self.runs}, key=lambda title: (_ORDER.get(title, len(_ORDER)), title))

    @property
    def lengths(self) -> list[int]:
        return sorted({run.n_bits for run in self.runs if run.n_bits is not None})

    @property
    def shown_lengths(self) -> list[int]:
        """The lengths at which lists and curves are shown: 45 and 15, or the longest there is."""
        chosen = [n_bits for n_bits in (45, 15) if n_bits in self.lengths]
        return chosen or self.lengths[-1:]

    @property
    def n_runs(self) -> int:
        return len({run.run for run in self.runs})

    def values(self, method: str, n_bits: int | None, metric: str) -> dict[int, float]:
        """Return run -> value; a method without codes has the same values at every length."""
        return {
            run.run: run.values[metric]
            for run in self.runs
            if run.method == method and run.n_bits in (n_bits, None) and metric in run.values
        }

    def curves(self, method: str, n_bits: int) -> list[dict[str, list[float]]]:
        found = (run.curve for run in self.runs if run.method == method and run.n_bits == n_bits)
        return [curve for curve in found if curve]


@dataclass(slots=True)
class Results:
    """Everything that a report is made of."""

    protocols: list[ProtocolResults] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)
    warnings: dict[str, set[str]] = field(default_factory=dict)
    versions: set[tuple[tuple[str, str], ...]] = field(default_factory=set)
    machines: set[tuple[tuple[str, Any], ...]] = field(default_factory=set)
    finished: str = ""
    fit_seconds: float = 0.0

    def of_task(self, task: str) -> list[ProtocolResults]:
        return [found for found in self.protocols if found.task == task]


def read_results(
    folder: RecordFolder, *, n_jobs: int | None = None, report: Callable[[int, int], None] = lambda done, total: None
) -> Results:
    """Score every record of a folder, as far as that has not been done, and sort the values.

    ``report`` is called with the number of records read and of all.
    """
    results = Results()
    by_name: dict[str, ProtocolResults] = {}
    total = len(folder)
    for done, record in enumerate(folder, start=1):
        _note_circumstances(results, record)
        if record.ok:
            scores = scores_of(folder, record, n_jobs=n_jobs)
            found = by_name.setdefault(record.key.protocol, _protocol_of(record))
            key = record.key
            values = dict(_values(record, scores))
            found.runs.append(MethodRun(key.method, key.n_bits, key.run, key.seed, values, scores.get("curve")))
        report(done, total)
    position = {name: place for place, name in enumerate(PROTOCOLS)}
    results.protocols = sorted(
        by_name.values(), key=lambda p: (position.get(p.base.name, -1) if p.base else -1, p.reduced, p.name)
    )
    return results


def base_protocol(name: str) -> Protocol | None:
    """Return the named protocol that a name is, or is a reduced form of."""
    return PROTOCOLS.get(name) or PROTOCOLS.get(re.sub(r"-\d+-\d+$", "", name))


def _protocol_of(record: Record) -> ProtocolResults:
    name, arrays = record.key.protocol, record.arrays
    sizes = np.unique(arrays["y_train"], return_counts=True)[1]
    return ProtocolResults(
        name,
        record.dataset,
        base_protocol(name),
        n_train=len(arrays["y_train"]),
        n_query=len(arrays["y_query"]),
        n_classes=len(sizes),
        smallest_class=int(sizes.min()),
    )


def _note_circumstances(results: Results, record: Record) -> None:
    key = record.key
    results.finished = max(results.finished, record.finished)
    results.fit_seconds += sum(record.seconds.values())
    if record.versions:
        results.versions.add(tuple(sorted(record.versions.items())))
        results.machines.add(tuple(sorted(record.machine.items())))
    if record.parameters:
        plain = {name: value for name, value in record.parameters.items() if name not in ("n_bits", "random_state")}
        results.parameters.setdefault(key.method, plain)
    for warning in record.warnings:
        results.warnings.setdefault(key.method, set()).add(warning)
    if not record.ok:
        results.failures.append(Failure(key.protocol, key.method, key.n_bits, key.run, record.message))


def _values(record: Record, scores: dict[str, Any]) -> Iterable[tuple[str, float]]:
    for s, value in scores.get("precision_at", {}).items():
        yield f"P@{s}", value
    names = {
        "mean_average_precision": "mAP",
        "pr_area": "PR area",
        "accuracy": "accuracy",
        "accuracy_expected": "accuracy, ties at random",
        "accuracy_hinge": "accuracy, hinge",
        "accuracy_transductive": "accuracy, transductive",
    }
    yield from ((names[name], scores[name]) for name in names if name in scores)
    if "lookup" in scores:
        yield "P(r<=2)", scores["lookup"]["precision"]
        yield "empty balls", scores["lookup"]["empty_share"]
        yield "distinct codes", scores["occupancy"]["n_distinct"]
    if "accuracy_knn" in scores:
        yield "accuracy, nearest code", scores["accuracy_knn"][1]
    for name, value in scores.get("clusters", {}).items():
        yield f"ARI, {name}", value
    yield "fit s", record.seconds.get("fit", record.seconds.get("search", float("nan")))
    yield "encode s", record.seconds.get("encode_query", record.seconds.get("predict", float("nan")))
    if record.peak_bytes is not None:
        yield "peak MB", record.peak_bytes / 1e6
