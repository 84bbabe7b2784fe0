"""The answer on one page: who wins where and by how much, one chart, and how much was run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._common.words import counted
from ..evaluation.reports.document import (
    Block,
    Chart,
    Links,
    Section,
    Series,
    Table,
    Text,
    joined,
    with_interval,
)
from ..evaluation.reports.statistics import Paired, means_of, paired, require_paired, shared_runs, summarize
from .claims import CLAIMS, RIVALS, STAR_PAPER, against_best_other
from .compared_methods import hashers_among, title_of
from .coverage import coverage_of, planned_cells, unpublished
from .figures import FIGURES, PRINTED_DATA_SETS
from .results import CLASS_MEAN, ProtocolResults, Results
from .studies import describe_few_labels, describe_no_labels
from .transduction import DECODINGS
from .verdicts import DOES_NOT_HOLD, HOLDS, HOLDS_SO_FAR, Verdict, values_at
from .whole_lists import describe_lists, explain_marks, marked

_TERMS = (
    "P@10 is the share of the ten nearest codes that have the query's label, where codes at equal distance count in "
    "every order alike; PR area is the area under precision over recall. Every method learns from the same rows, which "
    "are also the database, and is asked with other rows. Codes are compared by Hamming distance, also those of "
    "StarRidge, whose own searches order items by probability, as whole lists do below."
)
_INTERVALS = (
    "Clear means that a 95% interval of the paired difference, Student's over the splits, leaves out zero. Splits of "
    "one data set share rows, so intervals speak of other splits of these rows, not of other data, and are not "
    "corrected for how many there are."
)
_CHARTED = ("starridge", "starshl", "hc-sdh", "codeword-svm", "ksh-all", "ksh", "float")
_CHARTED_LENGTHS = (15, 45)


def answer_section(results: Results, verdicts: Sequence[Verdict]) -> Section:
    """Return the answer in ten lines, one chart of differences and the tables behind it."""
    retrieval = [p for p in results.of_task("retrieval") if p.lengths and not p.reduced]
    contests = [contest for protocol in retrieval if (contest := _contest_of(protocol)) is not None]
    lines = [_TERMS, *_training_rows(retrieval), *_describe_contests(contests)]
    lines += [*describe_lists(results), *_transduction(results)]
    lines += [*describe_few_labels(results), *describe_no_labels(results), _claims_line(verdicts), _INTERVALS]
    lines += explain_marks(dict.fromkeys(protocol.dataset for protocol in results.protocols))
    blocks: list[Block] = [Text(tuple(lines))]
    charts = [_differences(retrieval, n_bits) for n_bits in _CHARTED_LENGTHS]
    blocks += [chart for chart in charts if chart.series]
    if blocks[1:]:
        reading = (
            "In the drawing, zero is *SHL with the paper's settings: what lies above retrieves better, on the same "
            "rows in the same runs. Bars are 95% intervals of the paired difference; fewer than three runs have none."
        )
        blocks.append(Text((reading,)))
    return Section("The answer", "answer", blocks + (list(_tables_of_winners(contests)) if contests else []))


def _training_rows(protocols: Sequence[ProtocolResults]) -> list[str]:
    """Say what the paper's protocol retrieves, and what codes it then compares with."""
    runs = [(p.n_classes, run.values) for p in protocols for run in p.runs if run.method == STAR_PAPER]
    few = [values["distinct codes"] <= n_classes for n_classes, values in runs if "distinct codes" in values]
    if not few:
        return []
    return [
        "The paper's protocol retrieves training rows. "
        f"In {sum(few)} of {counted(len(few), 'run')} with its settings, *SHL gives these no more different codes than "
        "there are classes: the codes are the codewords, so P@10 says how often the class of a query is found, not how "
        "well items are coded that come later. Whole lists, below, have such items."
    ]


@dataclass(frozen=True, slots=True)
class Contest:
    """P@10 of one data set, at the length and over the runs that most methods have.

    ``lead`` is that of the paper's *SHL over the best other method of the paper, ``class_lead`` the same if every class
    counts alike, None where classes are equally large anyway. ``margin`` is that of the best of all rows over the
    second. ``first_by_area`` has the largest PR area.
    """

    dataset: str
    n_bits: int
    n_runs: int
    means: dict[str, float]
    rival: str
    lead: Paired
    class_lead: Paired | None
    largest_class: float
    best: str
    second: str
    margin: Paired
    first_by_area: str


