"""The answer on one page: who wins where and by how much, one chart, and the claims in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..reports.document import Block, Chart, Links, Section, Series, Table, Text, counted, difference, interval, listed
from ..reports.results import ProtocolResults, Results
from ..reports.statistics import Paired, means_of, paired, require_paired, shared_runs
from .claims import CLAIMED_ENTRY, CLAIMS, Verdict
from .extent import extent_of, planned_cells
from .figures import FIGURES
from .lineup import LINEUP, title_of

__all__ = ["answer_section", "claims_in_short", "extent_section"]

_RIVALS = ("ksh", "ksh-all", "bre", "1-agh", "2-agh", "sph", "lsh")
_CHARTED = ("starridge", "starshl", "hc-sdh", "codeword-svm", "ksh-all", "ksh", "float")
_CHARTED_LENGTHS = (15, 45)
_WORDS = ("holds", "holds so far", "not clear", "does not hold", "not measured")


def answer_section(results: Results, verdicts: Sequence[Verdict]) -> Section:
    """Return the answer in ten lines and one chart of differences."""
    retrieval = [p for p in results.of_task("retrieval") if p.lengths and not p.reduced]
    contests = [contest for protocol in retrieval if (contest := _contest(protocol)) is not None]
    lines = _in_short(contests) + _transduction(results) + _few_labels(results) + _no_labels(results)
    blocks: list[Block] = [Text((*lines, _claims_line(verdicts)))]
    if contests:
        blocks.append(_winners(contests))
    charts = [_differences(retrieval, n_bits) for n_bits in _CHARTED_LENGTHS]
    blocks += [chart for chart in charts if chart.series]
    reading = (
        "In the drawing, zero is *SHL with the paper's settings: what lies above retrieves better, on the same rows in "
        "the same runs. Bars are 95% intervals of the paired difference; with fewer than three runs there is none."
    )
    return Section("The answer", "answer", [*blocks, Text((reading,))])


@dataclass(frozen=True, slots=True)
class _Contest:
    """P@10 of one data set: the paper's *SHL, the best other method of the paper, and the best of all rows."""

    dataset: str
    n_bits: int
    n_runs: int
    star: float
    rival: str
    rival_mean: float
    lead: Paired
    best: str
    best_mean: float
    deficit: Paired


def _contest(protocol: ProtocolResults) -> _Contest | None:
    hashers = [method for method in protocol.methods if method in LINEUP and LINEUP[method].kind == "hasher"]
    found = []
    for n_bits in protocol.lengths:
        common = shared_runs({method: protocol.values(method, n_bits, "P@10") for method in hashers})
        found.append((len(common), len(next(iter(common.values()), {})), n_bits, common))
    _, n_runs, n_bits, common = max(found, key=lambda entry: entry[:3])
    means = means_of(common)
    rivals = [method for method in _RIVALS if method in means]
    if CLAIMED_ENTRY not in means or not rivals:
        return None
    rival, best = max(rivals, key=means.__getitem__), max(means, key=means.__getitem__)
    lead = require_paired(common[CLAIMED_ENTRY], common[rival])
    deficit = require_paired(common[best], common[CLAIMED_ENTRY])
    figures = (means[CLAIMED_ENTRY], rival, means[rival], lead, best, means[best], deficit)
    return _Contest(protocol.dataset, n_bits, n_runs, *figures)


def _in_short(contests: Sequence[_Contest]) -> list[str]:
    if not contests:
        return []
    clear = [contest.dataset for contest in contests if contest.lead.clear and contest.lead.difference > 0]
    not_clear = [contest.dataset for contest in contests if not contest.lead.clear]
    behind = [contest.dataset for contest in contests if contest.lead.clear and contest.lead.difference < 0]
    lengths = listed(sorted({contest.n_bits for contest in contests}))
    line = (
        f"By P@10 at {lengths} bits, *SHL with the paper's settings is clearly ahead of all other methods of the paper "
        f"on {listed(clear) or 'no data set'}"
    )
    line += f"; not clear on {listed(not_clear)}" if not_clear else ""
    line += f"; behind on {listed(behind)}." if behind else "."
    winners = [contest.best for contest in contests]
    wins = {title_of(method): winners.count(method) for method in dict.fromkeys(winners)}
    best = listed(f"{title} on {n}" for title, n in wins.items())
    return [
        line,
        f"Of all rows, newer methods included, the best by P@10 is {best} of {counted(len(contests), 'data set')}.",
    ]


