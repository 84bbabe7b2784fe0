"""The section of a retrieval protocol: findings, charts, tables and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from .._common.words import counted
from ..evaluation.reports.document import (
    Block,
    Chart,
    Runs,
    Section,
    Series,
    Table,
    Text,
    difference,
    interval,
    joined,
    line_over,
    plus_minus,
    table_of_means,
)
from ..evaluation.reports.statistics import paired, shared_runs, summarize
from .compared_methods import hashers_among, is_star, title_of
from .coverage import introduction, section_title
from .findings import (
    BALANCED,
    describe_class_sizes,
    describe_ranking,
    format_labels_used,
    ranking_of,
    warn_of_few_runs,
)
from .results import ProtocolResults
from .scores import LIST_LENGTHS
from .whole_lists import precision_over_recall, radius_table

# The points of a method's line: x, and run -> value.
Points: TypeAlias = Callable[[str], Iterable[tuple[float, Runs]]]
STAR_KEYS = ("starshl-paper", "starshl")
_OURS = (*STAR_KEYS, "starridge")
_LENGTHS_OF_THE_PAPERS_CURVES = (45, 15)
_DETAILS = (
    *(("labels used", 0), ("P@10", 3), ("P@50", 3), ("mAP", 3), ("PR area", 3), ("P(r<=2)", 3), ("empty balls", 2)),
    *(("accuracy", 3), (BALANCED, 3), ("distinct codes", 0), ("fit s", 1), ("encode s", 2), ("peak MB", 0)),
)
_METRICS_WITH_DEVIATION = ("P@10", "P@50", "mAP", "PR area", "P(r<=2)")


def retrieval_section(protocol: ProtocolResults) -> Section:
    """Return everything about one retrieval protocol."""
    blocks: list[Block | None] = [
        introduction(protocol),
        Text(tuple(retrieval_findings(protocol))),
        _precision_over_bits(protocol),
    ]
    for n_bits in shown_lengths(protocol):
        blocks += [_precision_over_list(protocol, n_bits), precision_over_recall(protocol, n_bits)]
    blocks.append(_precision_table(protocol))
    for n_bits in shown_lengths(protocol):
        blocks += [_details_table(protocol, n_bits), radius_table(protocol, n_bits), _list_table(protocol, n_bits)]
        blocks += [_paired_table(protocol, star, n_bits) for star in _OURS if star in protocol.methods]
    return Section(section_title(protocol), protocol.name, [block for block in blocks if block is not None])


def shown_lengths(protocol: ProtocolResults) -> list[int]:
    """Return the lengths at which lists and curves are shown: those of the paper, or the longest available."""
    return [n_bits for n_bits in _LENGTHS_OF_THE_PAPERS_CURVES if n_bits in protocol.lengths] or protocol.lengths[-1:]


def retrieval_findings(protocol: ProtocolResults) -> list[str]:
    """Return sentences about P@10, starting with the longest codes."""
    sentences = []
    for n_bits in shown_lengths(protocol):
        values = _hashers_at(protocol, n_bits)
        sentences += describe_ranking(f"At {n_bits} bits", "P@10", values)
        absent = [star for star in map(title_of, STAR_KEYS) if not values.get(star)]
        sentences += [f"At {n_bits} bits {' and '.join(absent)} was not run."] if absent else []
    sentences += _lengths_lost(protocol)
    sentences += _yardsticks(protocol)
    return sentences + warn_of_few_runs(protocol.n_runs)


def _hashers_at(protocol: ProtocolResults, n_bits: int) -> dict[str, dict[int, float]]:
    return {title_of(key): protocol.values(key, n_bits, "P@10") for key in hashers_among(protocol.methods)}


def _lengths_lost(protocol: ProtocolResults) -> list[str]:
    rankings = [(n_bits, ranking_of(shared_runs(_hashers_at(protocol, n_bits)))) for n_bits in protocol.lengths]
    winners = {
        n_bits: methods[0] for n_bits, methods in rankings if {is_star(name) for name in methods} == {True, False}
    }
    lost = {n_bits: best for n_bits, best in winners.items() if not is_star(best)}
    if not winners:
        return []
    if not lost:
        all_lengths = len(winners) == len(protocol.lengths)
        where = "every length" if all_lengths else f"{joined(winners)} bits, the lengths it was run at"
        return [f"*SHL, with one setting or the other, is first at {where}."]
    losses = ", ".join(f"{n_bits} ({best})" for n_bits, best in lost.items())
    return [f"Neither setting of *SHL is first at {len(lost)} of {len(winners)} lengths; bits and winner: {losses}."]


def _yardsticks(protocol: ProtocolResults) -> list[str]:
    sentences = []
    svc = summarize(protocol.values("svc", None, "accuracy").values())
    rows = summarize(protocol.values("float", None, "P@10").values())
    if svc is not None:
        sentences.append(f"A plain one-vs-one SVC has an accuracy of {svc.mean:.3f} on the queries.")
    if rows is not None:
        sentences.append(f"Euclidean search of the rows themselves has a P@10 of {rows.mean:.3f}.")
    return sentences + describe_class_sizes(protocol)


def _series(protocol: ProtocolResults, points: Points) -> tuple[Series, ...]:
    titles = {method: title_of(method) for method in protocol.methods}
    lines = (line_over(title, points(key), emphasized=is_star(title)) for key, title in titles.items())
    return tuple(line for line in lines if line is not None)


def _precision_over_bits(protocol: ProtocolResults) -> Chart:
    def points(method: str) -> list[tuple[float, Runs]]:
        metric = "accuracy" if method == "svc" else "P@10"
        return [(n_bits, protocol.values(method, n_bits, metric)) for n_bits in protocol.lengths]

    title = "P@10 over the length of the codes"
    ticks = tuple(protocol.lengths)
    return Chart(title, "bits", "P@10 (SVC: accuracy)", _series(protocol, points), ticks)


def _precision_over_list(protocol: ProtocolResults, n_bits: int) -> Chart:
    def points(method: str) -> list[tuple[float, Runs]]:
        return [(s, protocol.values(method, n_bits, f"P@{s}")) for s in LIST_LENGTHS]

    return Chart(f"P@s at {n_bits} bits", "s, items retrieved", "P@s", _series(protocol, points), LIST_LENGTHS)


def _precision_table(protocol: ProtocolResults) -> Table:
    cells, notes = {}, {}
    for method in protocol.methods:
        row = [protocol.values(method, n_bits, "P@10") for n_bits in protocol.lengths]
        if any(row):
            cells[title_of(method)] = row
            notes[title_of(method)] = format_labels_used(protocol, method, protocol.lengths[-1])
    columns = ("method", "labels used", *(f"{n_bits} bits" for n_bits in protocol.lengths))
    caption = "P@10, mean and deviation over runs; best code in bold"
    return table_of_means(caption, columns, cells, skip=(title_of("float"),), notes=notes)


def _details_table(protocol: ProtocolResults, n_bits: int) -> Table:
    rows = []
    details = [(metric, digits) for metric, digits in _DETAILS if metric != BALANCED or protocol.unequal]
    for method, label in _labels_at(protocol, n_bits).items():
        cells = [label]
        for metric, digits in details:
            cell = plus_minus(summarize(protocol.values(method, n_bits, metric).values()), digits)
            cells.append(cell if metric in _METRICS_WITH_DEVIATION else cell.split(" ±")[0])
        rows.append(tuple(cells))
    named = {"fit s": "fit or search s", "encode s": "encode or predict s"}
    columns = ("method", *(named.get(metric, metric) for metric, _ in details))
    return Table(f"All metrics at {n_bits} bits, mean over runs", columns, tuple(rows))


def _labels_at(protocol: ProtocolResults, n_bits: int) -> dict[str, str]:
    """Return the methods run at a length and their titles, with the number of runs if others have more."""
    here = [run.method for run in protocol.runs if run.n_bits in (n_bits, None)]
    n_runs = {method: here.count(method) for method in protocol.methods}
    most = max(n_runs.values())
    titles = {method: title_of(method) for method, n in n_runs.items() if n}
    return {m: t if n_runs[m] == most else f"{t} ({counted(n_runs[m], 'run')})" for m, t in titles.items()}


def _list_table(protocol: ProtocolResults, n_bits: int) -> Table:
    rows = []
    for method, label in _labels_at(protocol, n_bits).items():
        summaries = [summarize(protocol.values(method, n_bits, f"P@{s}").values()) for s in LIST_LENGTHS]
        if any(summaries):
            rows.append((label, *("-" if s is None else f"{s.mean:.3f}" for s in summaries)))
    columns = ("method", *(f"P@{s}" for s in LIST_LENGTHS))
    return Table(f"P@s at {n_bits} bits, mean over runs", columns, tuple(rows))


def _paired_table(protocol: ProtocolResults, star: str, n_bits: int) -> Table | None:
    rows = []
    for method in protocol.methods:
        gap = paired(protocol.values(star, n_bits, "P@10"), protocol.values(method, n_bits, "P@10"))
        if method != star and gap is not None:
            label = f"{title_of(star)} minus {title_of(method)}"
            rows.append((label, difference(gap), interval(gap), f"{gap.n_won} of {gap.n}"))
    if not rows:
        return None
    caption = f"Paired differences in P@10 at {n_bits} bits, {title_of(star)} minus each other row, on the same runs"
    return Table(caption, ("difference", "mean", "95% interval", "runs won"), tuple(rows))


def reading_notes() -> Section:
    """Return the notes that apply to the tables of all retrieval sections."""
    lines = (
        "Labels used: how many labels a method learned from. KSH and BRE sample 1,000 labeled rows by default, as "
        "their authors recommend; every training row is labeled in these protocols. Where there are no more rows than "
        "that, as with the digits, KSH and KSH with all labels differ by their seeds only.",
        "Empty balls: share of queries with no item within radius 2; they count as precision 0.",
        "PR area: the area under precision over recall as a step function, with one step per radius: each gain in "
        "recall, the one from 0 to radius 0 included, counts with the precision reached there.",
        "Fit or search s: seconds to fit, without compiling; for float search, seconds of the whole search. "
        "Encode or predict s: seconds to encode the queries; for the SVC, which has no codes, to predict them.",
        "Code lengths of 5, 10, ..., 45 bits are our reading of the paper's plots; it lists no lengths.",
        "On pixels of USPS, MNIST, CIFAR-10 and PASCAL07 five of the paper's nine Gaussian kernels are nearly the "
        "identity matrix, on those of the smaller digits three: their bandwidths are far below the distances between "
        "pictures.",
    )
    return Section("How to read the retrieval tables", "reading", [Text(lines)])
