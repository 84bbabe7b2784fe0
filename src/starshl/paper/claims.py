"""Check the claims of the paper's experiments section against the results.

Claims are about *SHL with the paper's settings, and about the runs that all methods compared share. A difference
counts if its paired 95 % interval excludes zero; with too few runs for an interval, its sign decides. "Flat" is a loss
of at most 0.01 from P@10 to P@50; "useful" is a P@10 above that of Euclidean search of the rows themselves, with
chance for comparison. "Best" is also judged against KSH with all labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ..reports.document import counted, difference, digits_apart, interval, listed
from ..reports.results import ProtocolResults, Results
from ..reports.statistics import Paired, means_of, paired, require_paired, shared_runs
from .lineup import title_of

__all__ = ["CLAIMED_ENTRY", "FLAT", "Verdict", "check_claims"]

FLAT = 0.01
CLAIMED_ENTRY = "starshl-paper"
_LONGEST_LIST = 50

_STAR = CLAIMED_ENTRY
_TRANSDUCTIVE = "starshl-paper-transductive"
_UNSUPERVISED = ("1-agh", "2-agh", "sph", "lsh")
_OTHERS = ("ksh", "bre", *_UNSUPERVISED)
# Rows of the paper's methods that learn from every label, as *SHL does.
_WITH_ALL_LABELS = ("ksh-all",)
_DIGIT_DATA_SETS = ("pendigits", "usps", "mnist", "digits")
_OTHER_DATA_SETS = ("cifar10", "pascal07")

_HOLDS, _HOLDS_SO_FAR, _DOES_NOT_HOLD = "holds", "holds so far", "does not hold"
_NOT_CLEAR, _NOT_MEASURED = "not clear", "not measured"
_AS_CLAIMED, _OTHERWISE = "as claimed", "otherwise"

Runs: TypeAlias = dict[str, dict[int, float]]
# Of one protocol: the word of a verdict, and figures in words.
Check: TypeAlias = Callable[[ProtocolResults], tuple[str, str]]
# The gap that is claimed to be above zero (None if it is unknown), figures in words, and methods that are missing.
Comparison: TypeAlias = tuple[Paired | None, str, list[str]]
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
        return {_HOLDS: True, _HOLDS_SO_FAR: True, _DOES_NOT_HOLD: False}.get(self.word)


def check_claims(results: Results) -> list[Verdict]:
    """Return a verdict for every claim on every protocol it is about; a claim without runs appears once."""
    verdicts = []
    for claim, task, datasets, check in _CLAIMS:
        about = [protocol for protocol in results.of_task(task) if datasets is None or protocol.dataset in datasets]
        verdicts += [Verdict(claim, protocol.name, protocol.dataset, *check(protocol)) for protocol in about]
        if not about:
            verdicts.append(Verdict(claim, "", "", _NOT_MEASURED, "no runs of any protocol it is about"))
    return verdicts


def _values(protocol: ProtocolResults, methods: Iterable[str], n_bits: int, metric: str = "P@10") -> Runs:
    return {method: protocol.values(method, n_bits, metric) for method in methods}


def _format_means(means: dict[str, float], *bounds: float) -> str:
    """Write means with enough digits to distinguish them from each other and from the bounds that decide."""
    digits = digits_apart(*means.values(), *bounds)
    return ", ".join(f"{title_of(name)} {mean:.{digits}f}" for name, mean in means.items())


def _judged(gap: Paired) -> str:
    """Judge a difference that is claimed to be above zero."""
    if gap.low is None:
        return _AS_CLAIMED if gap.difference > 0 else _OTHERWISE
    return _NOT_CLEAR if not gap.clear else _AS_CLAIMED if gap.difference > 0 else _OTHERWISE


def _word(judgments: Iterable[str], complete: bool) -> str:
    words = set(judgments)
    if not words:
        return _NOT_MEASURED
    if _OTHERWISE in words:
        return _DOES_NOT_HOLD
    return _NOT_CLEAR if _NOT_CLEAR in words else _HOLDS if complete else _HOLDS_SO_FAR


def _format_gap(gap: Paired) -> str:
    sure = counted(gap.n, "run") if gap.low is None else f"interval {interval(gap)}"
    return f"{difference(gap)}, {sure}"


def _at_every_length(compare: Callable[[ProtocolResults, int], Comparison]) -> Check:
    """Return a check of a claim about every length of a protocol.

    ``compare(protocol, n_bits)`` compares the methods at one length.
    """

    def check(protocol: ProtocolResults) -> tuple[str, str]:
        planned = protocol.base.bits if protocol.base else tuple(protocol.lengths)
        judged: dict[int, tuple[str, int]] = {}
        lines: list[str] = []
        missing: dict[str, list[int]] = {}
        for n_bits in sorted({*planned, *protocol.lengths}):
            gap, figures, absent = compare(protocol, n_bits)
            for method in absent if n_bits in (protocol.lengths or planned) else ():
                missing.setdefault(method, []).append(n_bits)
            if gap is not None:
                judged[n_bits] = _judged(gap), gap.n
                lines.append(f"{n_bits} bits: {figures} ({_format_gap(gap)})")
        return _length_verdict(protocol, planned, judged, lines, missing)

    return check


def _length_verdict(
    protocol: ProtocolResults,
    planned: tuple[int, ...],
    judged: dict[int, tuple[str, int]],
    lines: list[str],
    missing: dict[str, list[int]],
) -> tuple[str, str]:
    lacking = f"missing: {listed(_describe_missing(protocol, missing))}" if missing else ""
    if not judged:
        return _NOT_MEASURED, lacking or "no run is common to the methods compared"
    n_runs = min(n for _, n in judged.values())
    complete = not missing and set(planned) <= set(judged) and n_runs >= _planned_runs(protocol)
    word = _word((judgment for judgment, _ in judged.values()), complete)
    parts = [f"({len(judged)} of {len({*planned, *judged})} lengths, {counted(n_runs, 'run')})"]
    for judgment, words in ((_OTHERWISE, "not at"), (_NOT_CLEAR, "not clear at")):
        if lengths := [n_bits for n_bits, (own, _) in judged.items() if own == judgment]:
            parts.append(f"{words} {listed(lengths)} bits")
    return word, ". ".join(filter(None, [*parts, lacking, "; ".join(lines)]))


def _describe_missing(protocol: ProtocolResults, missing: dict[str, list[int]]) -> Iterable[str]:
    for method, lengths in missing.items():
        title = title_of(method)
        yield title if len(lengths) >= len(protocol.lengths) else f"{title} (at {listed(lengths)} bits)"


def _planned_runs(protocol: ProtocolResults) -> int:
    return protocol.base.n_runs if protocol.base and not protocol.reduced else protocol.n_runs


@_at_every_length
def _best_everywhere(protocol: ProtocolResults, n_bits: int) -> Comparison:
    values = _values(protocol, (_STAR, *_OTHERS, *_WITH_ALL_LABELS), n_bits)
    missing = [method for method, runs in values.items() if not runs]
    common = shared_runs(values)
    means = means_of(common)
    others = {method: mean for method, mean in means.items() if method != _STAR}
    if _STAR not in means or not others:
        return None, "", missing
    best = max(others, key=others.__getitem__)
    digits = digits_apart(means[_STAR], others[best])
    figures = f"{means[_STAR]:.{digits}f}, best other {title_of(best)} {others[best]:.{digits}f}"
    return paired(common[_STAR], common[best]), figures, missing


@_at_every_length
def _transduction_helps(protocol: ProtocolResults, n_bits: int) -> Comparison:
    values = {
        "ties at random": protocol.values(_STAR, n_bits, "accuracy, ties at random"),
        "transductive": protocol.values(_TRANSDUCTIVE, n_bits, "accuracy, transductive"),
    }
    names = {"ties at random": f"{title_of(_STAR)} with ties at random", "transductive": title_of(_TRANSDUCTIVE)}
    missing = [names[row] for row, runs in values.items() if not runs]
    gap = paired(values["transductive"], values["ties at random"])
    if gap is None:
        return None, "", missing
    others = {"ties by hinge": "accuracy", "hinge": "accuracy, hinge"}
    values |= {name: protocol.values(_STAR, n_bits, metric) for name, metric in others.items()}
    return gap, _format_means(means_of(shared_runs(values))), missing


def _at_longest(needed: tuple[str, ...]) -> Callable[[Callable[[ProtocolResults, int, list[int]], Judged]], Check]:
    """Return a decorator that calls a check with the runs shared at the longest length that has all methods needed.

    The check gets protocol, length and runs of each method, and returns judgments and figures.
    """

    def decorate(judge: Callable[[ProtocolResults, int, list[int]], Judged]) -> Check:
        def check(protocol: ProtocolResults) -> tuple[str, str]:
            n_bits = _longest_with(protocol, needed)
            if n_bits is None:
                return _NOT_MEASURED, "no codes"
            values = _values(protocol, needed, n_bits)
            if absent := [method for method, runs in values.items() if not runs]:
                return _NOT_MEASURED, f"missing: {listed(map(title_of, absent))}"
            runs = sorted(next(iter(shared_runs(values).values())))
            if not runs:
                return _NOT_MEASURED, f"{n_bits} bits: no run is common to {listed(map(title_of, needed))}"
            judgments, figures = judge(protocol, n_bits, runs)
            longest = max(protocol.base.bits) if protocol.base else n_bits
            complete = n_bits >= longest and len(runs) >= _planned_runs(protocol)
            return _word(judgments, complete), f"({n_bits} bits, {counted(len(runs), 'run')}). {figures}"

        return check

    return decorate


def _longest_with(protocol: ProtocolResults, needed: tuple[str, ...]) -> int | None:
    """Return the length at which most of the methods have runs, the longest of several."""
    return max(protocol.lengths, key=lambda n: (sum(map(bool, _values(protocol, needed, n).values())), n), default=None)


def _over(
    protocol: ProtocolResults, methods: Iterable[str], n_bits: int, runs: list[int], metric: str = "P@10"
) -> Runs:
    values = _values(protocol, methods, n_bits, metric)
    return {method: {run: known[run] for run in runs if run in known} for method, known in values.items()}


@_at_longest((_STAR, "ksh", *_UNSUPERVISED))
def _supervised_above(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    values = _over(protocol, (_STAR, "ksh", *_UNSUPERVISED), n_bits, runs)
    means = means_of(values)
    weakest, best = min((_STAR, "ksh"), key=means.__getitem__), max(_UNSUPERVISED, key=means.__getitem__)
    gap = require_paired(values[weakest], values[best])
    return [_judged(gap)], f"{_format_means(means)}; {title_of(weakest)} minus {title_of(best)}: {_format_gap(gap)}"


@_at_longest(("bre", *_UNSUPERVISED))
def _bre_not_above(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    values = _over(protocol, ("bre", *_UNSUPERVISED), n_bits, runs)
    means = means_of(values)
    best = max(_UNSUPERVISED, key=means.__getitem__)
    gap = require_paired(values[best], values["bre"])
    # A tie is no better.
    judgment = _AS_CLAIMED if gap.difference == 0 else _judged(gap)
    return [judgment], f"{_format_means(means)}; {title_of(best)} minus BRE: {_format_gap(gap)}"


def _if_classes_suffice(check: Check) -> Check:
    """Return a check that is skipped if a class has fewer rows than the longest list: every method degrades then."""

    def checked(protocol: ProtocolResults) -> tuple[str, str]:
        if protocol.smallest_class < _LONGEST_LIST:
            return (
                _NOT_MEASURED,
                f"a class has {protocol.smallest_class} training rows, fewer than the {_LONGEST_LIST} items retrieved",
            )
        return check(protocol)

    return checked


def _losses(protocol: ProtocolResults, methods: tuple[str, ...], n_bits: int, runs: list[int]) -> Runs:
    near, far = (_over(protocol, methods, n_bits, runs, metric) for metric in ("P@10", "P@50"))
    return {method: {run: near[method][run] - far[method][run] for run in far[method]} for method in methods}


@_if_classes_suffice
@_at_longest(("bre", *_UNSUPERVISED))
def _others_degrade(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    losses = means_of(_losses(protocol, ("bre", *_UNSUPERVISED), n_bits, runs))
    return [
        _AS_CLAIMED if loss > FLAT else _OTHERWISE for loss in losses.values()
    ], f"loss from P@10 to P@50: {_format_means(losses, FLAT)}"


@_if_classes_suffice
@_at_longest((_STAR, "ksh"))
def _supervised_flat(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    losses = means_of(_losses(protocol, (_STAR, "ksh"), n_bits, runs))
    return [
        _AS_CLAIMED if loss <= FLAT else _OTHERWISE for loss in losses.values()
    ], f"loss from P@10 to P@50: {_format_means(losses, FLAT)}"


@_if_classes_suffice
@_at_longest(("1-agh", "2-agh"))
def _two_layers_flatter(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    losses = _losses(protocol, ("1-agh", "2-agh"), n_bits, runs)
    gap = paired(losses["1-agh"], losses["2-agh"])
    figures = f"loss from P@10 to P@50: {_format_means(means_of(losses))}"
    return ([_judged(gap)], f"{figures}; 1-AGH minus 2-AGH: {_format_gap(gap)}") if gap else ([], figures)


@_at_longest((_STAR, *_OTHERS, "float"))
def _only_two_useful(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    values = _over(protocol, ("float", _STAR, *_OTHERS), n_bits, runs)
    bar = values.pop("float")
    judgments = []
    for method, known in values.items():
        useful = method in (_STAR, "ksh")
        judgments.append(_judged(require_paired(known, bar) if useful else require_paired(bar, known)))
    unclear = [method for method, judgment in zip(values, judgments, strict=True) if judgment == _NOT_CLEAR]
    figures = (
        f"{_format_means(means_of({'float': bar} | values))}; chance {1 / protocol.n_classes:.3f} if classes were equal"
    )
    return judgments, figures + (f"; not clear: {listed(map(title_of, unclear))}" if unclear else "")


_CLAIMS: tuple[tuple[str, str, tuple[str, ...] | None, Check], ...] = (
    ("*SHL is best, at every code length", "retrieval", None, _best_everywhere),
    ("Supervised methods (*SHL, KSH) beat the unsupervised ones", "retrieval", None, _supervised_above),
    ("BRE is the exception: no better than the unsupervised ones", "retrieval", None, _bre_not_above),
    ("BRE and unsupervised methods degrade as s grows from 10 to 50", "retrieval", None, _others_degrade),
    ("*SHL and KSH stay flat as s grows from 10 to 50", "retrieval", None, _supervised_flat),
    ("2-AGH is flatter in s than 1-AGH on digits", "retrieval", _DIGIT_DATA_SETS, _two_layers_flatter),
    ("Only *SHL and KSH are useful on sets other than digits", "retrieval", _OTHER_DATA_SETS, _only_two_useful),
    ("Transductive *SHL beats inductive *SHL, at every code length", "transductive", None, _transduction_helps),
)
