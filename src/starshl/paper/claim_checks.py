"""One check for each claim of the paper's experiments section."""

from __future__ import annotations

from ..reports.document import digits_apart, listed
from ..reports.results import CLASS_MEAN, ProtocolResults
from ..reports.statistics import Paired, means_of, paired, require_paired, shared_runs
from .judging import (
    AS_CLAIMED,
    NOT_CLEAR,
    Comparison,
    Judged,
    Runs,
    at_lengths,
    at_longest,
    format_gap,
    format_means,
    if_classes_suffice,
    judged,
    values_at,
    values_of_runs,
)
from .lineup import title_of
from .pictures import N_RETRIEVED, QUERY_CLASS

__all__ = [
    "CLAIMED_ENTRY",
    "FLAT",
    "RIVALS",
    "against_best_other",
    "agh_leads_unsupervised",
    "best_at_every_length",
    "best_at_short_lengths",
    "best_beyond_doubt",
    "bre_needs_length",
    "bre_not_above",
    "ksh_slightly_worse",
    "largest_area",
    "more_of_the_query_class",
    "only_two_useful",
    "others_degrade",
    "star_flat",
    "supervised_above",
    "transduction_helps_by_hamming",
    "transduction_helps_by_hinge",
    "two_layers_flatter",
]

FLAT = 0.01
CLAIMED_ENTRY = "starshl-paper"
SHORT = 10

_STAR = CLAIMED_ENTRY
_TRANSDUCTIVE = "starshl-paper-transductive"
_UNSUPERVISED = ("1-agh", "2-agh", "sph", "lsh")
_OTHERS = ("ksh", "bre", *_UNSUPERVISED)
# Rows of the paper's methods that learn from every label, as *SHL does.
_WITH_ALL_LABELS = ("ksh-all",)
RIVALS = (*_OTHERS, *_WITH_ALL_LABELS)


def against_best_other(values: Runs) -> tuple[Paired | None, str]:
    """Compare *SHL with the best other method on the runs that all share."""
    common = shared_runs(values)
    means = means_of(common)
    others = {method: mean for method, mean in means.items() if method != _STAR}
    if _STAR not in means or not others:
        return None, ""
    best = max(others, key=others.__getitem__)
    digits = digits_apart(means[_STAR], others[best])
    figures = f"{means[_STAR]:.{digits}f}, best other {title_of(best)} {others[best]:.{digits}f}"
    return paired(common[_STAR], common[best]), figures


def _best_at(protocol: ProtocolResults, n_bits: int) -> Comparison:
    values = values_at(protocol, (_STAR, *RIVALS), n_bits)
    missing = [method for method, runs in values.items() if not runs]
    return *against_best_other(values), missing


best_at_every_length = at_lengths()(_best_at)
best_at_short_lengths = at_lengths(longest=SHORT)(_best_at)


