"""The section of a retrieval protocol: findings, three panels, tables and paired differences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .document import Chart, Section, Series, Table, Text, counted, difference, interval, plus_minus
from .findings import retrieval_findings, star_methods
from .protocol_notes import introduction, section_title
from .results import ProtocolResults
from .statistics import Summary, paired, shared_runs, summarize

__all__ = ["line_over", "reading_notes", "retrieval_section", "table_of_means"]

_DETAILS = (
    *(("P@10", 3), ("P@50", 3), ("mAP", 3), ("PR area", 3), ("P(r<=2)", 3), ("empty balls", 2)),
    *(("accuracy", 3), ("distinct codes", 0), ("fit s", 1), ("encode s", 2), ("peak MB", 0)),
)
_LIST_LENGTHS = tuple(range(10, 55, 5))


def reading_notes() -> Section:
    """Return once what holds for the tables of all retrieval sections."""
    lines = (
        "Empty balls: share of queries with nothing within radius 2, which count as precision 0.",
        "PR area: the curve starts at the recall of radius 0, so codes that meet in few points have little area.",
        "Fit or search s: seconds of fitting; of the whole search for float search, which fits nothing. "
        "Encode or predict s: seconds to encode the queries; to name their classes for the SVC, which has no codes.",
    )
    return Section("How to read the retrieval tables", "reading", [Text(lines)])


def retrieval_section(found: ProtocolResults) -> Section:
    """Return everything about one retrieval protocol."""
    blocks = [introduction(found), Text(tuple(retrieval_findings(found))), _precision_over_bits(found)]
    for n_bits in found.shown_lengths:
        blocks += [_precision_over_list(found, n_bits), _precision_over_recall(found, n_bits)]
    blocks.append(_precision_table(found))
    for n_bits in found.shown_lengths:
        blocks += [_details_table(found, n_bits), _list_table(found, n_bits)]
        blocks += [_paired_table(found, star, n_bits) for star in star_methods(found)]
    return Section(section_title(found), found.name, [block for block in blocks if block is not None])


def line_over(name: str, points: Iterable[tuple[float, dict[int, float]]]) -> Series | None:
    """Return a line of means with deviations from pairs of x and run -> value; None if there is no value."""
    pairs = [(x, summarize(values.values())) for x, values in points]
    known = [(x, summary) for x, summary in pairs if summary is not None]
    if not known:
        return None
    return Series(
        name,
        tuple(x for x, _ in known),
        tuple(summary.mean for _, summary in known),
        tuple(summary.deviation for _, summary in known),
    )


def table_of_means(caption: str, columns: tuple[str, ...], cells: dict, skip: tuple[str, ...] = ()) -> Table:
    """Return a table of mean and deviation; ``cells`` maps the name of a row to run -> value, column by column.

    Bold is the best mean over the runs that all rows of a column share, those in ``skip`` left out. A cell of fewer
    runs than others of its column says of how many.
    """
    n_columns = len(columns) - 1
    summaries = {name: [summarize(runs.values()) for runs in row] for name, row in cells.items()}
    most = [max((s[place].n for s in summaries.values() if s[place]), default=0) for place in range(n_columns)]
    rows = tuple((name, *map(_cell, row, most)) for name, row in summaries.items())
    strong = set()
    for place in range(n_columns):
        best = _best_of({name: row[place] for name, row in cells.items() if name not in skip})
        strong |= {(number, place + 1) for number, name in enumerate(cells) if name in best}
    return Table(caption, columns, rows, frozenset(strong))


def _cell(summary: Summary | None, most_runs: int, digits: int = 3) -> str:
    fewer = summary is not None and summary.n < most_runs
    return plus_minus(summary, digits) + (f" ({counted(summary.n, 'run')})" if fewer else "")


def _best_of(column: dict[str, dict[int, float]]) -> set[str]:
    """Return the names with the best mean over shared runs; none if there is no such run, or no rival."""
    means = {name: summarize(runs.values()).mean for name, runs in shared_runs(column).items() if runs}
    return {name for name, mean in means.items() if len(means) > 1 and mean == max(means.values())}


def _series(found: ProtocolResults, points) -> tuple[Series, ...]:
    lines = (line_over(method, points(method)) for method in found.methods)
    return tuple(line for line in lines if line is not None)


def _precision_over_bits(found: ProtocolResults) -> Chart:
    def points(method):
        metric = "accuracy" if method == "one-vs-one SVC" else "P@10"
        return [(n_bits, found.values(method, n_bits, metric)) for n_bits in found.lengths]

    title = "P@10 over the length of the codes"
    ticks = tuple(found.lengths)
    return Chart(title, "bits", "P@10 (SVC: accuracy)", _series(found, points), ticks)


def _precision_over_list(found: ProtocolResults, n_bits: int) -> Chart:
    def points(method):
        return [(s, found.values(method, n_bits, f"P@{s}")) for s in _LIST_LENGTHS]

    return Chart(f"P@s at {n_bits} bits", "s, items looked at", "P@s", _series(found, points), _LIST_LENGTHS)


def _precision_over_recall(found: ProtocolResults, n_bits: int) -> Chart | None:
    lines = []
    for method in found.methods:
        curves = found.curves(method, n_bits)
        if not curves:
            continue
        precision, recall = (np.array([curve[name] for curve in curves]) for name in ("precision", "recall"))
        known = ~np.isnan(precision).any(axis=0)
        x, y = recall.mean(axis=0)[known], precision.mean(axis=0)[known]
        spread = precision.std(axis=0, ddof=1)[known].tolist() if len(curves) > 1 else ()
        lines.append(Series(method, tuple(x.tolist()), tuple(y.tolist()), tuple(spread)))
    ticks = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    title = f"Precision and recall by radius at {n_bits} bits; area: deviation of precision over runs"
    return Chart(title, "recall", "precision", tuple(lines), ticks, band=True) if lines else None


def _precision_table(found: ProtocolResults) -> Table:
    cells = {method: [found.values(method, n_bits, "P@10") for n_bits in found.lengths] for method in found.methods}
    cells = {method: row for method, row in cells.items() if any(row)}
    columns = ("method", *(f"{n_bits} bits" for n_bits in found.lengths))
    return table_of_means("P@10, mean and deviation over runs; best code in bold", columns, cells, ("float search",))


def _details_table(found: ProtocolResults, n_bits: int) -> Table:
    rows = []
    for method, label in _labels_at(found, n_bits).items():
        cells = [
            plus_minus(summarize(found.values(method, n_bits, metric).values()), digits) for metric, digits in _DETAILS
        ]
        rows.append((label, *(cell if number < 5 else cell.split(" ±")[0] for number, cell in enumerate(cells))))
    named = {"fit s": "fit or search s", "encode s": "encode or predict s"}
    columns = ("method", *(named.get(metric, metric) for metric, _ in _DETAILS))
    return Table(f"All metrics at {n_bits} bits, mean over runs", columns, tuple(rows))


def _labels_at(found: ProtocolResults, n_bits: int) -> dict[str, str]:
    """Return the methods run at a length and their names, with the number of runs if others have more."""
    here = [run.method for run in found.runs if run.n_bits in (n_bits, None)]
    n_runs = {method: here.count(method) for method in found.methods}
    most = max(n_runs.values())
    return {m: m if n == most else f"{m} ({counted(n, 'run')})" for m, n in n_runs.items() if n}


def _list_table(found: ProtocolResults, n_bits: int) -> Table:
    rows = []
    for method, label in _labels_at(found, n_bits).items():
        summaries = [summarize(found.values(method, n_bits, f"P@{s}").values()) for s in _LIST_LENGTHS]
        if any(summaries):
            rows.append((label, *("-" if s is None else f"{s.mean:.3f}" for s in summaries)))
    columns = ("method", *(f"P@{s}" for s in _LIST_LENGTHS))
    return Table(f"P@s at {n_bits} bits, mean over runs", columns, tuple(rows))


def _paired_table(found: ProtocolResults, star: str, n_bits: int) -> Table | None:
    rows = []
    for method in found.methods:
        compared = paired(found.values(star, n_bits, "P@10"), found.values(method, n_bits, "P@10"))
        if method != star and compared is not None:
            won = f"{compared.n_won} of {compared.n}"
            rows.append((f"{star} minus {method}", difference(compared), interval(compared), won))
    if not rows:
        return None
    caption = f"Paired differences in P@10 at {n_bits} bits, {star} minus each other row, on the same runs"
    return Table(caption, ("difference", "mean", "95 % interval", "runs won"), tuple(rows))
