"""Read a folder of records as values by protocol, method, code length and run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation import PROTOCOLS, Protocol, Record, RecordFolder, RunKey
from ..evaluation.records import read_record
from ..exceptions import RecordFormatError
from ..experiments import CONTESTANTS, scores_of

__all__ = ["Failure", "MethodRun", "ProtocolResults", "Results", "base_protocol", "read_results"]

# They tell how runs were spread over processes, nothing of a method.
_WARNINGS_OF_THE_POOL = ("Loky-backed", "joblib")

_ORDER = {entry.title: position for position, entry in enumerate(CONTESTANTS.values())}


@dataclass(frozen=True, slots=True)
class MethodRun:
    """One finished run and its values by name of the metric ("P@10", "mAP", "fit s", ...).

    ``key`` is that of its record, None for values made by hand.
    """

    method: str
    n_bits: int | None
    run: int
    seed: int
    values: dict[str, float]
    curve: dict[str, list[float]] | None
    key: RunKey | None = None


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

    ``base`` is the named protocol, of which this one may be a reduced form; None if it is neither. ``failed`` holds
    the methods of runs that failed.
    """

    name: str
    dataset: str
    base: Protocol | None
    n_train: int
    n_query: int
    n_classes: int
    smallest_class: int
    runs: list[MethodRun] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

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
    """Everything that a report is made of.

    ``parameters`` maps a method to its settings as text, and these to the protocols that had them. ``damaged`` names
    the files that could not be read, ``n_set_aside`` counts records that a later one of the same run replaced.
    """

    protocols: list[ProtocolResults] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    n_set_aside: int = 0
    parameters: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    warnings: dict[str, set[str]] = field(default_factory=dict)
    versions: set[tuple[tuple[str, str], ...]] = field(default_factory=set)
    machines: set[tuple[tuple[str, Any], ...]] = field(default_factory=set)
    finished: str = ""
    fit_seconds: float = 0.0

    def of_task(self, task: str) -> list[ProtocolResults]:
        return [found for found in self.protocols if found.task == task]


@dataclass(frozen=True, slots=True)
class _Scored:
    """A record without its arrays, which would not fit into memory together, and what was learned from them."""

    record: Record
    scores: dict[str, Any]
    protocol: ProtocolResults | None


def read_results(
    folder: RecordFolder, *, n_jobs: int | None = None, report: Callable[[int, int], None] = lambda done, total: None
) -> Results:
    """Score every record of a folder, as far as that has not been done, and sort the values.

    Files that cannot be read are left out and named. Of several records of one method, length and run, with other
    settings or of another version, the one finished last counts.

    ``report`` is called with the number of records read and of all.
    """
    results = Results()
    latest: dict[tuple, _Scored] = {}
    paths = folder.paths()
    for done, path in enumerate(paths, start=1):
        try:
            found = _read(folder, path, n_jobs)
        except RecordFormatError:
            results.damaged.append(path.relative_to(folder.path).as_posix())
        else:
            key = found.record.key
            place = (key.protocol, key.method, key.n_bits, key.run)
            known = latest.get(place)
            results.n_set_aside += known is not None
            if known is None or found.record.finished >= known.record.finished:
                latest[place] = found
        report(done, len(paths))
    results.protocols = _protocols(latest.values())
    for found in latest.values():
        _note_circumstances(results, found.record)
    for found in results.protocols:
        found.failed = {failure.method for failure in results.failures if failure.protocol == found.name}
    return results


def _read(folder: RecordFolder, path: Path, n_jobs: int | None) -> _Scored:
    record = read_record(path)
    bare = replace(record, arrays={})
    if not record.ok:
        return _Scored(bare, {}, None)
    return _Scored(bare, scores_of(folder, record, n_jobs=n_jobs), _protocol_of(record))


def _protocols(scored: Iterable[_Scored]) -> list[ProtocolResults]:
    by_name: dict[str, ProtocolResults] = {}
    for found in scored:
        if found.protocol is not None:
            key = found.record.key
            values = dict(_values(found.record, found.scores))
            run = MethodRun(key.method, key.n_bits, key.run, key.seed, values, found.scores.get("curve"), key)
            by_name.setdefault(key.protocol, found.protocol).runs.append(run)
    position = {name: place for place, name in enumerate(PROTOCOLS)}
    return sorted(by_name.values(), key=lambda p: (position.get(p.base.name, -1) if p.base else -1, p.reduced, p.name))


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
        settings = ", ".join(f"{name}={value}" for name, value in plain.items())
        protocols = results.parameters.setdefault(key.method, {}).setdefault(settings, [])
        if key.protocol not in protocols:
            protocols.append(key.protocol)
    for warning in record.warnings:
        if not any(word in warning for word in _WARNINGS_OF_THE_POOL):
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
