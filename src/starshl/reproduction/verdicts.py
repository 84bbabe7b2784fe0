"""Verdicts on claims, from paired differences.

A difference counts if its paired 95% interval excludes zero; with too few runs for an interval, its sign decides.
Only the runs that all compared methods share are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .._common.words import counted
from ..evaluation.reports.document import difference, digits_apart, interval, joined
from ..evaluation.reports.statistics import Paired, shared_runs
from .compared_methods import title_of
from .results import ProtocolResults
from .scores import LIST_LENGTHS

HOLDS, HOLDS_SO_FAR, DOES_NOT_HOLD = "holds", "holds so far", "does not hold"
NOT_CLEAR, NOT_MEASURED = "not clear", "not measured"
AS_CLAIMED, OTHERWISE = "as claimed", "otherwise"
_LONGEST_LIST = LIST_LENGTHS[-1]
Runs: TypeAlias = dict[str, dict[int, float]]
# Of one protocol: the word of a verdict, and figures in words.
Check: TypeAlias = Callable[[ProtocolResults], tuple[str, str]]
# The gap that is claimed to be above zero (None if it is unknown), figures in words, and methods that are missing.
ClaimedGap: TypeAlias = tuple[Paired | None, str, list[str]]
# Judgments, and figures in words.
Judged: TypeAlias = tuple[list[str], str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a claim for one protocol.

    ``word`` is "holds" (everything that the claim is about was run), "holds so far", "does not hold", "not clear"
    (an interval includes zero) or "not measured".
    """

    claim: str
    protocol: str
    dataset: str
    word: str
    figures: str

    @property
    def holds(self) -> bool | None:
        return {HOLDS: True, HOLDS_SO_FAR: True, DOES_NOT_HOLD: False}.get(self.word)


def values_at(protocol: ProtocolResults, methods: Iterable[str], n_bits: int, metric: str = "P@10") -> Runs:
    """Return method -> run -> value at one length."""
    return {method: protocol.values(method, n_bits, metric) for method in methods}


def values_of_runs(
    protocol: ProtocolResults, methods: Iterable[str], n_bits: int, runs: list[int], metric: str = "P@10"
) -> Runs:
    """Return the same for some runs."""
    values = values_at(protocol, methods, n_bits, metric)
    return {method: {run: known[run] for run in runs if run in known} for method, known in values.items()}


def format_means(means: dict[str, float], *bounds: float) -> str:
    """Write means with enough digits to distinguish them from each other and from the bounds that decide."""
    digits = digits_apart(*means.values(), *bounds)
    return ", ".join(f"{title_of(name)} {mean:.{digits}f}" for name, mean in means.items())


def format_gap(gap: Paired) -> str:
    """Write a difference and how sure it is."""
    sure = counted(gap.n, "run") if gap.low is None else f"interval {interval(gap)}"
    return f"{difference(gap)}, {sure}"


def judged(gap: Paired) -> str:
    """Judge a difference that is claimed to be above zero."""
    if gap.low is None:
        return AS_CLAIMED if gap.difference > 0 else OTHERWISE
    return NOT_CLEAR if not gap.clear else AS_CLAIMED if gap.difference > 0 else OTHERWISE


def _word(judgments: Iterable[str], complete: bool) -> str:
    words = set(judgments)
    if not words:
        return NOT_MEASURED
    if OTHERWISE in words:
        return DOES_NOT_HOLD
    return NOT_CLEAR if NOT_CLEAR in words else HOLDS if complete else HOLDS_SO_FAR


def _most(judgments: Iterable[str], complete: bool) -> str:
    """Judge a claim about a range of lengths: as claimed at more than half of them, and the contrary nowhere."""
    known = list(judgments)
    if OTHERWISE in known or not known:
        return _word(known, complete)
    return _word([AS_CLAIMED if 2 * known.count(AS_CLAIMED) > len(known) else NOT_CLEAR], complete)


