"""The answer on one page: who wins where and by how much, one chart, and the claims in one table."""

from __future__ import annotations

from collections.abc import Sequence

from ..reports.document import Block, Chart, Links, Section, Series, Table, Text, counted, listed, with_interval
from ..reports.results import ProtocolResults, Results
from ..reports.statistics import paired
from .beyond import told_of_few_labels, told_of_no_labels
from .claims import CLAIMED_ENTRY, CLAIMS, Verdict
from .contests import contest_of, told, winners
from .extent import extent_of, planned_cells
from .figures import FIGURES, PRINTED_DATA_SETS
from .judging import DOES_NOT_HOLD, HOLDS, HOLDS_SO_FAR
from .lineup import title_of
from .notes import unpublished
from .transduction import DECODINGS

__all__ = ["answer_section", "claims_in_short", "extent_section"]

_TERMS = (
    "P@10 is the share of the ten nearest codes that have the query's label; PR area is the area under precision over "
    "recall. Every method learns from the same rows, which are also the database, and is asked with other rows."
)
_CHARTED = ("starridge", "starshl", "hc-sdh", "codeword-svm", "ksh-all", "ksh", "float")
_CHARTED_LENGTHS = (15, 45)
_WORDS = ("holds", "holds so far", "not clear", "does not hold", "not measured")


def answer_section(results: Results, verdicts: Sequence[Verdict]) -> Section:
    """Return the answer in ten lines, one chart of differences and the tables behind it."""
    retrieval = [p for p in results.of_task("retrieval") if p.lengths and not p.reduced]
    contests = [contest for protocol in retrieval if (contest := contest_of(protocol)) is not None]
    lines = [_TERMS, *told(contests), *_transduction(results)]
    lines += [*told_of_few_labels(results), *told_of_no_labels(results), _claims_line(verdicts)]
    blocks: list[Block] = [Text(tuple(lines))]
    charts = [_differences(retrieval, n_bits) for n_bits in _CHARTED_LENGTHS]
    blocks += [chart for chart in charts if chart.series]
    if blocks[1:]:
        reading = (
            "In the drawing, zero is *SHL with the paper's settings: what lies above retrieves better, on the same "
            "rows in the same runs. Bars are 95% intervals of the paired difference; fewer than three runs have none."
        )
        blocks.append(Text((reading,)))
    return Section("The answer", "answer", blocks + (list(winners(contests)) if contests else []))


def _differences(protocols: Sequence[ProtocolResults], n_bits: int) -> Chart:
    """Return P@10 minus that of the paper's *SHL, data set by data set."""
    here = [protocol for protocol in protocols if n_bits in protocol.lengths]
    series = []
    for method in _CHARTED:
        points = []
        for place, protocol in enumerate(here):
            own, star = (protocol.values(key, n_bits, "P@10") for key in (method, CLAIMED_ENTRY))
            if (gap := paired(own, star)) is not None:
                half = None if gap.high is None else gap.high - gap.difference
                points.append((float(place), gap.difference, half))
        if points:
            x, y, spread = zip(*points, strict=True)
            series.append(Series(title_of(method), x, y, spread, emphasized=method == "starridge"))
    names = tuple(protocol.dataset for protocol in here)
    zero, ticks = title_of(CLAIMED_ENTRY), tuple(map(float, range(len(here))))
    title = f"{n_bits} bits: P@10 minus that of {zero}"
    return Chart(title, "data set", "difference in P@10", tuple(series), ticks, tick_names=names, zero=zero)


def _transduction(results: Results) -> list[str]:
    parts, lengths = [], set()
    for protocol in results.of_task("transductive"):
        star, after = CLAIMED_ENTRY, f"{CLAIMED_ENTRY}-transductive"
        n_bits = max(protocol.lengths, key=lambda n: (len(protocol.values(after, n, "accuracy")), n), default=0)
        for decoding, (metric_before, metric_after) in DECODINGS.items():
            gap = paired(protocol.values(after, n_bits, metric_after), protocol.values(star, n_bits, metric_before))
            if gap is not None:
                parts.append(f"{protocol.dataset} by {decoding} distance {with_interval(gap)}")
                lengths.add(n_bits)
    at = f"at {listed(sorted(lengths))} bits"
    return [f"What transduction adds to the accuracy {at}: {listed(parts)}."] if parts else []


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


def claims_in_short(verdicts: Sequence[Verdict]) -> Section:
    """Return one row per claim: on which data sets it holds, and why."""
    rows = []
    for claim in CLAIMS:
        own = [verdict for verdict in verdicts if verdict.claim == claim.text]
        groups = ((word, [v.dataset for v in own if v.word == word and v.dataset]) for word in _WORDS)
        verdict = "; ".join(f"{word}: {listed(datasets)}" for word, datasets in groups if datasets)
        rows.append((claim.text, verdict or "not measured", claim.cause))
    columns = ("claim", "verdict", "cause")
    table = Table(
        "The paper's claims about *SHL are judged on its own settings", columns, tuple(rows), n_text_columns=3
    )
    note = (
        '"Holds" means that every run, length and method that the claim is about is there; "so far", that the finished '
        'ones agree; "not clear", that a paired 95% interval includes zero. Claims that name no length are judged at '
        'the longest; "strong at short lengths" is judged as "best" is, at 5 and 10 bits; s is the number of items '
        "retrieved. KSH and BRE learn from 1,000 labels, as their authors recommend; to be called best, *SHL must also "
        "be ahead of KSH with all labels. The digits are not in the paper; of PASCAL07 the paper had other rows."
    )
    return Section("The claims of the paper", "claims", [table, Text((note,))])


def extent_section(results: Results, pages: Sequence[tuple[str, str]]) -> Section:
    """Return how much was run, figure by figure, and where the rest is told."""
    known = {protocol.name: protocol for protocol in results.protocols}
    parts, n_missing = [], 0
    for figure in FIGURES.values():
        names = {protocol.name for protocol in figure.protocols}
        planned = sum(len(planned_cells(figure, name)) for name in names)
        done = sum(len(extent_of(known[name]).done & planned_cells(figure, name)) for name in names & known.keys())
        parts.append(f"{figure.name} {done:,} of {planned:,}")
        n_missing += planned - done
    failed = f" {counted(len(results.failures), 'run')} failed." if results.failures else ""
    missing = " The command starshl reproduce does those that are missing." if n_missing else ""
    line = f"Fits done (one per method, length and run): {listed(parts)}.{failed}{missing}"
    return Section("How much was run, and more", "more", [Text((line,)), Links(tuple(pages))])
