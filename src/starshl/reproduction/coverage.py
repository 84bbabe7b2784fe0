"""What was run: which rows, how much of what the figures plan, under which settings and seeds, and what failed.

Every section begins with the part of it that its readers must know first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .._common.words import counted
from ..data.datasets.registry import ENTRIES
from ..evaluation.reports.document import Block, Section, Table, Text, joined
from ..evaluation.reports.statistics import MIN_RUNS_FOR_INTERVAL
from .compared_methods import COMPARED_METHODS, title_of
from .figures import FIGURES, Figure
from .results import ProtocolResults, Results

# A fit: method, bits and run.
Cell = tuple[str, int | None, int]
# Readers of a single table must see it there.
UNPUBLISHED_DATA_NOTE = (
    "(1) The paper's selection of 6,878 samples of PASCAL VOC 2007 was never published. The figures of paper-pascal07 "
    "are for other rows; they can neither confirm nor refute the paper's."
)
_UNPUBLISHED_DATA_SETS = ("pascal07",)
_TASKS = {
    "retrieval": "retrieval",
    "lists": "whole lists",
    "transductive": "inductive and transductive",
    "labels": "few labels",
    "unsupervised": "no labels",
}
_DIGEST_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Coverage:
    """Fits as (method, bits, run): those that the figures plan for a protocol, and those of them that were done.

    ``failed`` holds the methods that have a failed run.
    """

    planned: frozenset[Cell]
    done: frozenset[Cell]
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
            words.append(f"no codes of {joined(lacking)} bits")
        lost = [method for method in methods if method not in done_methods]
        if absent := [title_of(method) for method in lost if method not in self.failed]:
            words.append(f"{joined(absent)} {'was' if len(absent) == 1 else 'were'} not run")
        if broken := [title_of(method) for method in lost if method in self.failed]:
            words.append(f"{joined(broken)} failed")
        rest = [cell for cell in self._ordered if cell not in self.done and cell[0] in done_methods]
        rest = [cell for cell in rest if cell[2] in done_runs and (cell[1] in done_lengths or cell[1] is None)]
        if rest:
            lacks = {method: sum(cell[0] == method for cell in rest) for method, *_ in rest}
            singles = joined(f"{n} of {title_of(method)}" for method, n in lacks.items())
            words.append(f"single fits missing: {singles}")
        return words

    @property
    def _ordered(self) -> list[Cell]:
        order = {key: place for place, key in enumerate(COMPARED_METHODS)}
        return sorted(self.planned, key=lambda cell: (order[cell[0]], cell[1] or 0, cell[2]))


def coverage_of(protocol: ProtocolResults) -> Coverage:
    """Compare a protocol with all figures that use it; if none does, nothing is planned."""
    planned = frozenset(cell for figure in FIGURES.values() for cell in planned_cells(figure, protocol.name))
    done = frozenset((run.method, run.n_bits, run.run) for run in protocol.runs)
    return Coverage(planned, planned & done, frozenset(protocol.failed))


def planned_cells(figure: Figure, name: str) -> set[Cell]:
    """Return the fits of one figure, in full or quick, on the protocol of a name."""
    full = any(protocol.name == name for protocol in figure.protocols)
    figure = figure if full else figure.quick()
    cells = (cell for protocol in figure.protocols if protocol.name == name for cell in figure.cells(protocol))
    return {(chosen.key, n_bits, run) for run, chosen, n_bits in cells}


def section_title(protocol: ProtocolResults) -> str:
    """Return a heading, such as "usps: retrieval (reduced)"."""
    return f"{protocol.dataset}: {_TASKS[protocol.task]}" + (" (reduced)" if protocol.reduced else "")


def introduction(protocol: ProtocolResults, *, with_coverage: bool = True) -> Text:
    """Return what a reader of the figures must know first."""
    lines = [coverage_line(protocol)] if with_coverage else []
    # From the registry, because the file of the data set may be missing or damaged.
    notes = [note for entry in ENTRIES if entry.name == protocol.dataset for note in entry.notes]
    if protocol.base is not None and protocol.base.about:
        # The notes already hold what a retrieval protocol says about its data set.
        about = protocol.base.about.split("; ")[0] if notes and protocol.task == "retrieval" else protocol.base.about
        lines.append(f"{about}.")
    return Text((*lines, *notes))


def coverage_line(protocol: ProtocolResults) -> str:
    """Say how large a protocol is and how much of it was run."""
    n_items = protocol.base.rows.n_items if protocol.base is not None else None
    unseen = "" if n_items is None else f", {n_items:,} items that are neither"
    n_runs = counted(protocol.n_runs, "run")
    sizes = f"{protocol.n_train:,} training rows, {protocol.n_query:,} queries{unseen}, {n_runs}"
    finding = completeness(protocol)
    return f"Protocol {protocol.name}: {sizes}. {finding[:1].upper()}{finding[1:]}."


def completeness(protocol: ProtocolResults) -> str:
    """Say whether the whole protocol was run, or what is missing."""
    if protocol.base is None:
        return "not one of the named protocols"
    missing = coverage_of(protocol).missing
    if protocol.reduced:
        return "; ".join(
            [f"reduced: {protocol.base.name} has {_size(protocol.base.rows.n_train)} training rows", *missing]
        )
    return f"partial: {'; '.join(missing)}" if missing else "complete"


def _size(n_rows: int | None) -> str:
    return "all" if n_rows is None else f"{n_rows:,}"


def marked_name(protocol: str, dataset: str) -> str:
    """Return the name of a protocol, with a footnote mark if the paper's rows are not available."""
    return f"{protocol} (1)" if unpublished(dataset) else protocol


