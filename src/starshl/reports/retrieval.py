"""The section of a retrieval protocol: findings, three panels, tables and paired differences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .document import Chart, Section, Series, Table, Text, difference, interval, plus_minus
from .findings import retrieval_findings, star_methods
from .protocol_notes import introduction, section_title
from .results import ProtocolResults
from .statistics import paired, summarize

__all__ = ["best_per_column", "line_over", "retrieval_section"]

_DETAILS = (
    *(("P@10", 3), ("P@50", 3), ("mAP", 3), ("PR area", 3), ("P(r<=2)", 3), ("empty balls", 2)),
    *(("accuracy", 3), ("distinct codes", 0), ("fit s", 1), ("encode s", 2), ("peak MB", 0)),
)
_LIST_LENGTHS = tuple(range(10, 55, 5))


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


def best_per_column(means: list[list[float | None]], skip: tuple[int, ...] = ()) -> frozenset[tuple[int, int]]:
    """Return (row, column) of the largest value of each column, rows in ``skip`` left out."""
    best = set()
    for column in range(len(means[0]) if means else 0):
        known = [(row[column], place) for place, row in enumerate(means) if row[column] is not None]
        known = [entry for entry in known if entry[1] not in skip]
        best |= {(place, column) for value, place in known if value == max(known)[0]}
    return frozenset(best)


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
    lengths = found.lengths
    methods = [method for method in found.methods if any(found.values(method, b, "P@10") for b in lengths)]
    summaries = [[summarize(found.values(method, b, "P@10").values()) for b in lengths] for method in methods]
    rows = [(method, *map(plus_minus, row)) for method, row in zip(methods, summaries, strict=True)]
    means = [[None if s is None else s.mean for s in row] for row in summaries]
    yardsticks = tuple(place for place, method in enumerate(methods) if method == "float search")
    strong = frozenset((row, column + 1) for row, column in best_per_column(means, yardsticks))
    columns = ("method", *(f"{n_bits} bits" for n_bits in lengths))
    return Table("P@10, mean and deviation over runs; best code in bold", columns, tuple(rows), strong)


def _details_table(found: ProtocolResults, n_bits: int) -> Table:
    rows = []
    for method in found.methods:
        cells = [
            plus_minus(summarize(found.values(method, n_bits, metric).values()), digits) for metric, digits in _DETAILS
        ]
        rows.append((method, *(cell if number < 5 else cell.split(" ±")[0] for number, cell in enumerate(cells))))
    columns = ("method", *(metric for metric, _ in _DETAILS))
    caption = (
        f"At {n_bits} bits. Empty balls: share of queries with nothing within radius 2, which count as precision 0. "
        "PR area: the curve starts at the recall of radius 0, so codes that meet in few points have little area"
    )
    return Table(caption, columns, tuple(rows))


def _list_table(found: ProtocolResults, n_bits: int) -> Table:
    rows = []
    for method in found.methods:
        summaries = [summarize(found.values(method, n_bits, f"P@{s}").values()) for s in _LIST_LENGTHS]
        if any(summaries):
            rows.append((method, *("-" if s is None else f"{s.mean:.3f}" for s in summaries)))
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
    caption = f"Paired differences in P@10 at {n_bits} bits, on the same runs"
    return Table(caption, ("difference", "mean", "95 % interval", "runs won"), tuple(rows))