def _contest_of(protocol: ProtocolResults) -> Contest | None:
    """Return who wins on a data set; None if there is nothing to compare the paper's *SHL with."""
    found = []
    for n_bits in protocol.lengths:
        common = shared_runs({m: protocol.values(m, n_bits, "P@10") for m in hashers_among(protocol.methods)})
        found.append((len(common), len(next(iter(common.values()), {})), n_bits, common))
    _, n_runs, n_bits, common = max(found, key=lambda entry: entry[:3])
    means = means_of(common)
    rivals = [method for method in RIVALS if method in means]
    if STAR_PAPER not in means or not rivals:
        return None
    candidates, rival = (STAR_PAPER, *rivals), max(rivals, key=means.__getitem__)
    best, second, *_ = sorted(means, key=means.__getitem__, reverse=True)
    area = means_of(shared_runs({method: protocol.values(method, n_bits, "PR area") for method in means}))
    largest = summarize(protocol.majority_accuracy.values())
    return Contest(
        protocol.dataset,
        n_bits,
        n_runs,
        means,
        rival,
        require_paired(common[STAR_PAPER], common[rival]),
        against_best_other(values_at(protocol, candidates, n_bits, CLASS_MEAN))[0] if protocol.unequal else None,
        largest.mean if largest else 0.0,
        best,
        second,
        require_paired(common[best], common[second]),
        max(area, key=area.__getitem__, default=""),
    )


def _describe_contests(contests: Sequence[Contest]) -> list[str]:
    """Say in a few sentences who is ahead of whom, and where that is not sure."""
    if not contests:
        return []
    clear = [_name(contest) for contest in contests if contest.lead.clear and contest.lead.difference > 0]
    not_clear = [_name(contest) for contest in contests if not contest.lead.clear]
    behind = [_name(contest) for contest in contests if contest.lead.clear and contest.lead.difference < 0]
    lengths = joined(sorted({contest.n_bits for contest in contests}))
    line = (
        f"By P@10 at {lengths} bits, *SHL with the paper's settings is clearly ahead of all other methods of the paper "
        f"on {joined(clear) or 'no data set'}"
    )
    line += f"; not clear on {joined(not_clear)}" if not_clear else ""
    line += f"; behind on {joined(behind)}." if behind else "."
    return [line, *_leads_of_the_largest_class(contests), _best_of_all(contests)]


def _leads_of_the_largest_class(contests: Sequence[Contest]) -> list[str]:
    """Say where the lead is one of the largest class only."""
    return [
        f"The lead on {contest.dataset} comes from its largest class, {contest.largest_class:.0%} of the queries: if "
        f"every class counts the same, it is {with_interval(contest.class_lead)}."
        for contest in contests
        if contest.class_lead is not None and not (contest.class_lead.clear and contest.class_lead.difference > 0)
    ]


def _best_of_all(contests: Sequence[Contest]) -> str:
    firsts = [contest.best for contest in contests]
    parts = []
    for method in dict.fromkeys(firsts):
        clear = [contest.dataset for contest in contests if contest.best == method and contest.margin.clear]
        parts.append(
            f"{title_of(method)} is first by P@10 on {firsts.count(method)} of {counted(len(contests), 'data set')}, "
            f"clearly ahead of the second on {joined(clear) or 'none'}"
        )
    by_area = [contest.first_by_area for contest in contests if contest.first_by_area]
    areas = joined(f"{title_of(method)} on {by_area.count(method)}" for method in dict.fromkeys(by_area))
    line = f"Of all rows, newer methods included, {joined(parts)}."
    line += f" By PR area the first is {areas}." if areas else ""
    return line


def _tables_of_winners(contests: Sequence[Contest]) -> list[Table]:
    """Return one table for the methods of the paper and one for all rows."""
    n_bits, n_runs = ({getattr(contest, name) for contest in contests} for name in ("n_bits", "n_runs"))
    where = f"at {joined(sorted(n_bits))} bits over {joined(sorted(n_runs))} runs, with 95% intervals of the difference"
    among_paper = tuple(
        (_name(c), f"{c.means[STAR_PAPER]:.3f}", _measured(c, c.rival), with_interval(c.lead)) for c in contests
    )
    among_all = tuple(
        (_name(c), _measured(c, c.best), _measured(c, c.second), with_interval(c.margin)) for c in contests
    )
    return [
        Table(
            f"The methods of the paper: P@10 {where}; *SHL has the paper's settings",
            ("data set", "*SHL", "best other", "*SHL ahead by"),
            among_paper,
        ),
        Table(f"All methods: P@10 {where}", ("data set", "first", "second", "first ahead by"), among_all),
    ]