def unpublished(dataset: str) -> bool:
    """Tell whether the paper's own rows of a data set are not available."""
    return dataset in _UNPUBLISHED_DATA_SETS


def footnote(datasets: Iterable[str]) -> list[Text]:
    """Return the note about unpublished rows if one of the data sets has them."""
    return [Text((UNPUBLISHED_DATA_NOTE,))] if any(map(unpublished, datasets)) else []


def what_was_run(results: Results) -> Section:
    """Return a table of protocols and how much of each was run."""
    rows = []
    for protocol in results.protocols:
        coverage = coverage_of(protocol)
        planned = f"{len(coverage.done):,} of {len(coverage.planned):,}" if coverage.planned else "-"
        sizes = (
            f"{protocol.n_train:,}",
            f"{protocol.n_query:,}",
            str(protocol.n_runs),
            joined(protocol.lengths),
        )
        name = marked_name(protocol.name, protocol.dataset)
        rows.append((name, *sizes, str(len(protocol.methods)), planned, completeness(protocol)))
    columns = ("protocol", "training rows", "queries", "runs", "bits", "methods", "planned fits done", "extent")
    lines = Text((*_coverage_lines(results), *_record_lines(results), *_comparison_lines()))
    blocks: list[Block] = [
        lines,
        Table("Protocols", columns, tuple(rows)),
        *footnote(protocol.dataset for protocol in results.protocols),
    ]
    return Section("What was run", "extent", blocks)


def _coverage_lines(results: Results) -> list[str]:
    protocols = results.protocols
    lines = [
        f"{sum(len(protocol.runs) for protocol in protocols):,} finished fits (one per method, length and run), "
        f"{len(results.failures)} failed; {results.seconds / 60:.0f} minutes of fitting and encoding in total."
    ]
    coverages = [coverage_of(protocol) for protocol in protocols]
    done, planned = (sum(len(getattr(coverage, part)) for coverage in coverages) for part in ("done", "planned"))
    lines.append(f"Of the {planned:,} fits planned for these protocols, {done:,} are done.")
    partial = sum(completeness(protocol) != "complete" for protocol in protocols)
    if partial:
        lines.insert(0, f"PARTIAL: {partial} of {len(protocols)} protocols were not run to their full extent.")
    return lines