@at_longest((_STAR, *RIVALS))
def best_beyond_doubt(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL is above the best other method, and chance is an unlikely reason.

    Where classes are unequal, it must also be so if every class counts the same: to retrieve nothing but the largest
    class would be significantly better, too.
    """
    judgments, parts = [], []
    for metric in ("P@10", CLASS_MEAN) if protocol.unequal else ("P@10",):
        gap, figures = against_best_other(values_of_runs(protocol, (_STAR, *RIVALS), n_bits, runs, metric))
        if gap is not None:
            # Without an interval nothing is significant.
            judgments.append(judged(gap) if gap.low is not None or gap.difference <= 0 else NOT_CLEAR)
            parts.append(f"{metric} {figures} ({format_gap(gap)})")
    return judgments, "; ".join(parts)


@at_longest((_STAR, *RIVALS), "PR area")
def largest_area(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL has the largest area under precision over recall."""
    gap, figures = against_best_other(values_of_runs(protocol, (_STAR, *RIVALS), n_bits, runs, "PR area"))
    return ([], figures) if gap is None else ([judged(gap)], f"PR area {figures} ({format_gap(gap)})")


@at_longest((_STAR, "ksh", *_UNSUPERVISED))
def supervised_above(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL and KSH are above the best unsupervised method."""
    values = values_of_runs(protocol, (_STAR, "ksh", *_UNSUPERVISED), n_bits, runs)
    means = means_of(values)
    weakest, best = min((_STAR, "ksh"), key=means.__getitem__), max(_UNSUPERVISED, key=means.__getitem__)
    gap = require_paired(values[weakest], values[best])
    return [judged(gap)], f"{format_means(means)}; {title_of(weakest)} minus {title_of(best)}: {format_gap(gap)}"


@at_longest(("bre", *_UNSUPERVISED))
def bre_not_above(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """BRE is not above the best unsupervised method."""
    values = values_of_runs(protocol, ("bre", *_UNSUPERVISED), n_bits, runs)
    means = means_of(values)
    best = max(_UNSUPERVISED, key=means.__getitem__)
    gap = require_paired(values[best], values["bre"])
    # A tie is no better.
    judgment = AS_CLAIMED if gap.difference == 0 else judged(gap)
    return [judgment], f"{format_means(means)}; {title_of(best)} minus BRE: {format_gap(gap)}"


@at_longest(("bre", _STAR))
def bre_needs_length(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """With a third of the bits, BRE has a smaller share of its final lead over chance than *SHL has of its own."""
    third = min(protocol.lengths, key=lambda length: abs(length - n_bits / 3))
    shares: Runs = {}
    for method in ("bre", _STAR):
        few, all_bits = (values_of_runs(protocol, (method,), length, runs)[method] for length in (third, n_bits))
        leads = {run: all_bits[run] - _chance(protocol, run) for run in few if run in all_bits}
        shares[method] = {run: (few[run] - _chance(protocol, run)) / lead for run, lead in leads.items() if lead > 0}
    gap = paired(shares[_STAR], shares["bre"])
    if gap is None or third == n_bits:
        return [], "one length only" if third == n_bits else "no run above chance"
    figures = f"share of the lead over chance that {third} bits have: {format_means(means_of(shares))}"
    return [judged(gap)], f"{figures} ({format_gap(gap)})"


def _chance(protocol: ProtocolResults, run: int) -> float:
    return protocol.random_precision.get(run, 1 / protocol.n_classes)


@at_longest(_UNSUPERVISED)
def agh_leads_unsupervised(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """The better of 1-AGH and 2-AGH is above SPH and LSH."""
    values = values_of_runs(protocol, _UNSUPERVISED, n_bits, runs)
    means = means_of(values)
    best, rival = max(("1-agh", "2-agh"), key=means.__getitem__), max(("sph", "lsh"), key=means.__getitem__)
    gap = require_paired(values[best], values[rival])
    return [judged(gap)], f"{format_means(means)}; {title_of(best)} minus {title_of(rival)}: {format_gap(gap)}"


def _losses(protocol: ProtocolResults, methods: tuple[str, ...], n_bits: int, runs: list[int]) -> Runs:
    near, far = (values_of_runs(protocol, methods, n_bits, runs, metric) for metric in ("P@10", "P@50"))
    return {method: {run: near[method][run] - far[method][run] for run in far[method]} for method in methods}


@if_classes_suffice
@at_longest(("bre", *_UNSUPERVISED))
def others_degrade(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """BRE and the unsupervised methods lose more than 0.01 from P@10 to P@50."""
    losses = _losses(protocol, ("bre", *_UNSUPERVISED), n_bits, runs)
    gaps = {method: paired(own, dict.fromkeys(own, FLAT)) for method, own in losses.items()}
    return _judged_losses(gaps, losses)


@if_classes_suffice
@at_longest((_STAR,))
def star_flat(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL loses at most 0.01 from P@10 to P@50."""
    losses = _losses(protocol, (_STAR,), n_bits, runs)
    gaps = {method: paired(dict.fromkeys(own, FLAT), own) for method, own in losses.items()}
    return _judged_losses(gaps, losses)


def _judged_losses(gaps: dict[str, Paired | None], losses: Runs) -> Judged:
    judgments = {method: judged(gap) for method, gap in gaps.items() if gap is not None}
    unclear = [title_of(method) for method, judgment in judgments.items() if judgment == NOT_CLEAR]
    figures = f"loss from P@10 to P@50: {format_means(means_of(losses), FLAT)}"
    return list(judgments.values()), figures + (f"; not clear: {listed(unclear)}" if unclear else "")


@if_classes_suffice
@at_longest(("ksh", "bre", *_UNSUPERVISED))
def ksh_slightly_worse(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """KSH loses something from P@10 to P@50, but less than BRE and the unsupervised methods."""
    losses = _losses(protocol, ("ksh", "bre", *_UNSUPERVISED), n_bits, runs)
    means = means_of(losses)
    if "ksh" not in means:
        return [], "no P@50"
    least = min((method for method in means if method != "ksh"), key=means.__getitem__)
    judgments = [judged(require_paired(losses["ksh"], dict.fromkeys(losses["ksh"], 0.0)))]
    judgments.append(judged(require_paired(losses[least], losses["ksh"])))
    shown = {method: means[method] for method in ("ksh", least)}
    return judgments, f"loss from P@10 to P@50: {format_means(shown)}"


@if_classes_suffice
@at_longest(("1-agh", "2-agh"))
def two_layers_flatter(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """2-AGH loses less than 1-AGH from P@10 to P@50."""
    losses = _losses(protocol, ("1-agh", "2-agh"), n_bits, runs)
    gap = paired(losses["1-agh"], losses["2-agh"])
    figures = f"loss from P@10 to P@50: {format_means(means_of(losses))}"
    return ([judged(gap)], f"{figures}; 1-AGH minus 2-AGH: {format_gap(gap)}") if gap else ([], figures)


@at_longest((_STAR, *_OTHERS, "float"))
def only_two_useful(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL and KSH are above Euclidean search and above a random order of the database, the others are not."""
    values = values_of_runs(protocol, ("float", _STAR, *_OTHERS), n_bits, runs)
    floating = values.pop("float")
    chance = {run: _chance(protocol, run) for run in runs}
    bar = {run: max(floating[run], chance[run]) for run in runs}
    judgments = []
    for method, known in values.items():
        useful = method in (_STAR, "ksh")
        judgments.append(judged(require_paired(known, bar) if useful else require_paired(bar, known)))
    unclear = [method for method, judgment in zip(values, judgments, strict=True) if judgment == NOT_CLEAR]
    means = means_of({"float": floating} | values)
    figures = f"{format_means(means)}; random order {means_of({'': chance})['']:.3f}"
    return judgments, figures + (f"; not clear: {listed(map(title_of, unclear))}" if unclear else "")


@at_longest((_STAR, *RIVALS))
def more_of_the_query_class(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """Over all queries of the class that the paper shows, *SHL retrieves more of that class than the best other."""
    values = {method: protocol.values_of_class(method, n_bits, N_RETRIEVED, QUERY_CLASS) for method in (_STAR, *RIVALS)}
    gap, figures = against_best_other(
        {method: {run: own[run] for run in runs if run in own} for method, own in values.items()}
    )
    return ([], figures) if gap is None else ([judged(gap)], f"P@{N_RETRIEVED} {figures} ({format_gap(gap)})")


@at_lengths(of_a_range=True)
def transduction_helps_by_hinge(protocol: ProtocolResults, n_bits: int) -> Comparison:
    """Transduction is ahead where both modes pick the codeword at the smallest hinge distance, as the paper does."""
    return _transduction(protocol, n_bits, before="accuracy, hinge", after="accuracy, transductive")


@at_lengths(of_a_range=True)
def transduction_helps_by_hamming(protocol: ProtocolResults, n_bits: int) -> Comparison:
    """Transduction is ahead where both modes pick the codeword at the smallest Hamming distance, ties at random."""
    return _transduction(protocol, n_bits, before="accuracy, ties at random", after="accuracy, ties at random")


def _transduction(protocol: ProtocolResults, n_bits: int, *, before: str, after: str) -> Comparison:
    rows = {
        "inductive": protocol.values(_STAR, n_bits, before),
        "transductive": protocol.values(_TRANSDUCTIVE, n_bits, after),
    }
    missing = [title_of(key) for key, runs in zip((_STAR, _TRANSDUCTIVE), rows.values(), strict=True) if not runs]
    gap = paired(rows["transductive"], rows["inductive"])
    return gap, format_means(means_of(shared_runs(rows))), missing