def at_lengths(
    *, longest: int | None = None, of_a_range: bool = False
) -> Callable[[Callable[[ProtocolResults, int], ClaimedGap]], Check]:
    """Return a decorator for the check of a claim about every length of a protocol.

    The decorated function, of protocol and n_bits, compares the methods at one length. ``longest`` limits the lengths.
    With ``of_a_range`` more than half of the lengths are enough, if no other shows the contrary.
    """

    def decorate(compare: Callable[[ProtocolResults, int], ClaimedGap]) -> Check:
        def check(protocol: ProtocolResults) -> tuple[str, str]:
            planned = protocol.base.bits if protocol.base else tuple(protocol.lengths)
            planned, lengths = (_up_to(known, longest) for known in (planned, protocol.lengths))
            found: dict[int, tuple[str, int]] = {}
            lines: list[str] = []
            missing: dict[str, list[int]] = {}
            for n_bits in sorted({*planned, *lengths}):
                gap, figures, absent = compare(protocol, n_bits)
                for method in absent if n_bits in (lengths or planned) else ():
                    missing.setdefault(method, []).append(n_bits)
                if gap is not None:
                    found[n_bits] = judged(gap), gap.n
                    lines.append(f"{n_bits} bits: {figures} ({format_gap(gap)})")
            word = _most if of_a_range else _word
            return _length_verdict(protocol, planned, found, lines, _describe_missing(lengths, missing), word)

        return check

    return decorate


def _up_to(lengths: Sequence[int], longest: int | None) -> tuple[int, ...]:
    return tuple(n_bits for n_bits in lengths if longest is None or n_bits <= longest)


def _length_verdict(
    protocol: ProtocolResults,
    planned: tuple[int, ...],
    found: dict[int, tuple[str, int]],
    lines: list[str],
    missing: list[str],
    word: Callable[[Iterable[str], bool], str],
) -> tuple[str, str]:
    lacking = f"missing: {joined(missing)}" if missing else ""
    if not found:
        return NOT_MEASURED, lacking or "no run is common to the methods compared"
    n_runs = min(n for _, n in found.values())
    complete = not missing and set(planned) <= set(found) and n_runs >= _planned_runs(protocol)
    parts = [f"({len(found)} of {len({*planned, *found})} lengths, {counted(n_runs, 'run')})"]
    for judgment, words in ((OTHERWISE, "not at"), (NOT_CLEAR, "not clear at")):
        if lengths := [n_bits for n_bits, (own, _) in found.items() if own == judgment]:
            parts.append(f"{words} {joined(lengths)} bits")
    verdict = word((judgment for judgment, _ in found.values()), complete)
    return verdict, ". ".join(filter(None, [*parts, lacking, "; ".join(lines)]))


def _describe_missing(lengths: Sequence[int], missing: dict[str, list[int]]) -> list[str]:
    return [
        title_of(method) if len(absent) >= len(lengths) else f"{title_of(method)} (at {joined(absent)} bits)"
        for method, absent in missing.items()
    ]


def _planned_runs(protocol: ProtocolResults) -> int:
    return protocol.base.n_runs if protocol.base and not protocol.reduced else protocol.n_runs


def at_longest(
    needed: tuple[str, ...], metric: str = "P@10"
) -> Callable[[Callable[[ProtocolResults, int, list[int]], Judged]], Check]:
    """Return a decorator that calls a check with the runs shared at the longest length that has all methods needed.

    The check gets protocol, length and runs of each method, and returns judgments and figures.
    """

    def decorate(judge: Callable[[ProtocolResults, int, list[int]], Judged]) -> Check:
        def check(protocol: ProtocolResults) -> tuple[str, str]:
            n_bits = _longest_with(protocol, needed)
            if n_bits is None:
                return NOT_MEASURED, "no codes"
            values = values_at(protocol, needed, n_bits, metric)
            if absent := [method for method, runs in values.items() if not runs]:
                return NOT_MEASURED, f"missing: {joined(map(title_of, absent))}"
            runs = sorted(next(iter(shared_runs(values).values())))
            if not runs:
                return NOT_MEASURED, f"{n_bits} bits: no run is common to {joined(map(title_of, needed))}"
            judgments, figures = judge(protocol, n_bits, runs)
            longest = max(protocol.base.bits) if protocol.base else n_bits
            complete = n_bits >= longest and len(runs) >= _planned_runs(protocol)
            return _word(judgments, complete), f"({n_bits} bits, {counted(len(runs), 'run')}). {figures}"

        return check

    return decorate


def _longest_with(protocol: ProtocolResults, needed: tuple[str, ...]) -> int | None:
    """Return the length at which most of the methods have runs, the longest of several."""
    return max(
        protocol.lengths, key=lambda n: (sum(map(bool, values_at(protocol, needed, n).values())), n), default=None
    )


def if_classes_suffice(check: Check) -> Check:
    """Return a check that is skipped if a class has fewer rows than the longest list: every method degrades then."""

    def checked(protocol: ProtocolResults) -> tuple[str, str]:
        if protocol.smallest_class < _LONGEST_LIST:
            return (
                NOT_MEASURED,
                f"a class has {protocol.smallest_class} training rows, fewer than the {_LONGEST_LIST} items retrieved",
            )
        return check(protocol)

    return checked
