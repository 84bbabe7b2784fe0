"""The first and the last sections: what was run, the claims, settings, times, machines and failures."""

from __future__ import annotations

from ..experiments import CONTESTANTS
from .claims import FLAT, Verdict
from .document import Section, Table, Text
from .protocol_notes import completeness
from .results import Results

__all__ = ["claims_section", "settings_section", "what_was_run"]

_MANY = 12


def what_was_run(results: Results) -> Section:
    """Return a table of protocols and how much of each was run."""
    rows = []
    for found in results.protocols:
        bits = ", ".join(map(str, found.lengths))
        sizes = (f"{found.n_train:,}", f"{found.n_query:,}", str(found.n_runs), bits, str(len(found.methods)))
        rows.append((found.name, *sizes, completeness(found)))
    columns = ("protocol", "training rows", "queries", "runs", "bits", "methods", "extent")
    partial = [found for found in results.protocols if completeness(found) != "complete"]
    lines = [
        f"{sum(len(found.runs) for found in results.protocols):,} finished runs, {len(results.failures)} failed; "
        f"{results.fit_seconds / 60:.0f} minutes of fitting and encoding in all.",
        "Differences are paired: every method sees the same rows in the same run. Intervals are Student's, 95 %.",
    ]
    if partial:
        lines.insert(0, f"PARTIAL: {len(partial)} of {len(rows)} protocols were not run to their full extent.")
    return Section("What was run", "extent", [Text(tuple(lines)), Table("Protocols", columns, tuple(rows))])


def claims_section(verdicts: list[Verdict]) -> Section:
    """Return the table of the paper's claims."""
    rows = tuple((v.claim, v.protocol or "-", v.word, v.figures) for v in verdicts)
    held, refuted = (sum(v.holds is wanted for v in verdicts) for wanted in (True, False))
    text = Text(
        (
            "Claims in the experiments section of Huang et al. 2015, checked protocol by protocol: "
            f"{held} hold, {refuted} do not hold, {len(verdicts) - held - refuted} were not measured.",
            f"Figures are means over runs, P@10 unless said otherwise. Flat means a loss of at most {FLAT} from P@10 "
            "to P@50; useful means a P@10 above Euclidean search of the rows themselves.",
        )
    )
    table = Table("Claims", ("claim", "protocol", "verdict", "figures"), rows, n_text_columns=4)
    return Section("The claims of the paper", "claims", [text, table])


def settings_section(results: Results) -> Section:
    """Return settings, seeds, notes, versions, machines and failures."""
    blocks = [_settings_table(results), _seeds_table(results), *_places(results)]
    if results.warnings:
        rows = tuple((method, " ".join(sorted(found))) for method, found in sorted(results.warnings.items()))
        blocks.append(Table("Warnings of the methods", ("method", "warning"), rows, n_text_columns=2))
    if results.failures:
        rows = tuple((f.protocol, f.method, str(f.n_bits or "-"), str(f.run), f.message) for f in results.failures)
        columns = ("protocol", "method", "bits", "run", "message")
        blocks.append(Table("Failed runs", columns, rows, n_text_columns=5))
    return Section("Settings, seeds, versions", "settings", blocks)


def _settings_table(results: Results) -> Table:
    known = {entry.title: (entry.role, entry.note) for entry in CONTESTANTS.values()}
    rows = []
    for method, parameters in results.parameters.items():
        role, note = known.get(method, ("", ""))
        rows.append((method, role, ", ".join(f"{name}={value}" for name, value in parameters.items()), note))
    columns = ("method", "kind", "settings", "note")
    return Table("Settings beside n_bits and seed", columns, tuple(rows), n_text_columns=4)


def _seeds_table(results: Results) -> Table:
    rows = []
    for found in results.protocols:
        for method in found.methods:
            seeds = {run.run: run.seed for run in found.runs if run.method == method}
            told = ", ".join(str(seeds[run]) for run in sorted(seeds)[:_MANY])
            rows.append((found.name, method, told + (", ..." if len(seeds) > _MANY else "")))
    return Table("Seeds by run", ("protocol", "method", "seeds"), tuple(rows), n_text_columns=3)


def _places(results: Results) -> list[Table]:
    versions = tuple((name, value) for found in sorted(results.versions) for name, value in found)
    machines = tuple((name, str(value)) for found in sorted(results.machines, key=str) for name, value in found)
    return [
        Table("Versions", ("software", "version"), tuple(dict.fromkeys(versions)), n_text_columns=2),
        Table("Machines", ("part", "kind"), tuple(dict.fromkeys(machines)), n_text_columns=2),
    ]
