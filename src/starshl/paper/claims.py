"""The claims of the paper's experiments section, each with its check and what we take for the cause of the outcome.

Claims are about *SHL with the paper's settings. "Flat" is a loss of at most 0.01 from P@10 to P@50; "useful" is a P@10
above Euclidean search of the rows themselves and above a random order of the database. "Best" is also judged against
KSH with all labels, "short" is up to 10 bits, "significantly" needs an interval and, with unequal classes, must hold if
all classes count the same; "needs longer codes" is a smaller share of the final lead over chance with a third of the
bits, and "across a range" is at more than half of the lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..reports.results import Results
from . import claim_checks as checks
from .claim_checks import CLAIMED_ENTRY, FLAT
from .judging import DOES_NOT_HOLD, HOLDS, HOLDS_SO_FAR, NOT_MEASURED, Check

__all__ = ["ABOUT_PICTURES", "CLAIMED_ENTRY", "CLAIMS", "FLAT", "Claim", "Verdict", "check_claims"]

ABOUT_PICTURES = "*SHL retrieves more pictures of the query's class (automobile) than the others"

_DIGITS = ("pendigits", "usps", "mnist", "digits")
_OTHER_THAN_DIGITS = ("cifar10", "pascal07")


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper, the protocols that it is about, and why it turned out as it did."""

    text: str
    short: str
    check: Check
    cause: str
    task: str = "retrieval"
    datasets: tuple[str, ...] | None = None


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


def check_claims(results: Results) -> list[Verdict]:
    """Return a verdict for every claim on every protocol it is about; a claim without runs appears once."""
    verdicts = []
    for claim in CLAIMS:
        about = [p for p in results.of_task(claim.task) if claim.datasets is None or p.dataset in claim.datasets]
        verdicts += [Verdict(claim.text, protocol.name, protocol.dataset, *claim.check(protocol)) for protocol in about]
        if not about:
            verdicts.append(Verdict(claim.text, "", "", NOT_MEASURED, "no runs of any protocol it is about"))
    return verdicts


CLAIMS = (
    Claim(
        "*SHL is best, at every code length",
        "best at every length",
        checks.best_at_every_length,
        "It learns from every label, which KSH with all labels does, too; at 5 bits classes that share a codeword "
        "cost it the lead in some runs.",
    ),
    Claim(
        "*SHL is strong at short lengths",
        "strong at short lengths",
        checks.best_at_short_lengths,
        "One codeword per class needs few bits, but of ten codewords of 5 bits some are equal in most runs (23 of 30), "
        "and classes that share one cannot be told apart.",
    ),
    Claim(
        "*SHL has the largest area under precision over recall",
        "largest PR area",
        checks.largest_area,
        "Rows of a class share one codeword, so recall rises at once; where classes are easy to separate, as in "
        "Pendigits, KSH with all labels does as well.",
    ),
    Claim(
        "On sets other than digits *SHL is significantly better",
        "significantly better",
        checks.best_beyond_doubt,
        "An SVM per bit gets more out of gray pixels than a few hundred anchors do. On PASCAL07 much of the lead is "
        "the largest class: if all classes count the same, there is none.",
        datasets=_OTHER_THAN_DIGITS,
    ),
    Claim(
        "Supervised methods (*SHL, KSH) beat the unsupervised ones",
        "supervised above unsupervised",
        checks.supervised_above,
        "Neighbors in pixels are of one class for digits and often not for objects; labels correct that.",
    ),
    Claim(
        "BRE is the exception: no better than the unsupervised ones",
        "BRE no better than unsupervised",
        checks.bre_not_above,
        "It learns from few rows, the unsupervised methods from all; on photographs, where distances say little, "
        "labels put it ahead.",
    ),
    Claim(
        "BRE needs longer codes",
        "BRE needs longer codes",
        checks.bre_needs_length,
        "Each of its bits is weak, where a bit of *SHL is a whole SVM.",
    ),
    Claim(
        "AGH is good among the unsupervised methods",
        "AGH good among unsupervised",
        checks.agh_leads_unsupervised,
        "It follows the graph of neighbors, and neighbors in pixels have the same label for digits, but seldom for "
        "photographs.",
    ),
    Claim(
        "BRE and unsupervised methods degrade as s grows from 10 to 50",
        "BRE and unsupervised degrade with s",
        checks.others_degrade,
        "Their codes follow distances, and farther neighbors are of other classes more often; on photographs even the "
        "first ten are little above chance, so there is little to lose.",
    ),
    Claim(
        "*SHL stays flat as s grows from 10 to 50",
        "*SHL flat in s",
        checks.star_flat,
        "The nearest items all have the code of the predicted class, so the 50th is as good as the 10th.",
    ),
    Claim(
        "KSH gets slightly worse as s grows from 10 to 50",
        "KSH slightly worse with s",
        checks.ksh_slightly_worse,
        "Its codes differ within a class (some 700 codes for ten classes on Pendigits, nearly one per picture on "
        "CIFAR-10), so farther items are a little more often wrong.",
    ),
    Claim(
        "2-AGH is flatter in s than 1-AGH on digits",
        "2-AGH flatter than 1-AGH",
        checks.two_layers_flatter,
        "Its second layer takes the smoothest functions twice instead of less smooth ones.",
        datasets=_DIGITS,
    ),
    Claim(
        "Only *SHL and KSH are useful on sets other than digits",
        "only *SHL and KSH useful",
        checks.only_two_useful,
        "On CIFAR-10 BRE ties with Euclidean search; on PASCAL07 every method beats it and chance, the unsupervised "
        "ones by .03 only.",
        datasets=_OTHER_THAN_DIGITS,
    ),
    Claim(
        ABOUT_PICTURES,
        "more pictures of the query's class",
        checks.more_of_the_query_class,
        "On a single class *SHL differs from run to run by more than any other method does.",
        datasets=("cifar10",),
    ),
    Claim(
        "Transduction shows merit across a range of code lengths, by hinge distance",
        "transduction has merit by hinge distance",
        checks.transduction_helps_by_hinge,
        "Transduction moves the codes of unlabeled rows onto codewords, so the margins that hinge distance reads are "
        "gone: both distances then agree. Letter, with fewer labels per class, gains all the same.",
        task="transductive",
    ),
    Claim(
        "Transduction shows merit across a range of code lengths, by Hamming distance",
        "transduction has merit by Hamming distance",
        checks.transduction_helps_by_hamming,
        "Codes that lay between two codewords end on one of them. Hinge distance, which reads margins, had told these "
        "apart before, so on Vowel part of the gain is the decoding.",
        task="transductive",
    ),
)
