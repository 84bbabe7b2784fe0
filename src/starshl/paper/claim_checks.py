"""One check for each claim of the paper's experiments section."""

from __future__ import annotations

from ..reports.document import digits_apart, listed
from ..reports.results import ProtocolResults
from ..reports.statistics import Paired, means_of, paired, require_paired, shared_runs
from .judging import (
    AS_CLAIMED,
    NOT_CLEAR,
    OTHERWISE,
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

__all__ = [
    "CLAIMED_ENTRY",
    "FLAT",
    "agh_leads_unsupervised",
    "best_at_every_length",
    "best_at_short_lengths",
    "best_beyond_doubt",
    "bre_needs_length",
    "bre_not_above",
    "ksh_slightly_worse",
    "largest_area",
    "only_two_useful",
    "others_degrade",
    "star_flat",
    "supervised_above",
    "transduction_helps",
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
_RIVALS = (*_OTHERS, *_WITH_ALL_LABELS)


def _against_best_other(values: Runs) -> tuple[Paired | None, str]:
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
    values = values_at(protocol, (_STAR, *_RIVALS), n_bits)
    missing = [method for method, runs in values.items() if not runs]
    return *_against_best_other(values), missing


best_at_every_length = at_lengths()(_best_at)
best_at_short_lengths = at_lengths(longest=SHORT)(_best_at)


@at_longest((_STAR, *_RIVALS))
def best_beyond_doubt(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL is above the best other method, and chance is an unlikely reason."""
    gap, figures = _against_best_other(values_of_runs(protocol, (_STAR, *_RIVALS), n_bits, runs))
    if gap is None:
        return [], figures
    # Without an interval nothing is significant.
    judgment = judged(gap) if gap.low is not None or gap.difference <= 0 else NOT_CLEAR
    return [judgment], f"{figures} ({format_gap(gap)})"


@at_longest((_STAR, *_RIVALS), "PR area")
def largest_area(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL has the largest area under precision over recall."""
    gap, figures = _against_best_other(values_of_runs(protocol, (_STAR, *_RIVALS), n_bits, runs, "PR area"))
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
    """From the shortest to the longest codes BRE gains more than *SHL."""
    shortest = min(protocol.lengths)
    gains: Runs = {}
    for method in ("bre", _STAR):
        near, far = (values_of_runs(protocol, (method,), length, runs)[method] for length in (shortest, n_bits))
        gains[method] = {run: far[run] - near[run] for run in near if run in far}
    gap = paired(gains["bre"], gains[_STAR])
    if gap is None or shortest == n_bits:
        return [], "one length only"
    return [judged(gap)], f"gain from {shortest} to {n_bits} bits: {format_means(means_of(gains))} ({format_gap(gap)})"


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
    losses = means_of(_losses(protocol, ("bre", *_UNSUPERVISED), n_bits, runs))
    judgments = [AS_CLAIMED if loss > FLAT else OTHERWISE for loss in losses.values()]
    return judgments, f"loss from P@10 to P@50: {format_means(losses, FLAT)}"


@if_classes_suffice
@at_longest((_STAR,))
def star_flat(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL loses at most 0.01 from P@10 to P@50."""
    losses = means_of(_losses(protocol, (_STAR,), n_bits, runs))
    judgments = [AS_CLAIMED if loss <= FLAT else OTHERWISE for loss in losses.values()]
    return judgments, f"loss from P@10 to P@50: {format_means(losses, FLAT)}"


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
    chance = {run: protocol.random_precision.get(run, 1 / protocol.n_classes) for run in runs}
    bar = {run: max(floating[run], chance[run]) for run in runs}
    judgments = []
    for method, known in values.items():
        useful = method in (_STAR, "ksh")
        judgments.append(judged(require_paired(known, bar) if useful else require_paired(bar, known)))
    unclear = [method for method, judgment in zip(values, judgments, strict=True) if judgment == NOT_CLEAR]
    means = means_of({"float": floating} | values)
    figures = f"{format_means(means)}; random order {means_of({'': chance})['']:.3f}"
    return judgments, figures + (f"; not clear: {listed(map(title_of, unclear))}" if unclear else "")


@at_lengths(of_a_range=True)
def transduction_helps(protocol: ProtocolResults, n_bits: int) -> Comparison:
    """Transduction is ahead of the nearest codeword, both by Hamming distance with ties at random."""
    metrics = {"Hamming": "accuracy, ties at random", "hinge": "accuracy, hinge"}
    before = {name: protocol.values(_STAR, n_bits, metric) for name, metric in metrics.items()}
    metrics["hinge"] = "accuracy, transductive"
    after = {name: protocol.values(_TRANSDUCTIVE, n_bits, metric) for name, metric in metrics.items()}
    missing = [title_of(key) for key, rows in ((_STAR, before), (_TRANSDUCTIVE, after)) if not rows["Hamming"]]
    gap = paired(after["Hamming"], before["Hamming"])
    rows = {f"inductive, {name}": runs for name, runs in before.items()}
    rows |= {f"transductive, {name}": runs for name, runs in after.items()}
    return gap, format_means(means_of(shared_runs(rows))), missing