def _record_lines(results: Results) -> list[str]:
    """Say which runs are not counted, and which may not belong together."""
    lines = []
    if results.damaged:
        lines.append(f"DAMAGED, left out because they cannot be read: {joined(results.damaged)}.")
    if results.n_replaced:
        n_replaced = counted(results.n_replaced, "run")
        lines.append(f"{n_replaced} not counted: the same method, length and run number was done again later.")
    versions = sorted({value for run_versions in results.versions for name, value in run_versions if name == "starshl"})
    if len(versions) > 1:
        lines.append(f"MIXED VERSIONS: the runs come from starshl {joined(versions)}.")
    return lines


def _comparison_lines() -> tuple[str, ...]:
    return (
        "Differences are paired: every method sees the same rows in the same run. Intervals are Student's, 95%, of "
        f"{MIN_RUNS_FOR_INTERVAL} runs or more; a difference is called clear if its interval excludes zero.",
        "Bold, places, claims and differences count only the runs that all compared methods share. Means in tables "
        "count all runs of a method; if it has fewer than others in its column, the cell says how many.",
    )


def settings_section(results: Results) -> Section:
    """Return settings, seeds, notes, versions, machines and failures."""
    blocks: list[Block] = [_settings_table(results), _rows_table(results), _seeds_table(results)]
    blocks += _machine_tables(results)
    if results.warnings:
        warnings = (
            (title_of(key), warning) for key, texts in sorted(results.warnings.items()) for warning in sorted(texts)
        )
        blocks.append(Table("Warnings of the methods", ("method", "warning"), tuple(warnings), n_text_columns=2))
    if results.failures:
        rows = tuple(
            (f.protocol, title_of(f.method), str(f.n_bits or "-"), str(f.run), f.message) for f in results.failures
        )
        columns = ("protocol", "method", "bits", "run", "message")
        blocks.append(Table("Failed runs", columns, rows, n_text_columns=5))
    return Section("Settings, seeds, versions", "settings", blocks)


def _settings_table(results: Results) -> Table:
    rows = []
    for key, by_settings in results.settings.items():
        role, note = (COMPARED_METHODS[key].role, COMPARED_METHODS[key].note) if key in COMPARED_METHODS else ("", "")
        for settings, protocols in by_settings.items():
            where = "all" if len(by_settings) == 1 else joined(protocols)
            rows.append((title_of(key), key, role, where, settings, note))
    columns = ("method", "key", "kind", "protocols", "settings", "note")
    return Table("Settings other than n_bits and seed", columns, tuple(rows), n_text_columns=6)


def _rows_table(results: Results) -> Table:
    rows = []
    for protocol in results.protocols:
        keys = [run.key for run in protocol.runs if run.key is not None]
        scaling = joined(sorted({str(key.settings.get("scaling", "-")) for key in keys}))
        digests = sorted({(key.run, key.split_digest[:_DIGEST_LENGTH]) for key in keys})
        rows.append((protocol.name, scaling, joined(digest for _, digest in digests)))
    caption = f"Scaling of rows, and the first {_DIGEST_LENGTH} digits of the SHA-256 of each run's split"
    return Table(caption, ("protocol", "scaling", "splits by run"), tuple(rows), n_text_columns=3)


def _seeds_table(results: Results) -> Table:
    rows = []
    for protocol in results.protocols:
        for method in protocol.methods:
            seeds = {run.run: run.seed for run in protocol.runs if run.method == method}
            rows.append((protocol.name, title_of(method), joined(seeds[run] for run in sorted(seeds))))
    return Table("Seeds by run", ("protocol", "method", "seeds"), tuple(rows), n_text_columns=3)


def _machine_tables(results: Results) -> list[Table]:
    versions = tuple((name, value) for run_versions in sorted(results.versions) for name, value in run_versions)
    machines = tuple((name, str(value)) for machine in sorted(results.machines, key=str) for name, value in machine)
    return [
        Table("Versions", ("software", "version"), tuple(dict.fromkeys(versions)), n_text_columns=2),
        Table("Machines", ("part", "kind"), tuple(dict.fromkeys(machines)), n_text_columns=2),
    ]