def _winners(contests: Sequence[_Contest]) -> Table:
    rows = [
        (
            contest.dataset,
            str(contest.n_bits),
            str(contest.n_runs),
            f"{contest.star:.3f}",
            f"{title_of(contest.rival)} {contest.rival_mean:.3f}",
            _written(contest.lead),
            f"{title_of(contest.best)} {contest.best_mean:.3f}",
            _written(contest.deficit),
        )
        for contest in contests
    ]
    columns = ("data set", "bits", "runs", "*SHL", "best other of the paper", "*SHL ahead by", "best of all", "by")
    caption = (
        "P@10, and paired differences with 95% intervals, over the runs that all methods have; *SHL has the paper's "
        "settings"
    )
    return Table(caption, columns, tuple(rows))


def _written(gap: Paired) -> str:
    sure = counted(gap.n, "run") if gap.low is None else interval(gap)
    return f"{difference(gap)} ({sure})"


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
        metrics = (
            ("hinge", "accuracy, transductive", "accuracy, hinge"),
            ("Hamming", *["accuracy, ties at random"] * 2),
        )
        for decoding, metric_after, metric_before in metrics:
            gap = paired(protocol.values(after, n_bits, metric_after), protocol.values(star, n_bits, metric_before))
            if gap is not None:
                parts.append(f"{protocol.dataset} by {decoding} {_written(gap)}")
                lengths.add(n_bits)
    at = f"at {listed(sorted(lengths))} bits"
    return [f"Transduction, decoded the same way, changes the accuracy {at}: {listed(parts)}."] if parts else []


def _few_labels(results: Results, n_labels: int = 5) -> list[str]:
    parts = []
    for protocol in results.of_task("labels"):
        if protocol.reduced or not protocol.name.endswith(f"-{n_labels}"):
            continue
        values = {method: _accuracy(protocol, method) for method in protocol.methods}
        means = means_of(shared_runs(values))
        if "starridge" in means and "svc" in means:
            best = max(means, key=means.__getitem__)
            parts.append(
                f"{protocol.dataset} {means['starridge']:.3f} (SVC {means['svc']:.3f}; best of all: "
                f"{title_of(best)} {means[best]:.3f})"
            )
    return [f"With {n_labels} labels per class StarRidge has an accuracy of {listed(parts)}."] if parts else []


def _accuracy(protocol: ProtocolResults, method: str) -> dict[int, float]:
    n_bits = protocol.lengths[-1] if protocol.lengths else None
    return protocol.values(method, n_bits, "accuracy") or protocol.values(method, n_bits, "accuracy, nearest code")


def _no_labels(results: Results) -> list[str]:
    parts, lengths = [], set()
    for protocol in results.of_task("unsupervised"):
        if protocol.reduced or not protocol.lengths:
            continue
        values = {method: protocol.values(method, protocol.lengths[-1], "P@10") for method in protocol.methods}
        means = means_of(shared_runs(values))
        if means:
            best = max(means, key=means.__getitem__)
            parts.append(f"{protocol.dataset} {title_of(best)} {means[best]:.3f}")
            lengths.add(protocol.lengths[-1])
    at = f"at {listed(sorted(lengths))} bits"
    return [f"Without labels, the best P@10 of the study's methods {at}: {listed(parts)}."] if parts else []


def _claims_line(verdicts: Sequence[Verdict]) -> str:
    counts = ((word, sum(verdict.word == word for verdict in verdicts)) for word in _WORDS)
    words = listed(f"{word} {n}" for word, n in counts if n)
    return f"{len(CLAIMS)} claims of the paper, each checked on every data set that it is about; verdicts: {words}."


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
        'ones agree; "not clear", that a paired 95% interval includes zero. KSH and BRE learn from 1,000 labels, as '
        "their authors recommend; to be called best, *SHL must also be ahead of KSH with all labels."
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