def _measured(contest: Contest, method: str) -> str:
    return f"{title_of(method)} {contest.means[method]:.3f}"


def _name(contest: Contest) -> str:
    """Return the name of the data set, marked if it is not one of the paper's."""
    name = marked(contest.dataset)
    return name if contest.dataset in PRINTED_DATA_SETS else f"{name} (not in the paper)"


def _differences(protocols: Sequence[ProtocolResults], n_bits: int) -> Chart:
    """Return P@10 minus that of the paper's *SHL, data set by data set."""
    here = [protocol for protocol in protocols if n_bits in protocol.lengths]
    series = []
    for method in _CHARTED:
        points = []
        for place, protocol in enumerate(here):
            own, star = (protocol.values(key, n_bits, "P@10") for key in (method, STAR_PAPER))
            if (gap := paired(own, star)) is not None:
                half = None if gap.high is None else gap.high - gap.difference
                points.append((float(place), gap.difference, half))
        if points:
            x, y, spread = zip(*points, strict=True)
            series.append(Series(title_of(method), x, y, spread, emphasized=method == "starridge"))
    names = tuple(protocol.dataset for protocol in here)
    zero, ticks = title_of(STAR_PAPER), tuple(map(float, range(len(here))))
    title = f"{n_bits} bits: P@10 minus that of {zero}"
    return Chart(title, "data set", "difference in P@10", tuple(series), ticks, tick_names=names, zero=zero)


def _transduction(results: Results) -> list[str]:
    parts, lengths = [], set()
    for protocol in results.of_task("transductive"):
        star, after = STAR_PAPER, f"{STAR_PAPER}-transductive"
        n_bits = max(protocol.lengths, key=lambda n: (len(protocol.values(after, n, "accuracy")), n), default=0)
        for decoding, (metric_before, metric_after) in DECODINGS.items():
            gap = paired(protocol.values(after, n_bits, metric_after), protocol.values(star, n_bits, metric_before))
            if gap is not None:
                parts.append(f"{protocol.dataset} by {decoding} distance {with_interval(gap)}")
                lengths.add(n_bits)
    at = f"at {joined(sorted(lengths))} bits"
    return [f"What transduction adds to the accuracy {at}: {joined(parts)}."] if parts else []


def _claims_line(verdicts: Sequence[Verdict]) -> str:
    """Count the claims that hold on all of the paper's data sets whose rows were published."""
    words: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.dataset in PRINTED_DATA_SETS and not unpublished(verdict.dataset):
            words.setdefault(verdict.claim, []).append(verdict.word)
    n_holding = sum(set(own) <= {HOLDS, HOLDS_SO_FAR} for own in words.values())
    n_refuted = sum(DOES_NOT_HOLD in own for own in words.values())
    return (
        f"Of {len(CLAIMS)} claims of the paper, {n_holding} hold on all of the paper's data sets that they are about, "
        f"{n_refuted} fail on at least one, and {len(CLAIMS) - n_holding - n_refuted} are not clear on some. PASCAL07 "
        "does not count here, because the paper's rows of it were never published."
    )


def coverage_section(results: Results, pages: Sequence[tuple[str, str]]) -> Section:
    """Return how much was run, figure by figure, and where the rest is told."""
    known = {protocol.name: protocol for protocol in results.protocols}
    parts, n_missing = [], 0
    for figure in FIGURES.values():
        names = {protocol.name for protocol in figure.protocols}
        planned = sum(len(planned_cells(figure, name)) for name in names)
        done = sum(len(coverage_of(known[name]).done & planned_cells(figure, name)) for name in names & known.keys())
        parts.append(f"{figure.name} {done:,} of {planned:,}")
        n_missing += planned - done
    failed = f" {counted(len(results.failures), 'run')} failed." if results.failures else ""
    missing = " The command starshl reproduce does those that are missing." if n_missing else ""
    line = f"Fits done (one per method, length and run): {joined(parts)}.{failed}{missing}"
    return Section("How much was run, and more", "more", [Text((line,)), Links(tuple(pages))])
