"""The claims of the paper's experiments section, each with its check and what we take for the cause of the outcome.

Claims are about *SHL with the paper's settings. "Flat" is a loss of at most 0.01 from P@10 to P@50; "useful" is a P@10
above Euclidean search of the rows themselves and above a random order of the database. "Best" is also judged against
KSH with all labels, "short" is up to 10 bits, "significantly" needs an interval and, with unequal classes, must hold if
all classes count the same; "needs longer codes" is a smaller share of the final lead over chance with a third of the
bits, and "across a range" is at more than half of the lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..evaluation.reports.document import Section, Table, Text, digits_apart, joined
from ..evaluation.reports.statistics import (
    MIN_RUNS_FOR_INTERVAL,
    Paired,
    means_of,
    paired,
    require_paired,
    shared_runs,
)
from .compared_methods import title_of
from .coverage import footnote, marked_name
from .pictures import N_RETRIEVED, QUERY_CLASS
from .results import CLASS_MEAN, ProtocolResults, Results
from .verdicts import (
    AS_CLAIMED,
    DOES_NOT_HOLD,
    HOLDS,
    HOLDS_SO_FAR,
    NOT_CLEAR,
    NOT_MEASURED,
    Check,
    ClaimedGap,
    Judged,
    Runs,
    Verdict,
    at_lengths,
    at_longest,
    format_gap,
    format_means,
    if_classes_suffice,
    judged,
    values_at,
    values_of_runs,
)

FLAT = 0.01
SHORT = 10
STAR_PAPER = "starshl-paper"
_TRANSDUCTIVE = "starshl-paper-transductive"
_UNSUPERVISED = ("1-agh", "2-agh", "sph", "lsh")
_OTHERS = ("ksh", "bre", *_UNSUPERVISED)
# Rows of the paper's methods that learn from every label, as *SHL does.
_WITH_ALL_LABELS = ("ksh-all",)
RIVALS = (*_OTHERS, *_WITH_ALL_LABELS)
ABOUT_PICTURES = "*SHL retrieves more pictures of the query's class (automobile) than the others"
_DIGITS = ("pendigits", "usps", "mnist", "digits")
_OTHER_THAN_DIGITS = ("cifar10", "pascal07")
# The words of verdicts, in the order in which they are counted, and their colors.
_TONES = {HOLDS: "yes", HOLDS_SO_FAR: "yes", DOES_NOT_HOLD: "no", NOT_CLEAR: "open", NOT_MEASURED: "open"}
# In the order in which the short table lists them.
_WORDS = (HOLDS, HOLDS_SO_FAR, NOT_CLEAR, DOES_NOT_HOLD, NOT_MEASURED)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper, the protocols that it is about, and why it turned out as it did."""

    text: str
    short: str
    check: Check
    cause: str
    task: str = "retrieval"
    datasets: tuple[str, ...] | None = None


def check_claims(results: Results) -> list[Verdict]:
    """Return a verdict for every claim on every protocol it is about; a claim without runs appears once."""
    verdicts = []
    for claim in CLAIMS:
        about = [p for p in results.of_task(claim.task) if claim.datasets is None or p.dataset in claim.datasets]
        verdicts += [Verdict(claim.text, protocol.name, protocol.dataset, *claim.check(protocol)) for protocol in about]
        if not about:
            verdicts.append(Verdict(claim.text, "", "", NOT_MEASURED, "no runs of any protocol it is about"))
    return verdicts


