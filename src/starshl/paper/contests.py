"""Who retrieves best on each data set: the paper's *SHL against the paper's other methods, and the best of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..reports.document import Table, counted, listed, with_interval
from ..reports.results import CLASS_MEAN, ProtocolResults
from ..reports.statistics import Paired, means_of, require_paired, shared_runs, summarize
from .claim_checks import CLAIMED_ENTRY, RIVALS, against_best_other
from .figures import PRINTED_DATA_SETS
from .judging import values_at
from .lineup import hashers_among, title_of

__all__ = ["Contest", "contest_of", "told", "winners"]


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


def contest_of(protocol: ProtocolResults) -> Contest | None:
    """Return who wins on a data set; None if there is nothing to compare the paper's *SHL with."""
    found = []
    for n_bits in protocol.lengths:
        common = shared_runs({m: protocol.values(m, n_bits, "P@10") for m in hashers_among(protocol.methods)})
        found.append((len(common), len(next(iter(common.values()), {})), n_bits, common))
    _, n_runs, n_bits, common = max(found, key=lambda entry: entry[:3])
    means = means_of(common)
    rivals = [method for method in RIVALS if method in means]
    if CLAIMED_ENTRY not in means or not rivals:
        return None
    candidates, rival = (CLAIMED_ENTRY, *rivals), max(rivals, key=means.__getitem__)
    best, second, *_ = sorted(means, key=means.__getitem__, reverse=True)
    area = means_of(shared_runs({method: protocol.values(method, n_bits, "PR area") for method in means}))
    largest = summarize(protocol.majority_accuracy.values())
    return Contest(
        protocol.dataset,
        n_bits,
        n_runs,
        means,
        rival,
        require_paired(common[CLAIMED_ENTRY], common[rival]),
        against_best_other(values_at(protocol, candidates, n_bits, CLASS_MEAN))[0] if protocol.unequal else None,
        largest.mean if largest else 0.0,
        best,
        second,
        require_paired(common[best], common[second]),
        max(area, key=area.__getitem__, default=""),
    )


def told(contests: Sequence[Contest]) -> list[str]:
    """Say in a few sentences who is ahead of whom, and where that is not sure."""
    if not contests:
        return []
    clear = [_name(contest) for contest in contests if contest.lead.clear and contest.lead.difference > 0]
    not_clear = [_name(contest) for contest in contests if not contest.lead.clear]
    behind = [_name(contest) for contest in contests if contest.lead.clear and contest.lead.difference < 0]
    lengths = listed(sorted({contest.n_bits for contest in contests}))
    line = (
        f"By P@10 at {lengths} bits, *SHL with the paper's settings is clearly ahead of all other methods of the paper "
        f"on {listed(clear) or 'no data set'}"
    )
    line += f"; not clear on {listed(not_clear)}" if not_clear else ""
    line += f"; behind on {listed(behind)}." if behind else "."
    return [line, *_unequal(contests), _best_of_all(contests)]


def _unequal(contests: Sequence[Contest]) -> list[str]:
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
            f"clearly ahead of the second on {listed(clear) or 'none'}"
        )
    by_area = [contest.first_by_area for contest in contests if contest.first_by_area]
    areas = listed(f"{title_of(method)} on {by_area.count(method)}" for method in dict.fromkeys(by_area))
    line = f"Of all rows, newer methods included, {listed(parts)}."
    line += f" By PR area the first is {areas}." if areas else ""
    if "starridge" in firsts:
        line += " Constants of StarRidge were chosen with these data sets in view (defaults.md says which)."
    return line


def winners(contests: Sequence[Contest]) -> list[Table]:
    """Return one table for the methods of the paper and one for all rows."""
    n_bits, n_runs = ({getattr(contest, name) for contest in contests} for name in ("n_bits", "n_runs"))
    where = f"at {listed(sorted(n_bits))} bits over {listed(sorted(n_runs))} runs, with 95% intervals of the difference"
    among_paper = tuple(
        (_name(c), f"{c.means[CLAIMED_ENTRY]:.3f}", _measured(c, c.rival), with_interval(c.lead)) for c in contests
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
    return contest.dataset if contest.dataset in PRINTED_DATA_SETS else f"{contest.dataset} (not in the paper)"
