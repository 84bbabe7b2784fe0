"""Gather the values of all runs by protocol, method, code length and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ..evaluation.reports.statistics import summarize
from ..exceptions import RecordFormatError
from .compared_methods import COMPARED_METHODS
from .protocols import PROTOCOLS, Protocol, base_protocol
from .records import Record, RecordFolder, RunKey, read_record
from .summaries import RunSummary, SummaryFolder, summarize_record

CLASS_MEAN = "P@10, mean of classes"  # every class counts the same, however few queries it has
# Warnings about how runs were spread over processes, not about a method.
_WARNINGS_OF_THE_POOL = ("Loky-backed", "joblib")
_UNEQUAL = 1.05  # times what a random order scores if all classes are equally large
_SCORE_NAMES = {
    "mean_average_precision": "mAP",
    "pr_area": "PR area",
    "accuracy": "accuracy",
    "accuracy_balanced": "accuracy, balanced",
    "accuracy_expected": "accuracy, ties at random",
    "accuracy_hinge": "accuracy, hinge",
    "accuracy_transductive": "accuracy, transductive",
}


@dataclass(frozen=True, slots=True)
class MethodRun:
    """One finished run and its values by name of the metric ("P@10", "mAP", "fit s", ...).

    ``method`` is the stable key of the method; ``key`` identifies the run, None for values made by hand. ``by_class``
    has the precision of lists of some lengths for the queries of each class, ``date`` the day on which it finished.
    """

    method: str
    n_bits: int | None
    run: int
    seed: int
    values: dict[str, float]
    curve: dict[str, list[float | None]] | None
    key: RunKey | None = None
    by_class: Mapping[int, Sequence[float | None]] = field(default_factory=dict)
    date: str = ""


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

    ``base`` is the named protocol, of which this one may be a reduced form; None if it is neither. ``failed`` holds the
    methods that have a failed run. ``random_precision`` and ``majority_accuracy`` have, by run, what a random order of
    the database and the largest class would score.
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
    random_precision: dict[int, float] = field(default_factory=dict)
    majority_accuracy: dict[int, float] = field(default_factory=dict)

    @property
    def task(self) -> str:
        return self.base.task if self.base else "retrieval"

    @property
    def reduced(self) -> bool:
        """Whether the runs used fewer rows than the named protocol says."""
        return self.base is None or self.base.name != self.name

    @property
    def methods(self) -> list[str]:
        """Methods that have runs, in the order of :data:`COMPARED_METHODS`, others last."""
        place = {method: number for number, method in enumerate(COMPARED_METHODS)}
        return sorted({run.method for run in self.runs}, key=lambda method: (place.get(method, len(place)), method))

    @property
    def lengths(self) -> list[int]:
        return sorted({run.n_bits for run in self.runs if run.n_bits is not None})

    @property
    def n_runs(self) -> int:
        return len({run.run for run in self.runs})

    @property
    def unequal(self) -> bool:
        """Whether classes differ so much in size that a random order of the database profits from it."""
        chance = summarize(self.random_precision.values())
        return chance is not None and chance.mean > _UNEQUAL / self.n_classes

    def values(self, method: str, n_bits: int | None, metric: str) -> dict[int, float]:
        """Return run -> value; a method without codes has the same values at every length."""
        return {
            run.run: run.values[metric]
            for run in self.runs
            if run.method == method and run.n_bits in (n_bits, None) and metric in run.values
        }

    def values_of_class(self, method: str, n_bits: int, list_length: int, number: int) -> dict[int, float]:
        """Return run -> precision of lists of one length for the queries of one class."""
        here = (run for run in self.runs if run.method == method and run.n_bits in (n_bits, None))
        known = {run.run: run.by_class[list_length][number] for run in here if list_length in run.by_class}
        return {run: value for run, value in known.items() if value is not None}

    def curves(self, method: str, n_bits: int) -> list[dict[str, list[float | None]]]:
        """Return precision and recall by radius of each run."""
        curves = (run.curve for run in self.runs if run.method == method and run.n_bits == n_bits)
        return [curve for curve in curves if curve]


@dataclass(slots=True)
class Results:
    """Everything that a report is made of.

    ``settings`` maps a method to its settings as text, and these to the protocols that had them. ``damaged`` names
    the files that could not be read; ``n_replaced`` counts runs that were done again later with other settings.
    """

    protocols: list[ProtocolResults] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    n_replaced: int = 0
    settings: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    warnings: dict[str, set[str]] = field(default_factory=dict)
    versions: set[tuple[tuple[str, str], ...]] = field(default_factory=set)
    machines: set[tuple[tuple[str, str | int | None], ...]] = field(default_factory=set)
    finished: str = ""
    seconds: float = 0.0

    def of_task(self, task: str) -> list[ProtocolResults]:
        return [results for results in self.protocols if results.task == task]


def read_results(
    folder: RecordFolder | None,
    summaries: SummaryFolder,
    *,
    n_jobs: int | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Results:
    """Collect all summaries, and score the records that have none.

    Files and lines that cannot be read are left out and named. If there are several runs of one method, length and run
    number, with different settings or from different versions, the one finished last counts.

    Parameters
    ----------
    folder : RecordFolder or None
    summaries : SummaryFolder
        Summaries of records that had none are added if the folder can be written to.
    n_jobs : int, default=None
        Threads for scoring.
    report : callable, default does nothing
        Called with the number of records read and of all.
    """
    results = Results(damaged=list(summaries.damaged))
    if folder is not None:
        _summarize_new(folder, summaries, results, n_jobs, report)
    latest: dict[tuple[str, str, int | None, int], RunSummary] = {}
    for summary in summaries:
        known = latest.get(summary.key.cell)
        results.n_replaced += known is not None
        if known is None or summary.record.finished >= known.record.finished:
            latest[summary.key.cell] = summary
    results.protocols = _by_protocol(latest.values())
    for summary in latest.values():
        _note_circumstances(results, summary.record)
    for protocol in results.protocols:
        protocol.failed = {failure.method for failure in results.failures if failure.protocol == protocol.name}
    return results


def _summarize_new(
    folder: RecordFolder,
    summaries: SummaryFolder,
    results: Results,
    n_jobs: int | None,
    report: Callable[[int, int], None],
) -> None:
    known = {(summary.key.protocol, summary.key.file_name) for summary in summaries}
    paths = folder.paths()
    for done, path in enumerate(paths, start=1):
        if (path.parent.name, path.name) not in known:
            try:
                summary = summarize_record(read_record(path), n_jobs=n_jobs)
            except RecordFormatError:
                results.damaged.append(path.relative_to(folder.path).as_posix())
            else:
                # A read-only folder can still be reported on.
                with suppress(OSError):
                    summaries.add(summary)
        report(done, len(paths))


def _by_protocol(summaries: Iterable[RunSummary]) -> list[ProtocolResults]:
    """Gather the runs of each protocol, in the order of the named protocols."""
    by_name: dict[str, ProtocolResults] = {}
    for summary in summaries:
        key, rows = summary.key, summary.rows
        if not summary.record.ok:
            continue
        if key.protocol not in by_name:
            by_name[key.protocol] = ProtocolResults(
                key.protocol,
                summary.record.dataset,
                base_protocol(key.protocol),
                n_train=int(rows["train"]),
                n_query=int(rows["query"]),
                n_classes=int(rows["classes"]),
                smallest_class=int(rows["smallest_class"]),
            )
        values = {name: value for name, value in _values(summary) if value is not None}
        curve, by_class = summary.scores.get("curve"), summary.scores.get("precision_by_class", {})
        date = summary.record.finished[:10]
        run = MethodRun(key.method, key.n_bits, key.run, key.seed, values, curve, key, by_class, date)
        by_name[key.protocol].runs.append(run)
        for name in ("random_precision", "majority_accuracy"):
            if name in rows:
                getattr(by_name[key.protocol], name)[key.run] = rows[name]
    place = {name: number for number, name in enumerate(PROTOCOLS)}
    return sorted(by_name.values(), key=lambda p: (place.get(p.base.name, -1) if p.base else -1, p.reduced, p.name))


def _note_circumstances(results: Results, record: Record) -> None:
    key = record.key
    results.finished = max(results.finished, record.finished)
    results.seconds += sum(seconds or 0.0 for seconds in record.seconds.values())
    if record.versions:
        results.versions.add(tuple(sorted(record.versions.items())))
        results.machines.add(tuple(sorted(record.machine.items())))
    # Records of different versions list the same settings in different orders.
    text = ", ".join(f"{name}={key.settings[name]}" for name in sorted(key.settings, key=str.lower))
    protocols = results.settings.setdefault(key.method, {}).setdefault(text, [])
    if key.protocol not in protocols:
        protocols.append(key.protocol)
    for warning in record.warnings:
        if not any(word in warning for word in _WARNINGS_OF_THE_POOL):
            results.warnings.setdefault(key.method, set()).add(warning)
    if not record.ok:
        results.failures.append(Failure(key.protocol, key.method, key.n_bits, key.run, record.message))


def _values(summary: RunSummary) -> Iterable[tuple[str, float | None]]:
    record, scores = summary.record, summary.scores
    yield "labels used", record.n_labeled
    for s, value in scores.get("precision_at", {}).items():
        yield f"P@{s}", value
    known = [value for value in scores.get("precision_by_class", {}).get(10, ()) if value is not None]
    yield CLASS_MEAN, sum(known) / len(known) if known else None
    yield from ((_SCORE_NAMES[name], scores[name]) for name in _SCORE_NAMES if name in scores)
    for kind, figures in scores.get("lists", {}).items():
        yield from ((f"{name}, {kind}", value) for name, value in figures.items())
    if "lookup" in scores:
        yield "P(r<=2)", scores["lookup"]["precision"]
        yield "empty balls", scores["lookup"]["empty_share"]
        yield "distinct codes", scores["occupancy"]["n_distinct"]
    if "accuracy_knn" in scores:
        yield "accuracy, nearest code", scores["accuracy_knn"][1]
    for name, value in scores.get("clusters", {}).items():
        yield f"ARI, {name}", value
    yield "fit s", record.seconds.get("fit", record.seconds.get("search"))
    yield "encode s", record.seconds.get("encode_query", record.seconds.get("predict"))
    yield "peak MB", record.peak_bytes / 1e6 if record.peak_bytes is not None else None