def claims_section(verdicts: list[Verdict]) -> Section:
    """Return the table of the paper's claims, with the protocols that each was checked on."""
    rows, last = [], None
    for verdict in verdicts:
        claim = "" if verdict.claim == last else verdict.claim
        protocol = marked_name(verdict.protocol, verdict.dataset) or "-"
        rows.append((claim, protocol, verdict.word, verdict.figures))
        last = verdict.claim
    counts = ", ".join(f"{word}: {sum(verdict.word == word for verdict in verdicts)}" for word in _TONES)
    text = Text(
        (
            "Claims in the experiments section of Huang et al. 2015, checked protocol by protocol; *SHL is the row "
            f'"{title_of(STAR_PAPER)}" throughout. {counts}.',
            'A claim "holds" only if all runs, lengths and methods that it is about are complete; until then it '
            '"holds so far". It is "not clear" if the paired 95% interval of a difference includes zero; with fewer '
            f"than {MIN_RUNS_FOR_INTERVAL} runs there is no interval and the sign decides.",
            f"Figures are means over shared runs, P@10 unless stated otherwise. Flat means a loss of at most {FLAT} "
            "from P@10 to P@50; useful means a P@10 above Euclidean search of the rows themselves and above a random "
            "order of the database; BRE is no better if it is not above the best unsupervised method, and needs longer "
            "codes if it gains more from them than *SHL; short is up to 10 bits.",
            "In the paper's line-up KSH and BRE learn from 1,000 labels and *SHL from all. *SHL is therefore called "
            "best only if it is also ahead of KSH with all labels.",
            "Transduction is judged with both modes decoded by Hamming distance, ties at random; it has merit across a "
            "range of lengths if it is clearly ahead at more than half of them and clearly behind at none. Accuracies "
            "by hinge distance are given, too.",
        )
    )
    table = Table("Claims", ("claim", "protocol", "verdict", "figures"), tuple(rows), n_text_columns=4, tones=_TONES)
    notes = footnote(verdict.dataset for verdict in verdicts)
    return Section("The claims of the paper", "claims", [text, table, *notes])


def claims_in_short(verdicts: Sequence[Verdict]) -> Section:
    """Return one row per claim: on which data sets it holds, and why."""
    rows = []
    for claim in CLAIMS:
        own = [verdict for verdict in verdicts if verdict.claim == claim.text]
        groups = ((word, [v.dataset for v in own if v.word == word and v.dataset]) for word in _WORDS)
        verdict = "; ".join(f"{word}: {joined(datasets)}" for word, datasets in groups if datasets)
        rows.append((claim.text, verdict or NOT_MEASURED, claim.cause))
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


def against_best_other(values: Runs) -> tuple[Paired | None, str]:
    """Compare *SHL with the best other method on the runs that all share."""
    common = shared_runs(values)
    means = means_of(common)
    others = {method: mean for method, mean in means.items() if method != STAR_PAPER}
    if STAR_PAPER not in means or not others:
        return None, ""
    best = max(others, key=others.__getitem__)
    digits = digits_apart(means[STAR_PAPER], others[best])
    figures = f"{means[STAR_PAPER]:.{digits}f}, best other {title_of(best)} {others[best]:.{digits}f}"
    return paired(common[STAR_PAPER], common[best]), figures


def _best_at(protocol: ProtocolResults, n_bits: int) -> ClaimedGap:
    values = values_at(protocol, (STAR_PAPER, *RIVALS), n_bits)
    missing = [method for method, runs in values.items() if not runs]
    return *against_best_other(values), missing


best_at_every_length = at_lengths()(_best_at)
best_at_short_lengths = at_lengths(longest=SHORT)(_best_at)


@at_longest((STAR_PAPER, *RIVALS))
def best_beyond_doubt(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL is above the best other method, and chance is an unlikely reason.

    Where classes are unequal, it must also be so if every class counts the same: to retrieve nothing but the largest
    class would be significantly better, too.
    """
    judgments, parts = [], []
    for metric in ("P@10", CLASS_MEAN) if protocol.unequal else ("P@10",):
        gap, figures = against_best_other(values_of_runs(protocol, (STAR_PAPER, *RIVALS), n_bits, runs, metric))
        if gap is not None:
            # Without an interval nothing is significant.
            judgments.append(judged(gap) if gap.low is not None or gap.difference <= 0 else NOT_CLEAR)
            parts.append(f"{metric} {figures} ({format_gap(gap)})")
    return judgments, "; ".join(parts)


@at_longest((STAR_PAPER, *RIVALS), "PR area")
def largest_area(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL has the largest area under precision over recall."""
    gap, figures = against_best_other(values_of_runs(protocol, (STAR_PAPER, *RIVALS), n_bits, runs, "PR area"))
    return ([], figures) if gap is None else ([judged(gap)], f"PR area {figures} ({format_gap(gap)})")


@at_longest((STAR_PAPER, "ksh", *_UNSUPERVISED))
def supervised_above(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL and KSH are above the best unsupervised method."""
    values = values_of_runs(protocol, (STAR_PAPER, "ksh", *_UNSUPERVISED), n_bits, runs)
    means = means_of(values)
    weakest, best = min((STAR_PAPER, "ksh"), key=means.__getitem__), max(_UNSUPERVISED, key=means.__getitem__)
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


@at_longest(("bre", STAR_PAPER))
def bre_needs_length(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """With a third of the bits, BRE has a smaller share of its final lead over chance than *SHL has of its own."""
    third = min(protocol.lengths, key=lambda length: abs(length - n_bits / 3))
    shares: Runs = {}
    for method in ("bre", STAR_PAPER):
        few, all_bits = (values_of_runs(protocol, (method,), length, runs)[method] for length in (third, n_bits))
        leads = {run: all_bits[run] - _chance(protocol, run) for run in few if run in all_bits}
        shares[method] = {run: (few[run] - _chance(protocol, run)) / lead for run, lead in leads.items() if lead > 0}
    gap = paired(shares[STAR_PAPER], shares["bre"])
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
@at_longest((STAR_PAPER,))
def star_flat(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL loses at most 0.01 from P@10 to P@50."""
    losses = _losses(protocol, (STAR_PAPER,), n_bits, runs)
    gaps = {method: paired(dict.fromkeys(own, FLAT), own) for method, own in losses.items()}
    return _judged_losses(gaps, losses)


def _judged_losses(gaps: dict[str, Paired | None], losses: Runs) -> Judged:
    judgments = {method: judged(gap) for method, gap in gaps.items() if gap is not None}
    unclear = [title_of(method) for method, judgment in judgments.items() if judgment == NOT_CLEAR]
    figures = f"loss from P@10 to P@50: {format_means(means_of(losses), FLAT)}"
    return list(judgments.values()), figures + (f"; not clear: {joined(unclear)}" if unclear else "")


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


@at_longest((STAR_PAPER, *_OTHERS, "float"))
def only_two_useful(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """*SHL and KSH are above Euclidean search and above a random order of the database, the others are not."""
    values = values_of_runs(protocol, ("float", STAR_PAPER, *_OTHERS), n_bits, runs)
    floating = values.pop("float")
    chance = {run: _chance(protocol, run) for run in runs}
    bar = {run: max(floating[run], chance[run]) for run in runs}
    judgments = []
    for method, known in values.items():
        useful = method in (STAR_PAPER, "ksh")
        judgments.append(judged(require_paired(known, bar) if useful else require_paired(bar, known)))
    unclear = [method for method, judgment in zip(values, judgments, strict=True) if judgment == NOT_CLEAR]
    means = means_of({"float": floating} | values)
    figures = f"{format_means(means)}; random order {means_of({'': chance})['']:.3f}"
    return judgments, figures + (f"; not clear: {joined(map(title_of, unclear))}" if unclear else "")


@at_longest((STAR_PAPER, *RIVALS))
def more_of_the_query_class(protocol: ProtocolResults, n_bits: int, runs: list[int]) -> Judged:
    """Over all queries of the class that the paper shows, *SHL retrieves more of that class than the best other."""
    values = {
        method: protocol.values_of_class(method, n_bits, N_RETRIEVED, QUERY_CLASS) for method in (STAR_PAPER, *RIVALS)
    }
    gap, figures = against_best_other(
        {method: {run: own[run] for run in runs if run in own} for method, own in values.items()}
    )
    return ([], figures) if gap is None else ([judged(gap)], f"P@{N_RETRIEVED} {figures} ({format_gap(gap)})")


@at_lengths(of_a_range=True)
def transduction_helps_by_hinge(protocol: ProtocolResults, n_bits: int) -> ClaimedGap:
    """Transduction is ahead where both modes pick the codeword at the smallest hinge distance, as the paper does."""
    return _transduction(protocol, n_bits, before="accuracy, hinge", after="accuracy, transductive")


@at_lengths(of_a_range=True)
def transduction_helps_by_hamming(protocol: ProtocolResults, n_bits: int) -> ClaimedGap:
    """Transduction is ahead where both modes pick the codeword at the smallest Hamming distance, ties at random."""
    return _transduction(protocol, n_bits, before="accuracy, ties at random", after="accuracy, ties at random")


def _transduction(protocol: ProtocolResults, n_bits: int, *, before: str, after: str) -> ClaimedGap:
    rows = {
        "inductive": protocol.values(STAR_PAPER, n_bits, before),
        "transductive": protocol.values(_TRANSDUCTIVE, n_bits, after),
    }
    missing = [title_of(key) for key, runs in zip((STAR_PAPER, _TRANSDUCTIVE), rows.values(), strict=True) if not runs]
    gap = paired(rows["transductive"], rows["inductive"])
    return gap, format_means(means_of(shared_runs(rows))), missing


CLAIMS = (
    Claim(
        "*SHL is best, at every code length",
        "best at every length",
        best_at_every_length,
        "It learns from every label, which KSH with all labels does, too; at 5 bits classes that share a codeword "
        "cost it the lead in some runs.",
    ),
    Claim(
        "*SHL is strong at short lengths",
        "strong at short lengths",
        best_at_short_lengths,
        "One codeword per class needs few bits, but of ten codewords of 5 bits some are equal in most runs (23 of 30), "
        "and classes that share one cannot be told apart.",
    ),
    Claim(
        "*SHL has the largest area under precision over recall",
        "largest PR area",
        largest_area,
        "Rows of a class share one codeword, so recall rises at once; where classes are easy to separate, as in "
        "Pendigits, KSH with all labels does as well.",
    ),
    Claim(
        "On sets other than digits *SHL is significantly better",
        "significantly better",
        best_beyond_doubt,
        "An SVM per bit gets more out of gray pixels than a few hundred anchors do. On PASCAL07 much of the lead is "
        "the largest class: if all classes count the same, there is none.",
        datasets=_OTHER_THAN_DIGITS,
    ),
    Claim(
        "Supervised methods (*SHL, KSH) beat the unsupervised ones",
        "supervised above unsupervised",
        supervised_above,
        "Neighbors in pixels are of one class for digits and often not for objects; labels correct that.",
    ),
    Claim(
        "BRE is the exception: no better than the unsupervised ones",
        "BRE no better than unsupervised",
        bre_not_above,
        "It learns from few rows, the unsupervised methods from all; on photographs, where distances say little, "
        "labels put it ahead.",
    ),
    Claim(
        "BRE needs longer codes",
        "BRE needs longer codes",
        bre_needs_length,
        "Each of its bits is weak, where a bit of *SHL is a whole SVM.",
    ),
    Claim(
        "AGH is good among the unsupervised methods",
        "AGH good among unsupervised",
        agh_leads_unsupervised,
        "It follows the graph of neighbors, and neighbors in pixels have the same label for digits, but seldom for "
        "photographs.",
    ),
    Claim(
        "BRE and unsupervised methods degrade as s grows from 10 to 50",
        "BRE and unsupervised degrade with s",
        others_degrade,
        "Their codes follow distances, and farther neighbors are of other classes more often; on photographs even the "
        "first ten are little above chance, so there is little to lose.",
    ),
    Claim(
        "*SHL stays flat as s grows from 10 to 50",
        "*SHL flat in s",
        star_flat,
        "The nearest items all have the code of the predicted class, so the 50th is as good as the 10th.",
    ),
    Claim(
        "KSH gets slightly worse as s grows from 10 to 50",
        "KSH slightly worse with s",
        ksh_slightly_worse,
        "Its codes differ within a class (some 700 codes for ten classes on Pendigits, nearly one per picture on "
        "CIFAR-10), so farther items are a little more often wrong.",
    ),
    Claim(
        "2-AGH is flatter in s than 1-AGH on digits",
        "2-AGH flatter than 1-AGH",
        two_layers_flatter,
        "Its second layer takes the smoothest functions twice instead of less smooth ones.",
        datasets=_DIGITS,
    ),
    Claim(
        "Only *SHL and KSH are useful on sets other than digits",
        "only *SHL and KSH useful",
        only_two_useful,
        "On CIFAR-10 BRE ties with Euclidean search; on PASCAL07 every method beats it and chance, the unsupervised "
        "ones by .03 only.",
        datasets=_OTHER_THAN_DIGITS,
    ),
    Claim(
        ABOUT_PICTURES,
        "more pictures of the query's class",
        more_of_the_query_class,
        "On a single class *SHL differs from run to run by more than any other method does.",
        datasets=("cifar10",),
    ),
    Claim(
        "Transduction shows merit across a range of code lengths, by hinge distance",
        "transduction has merit by hinge distance",
        transduction_helps_by_hinge,
        "Transduction moves the codes of unlabeled rows onto codewords, so the margins that hinge distance reads are "
        "gone: both distances then agree. Letter, with fewer labels per class, gains all the same.",
        task="transductive",
    ),
    Claim(
        "Transduction shows merit across a range of code lengths, by Hamming distance",
        "transduction has merit by Hamming distance",
        transduction_helps_by_hamming,
        "Codes that lay between two codewords end on one of them. Hinge distance, which reads margins, had told these "
        "apart before, so on Vowel part of the gain is the decoding.",
        task="transductive",
    ),
)
