"""The paper's claims on figures made by hand."""

import pytest

from starshl.reports import check_claims
from starshl.reports.results import Results

STAR = "*SHL, paper settings"
UNSUPERVISED = ("1-AGH", "2-AGH", "SPH", "LSH")


def as_in_the_paper(**changes):
    """P@10 and P@50 at 45 bits under which every claim about digits holds."""
    values = {
        STAR: (0.95, 0.949),
        "KSH": (0.90, 0.897),
        "BRE": (0.70, 0.60),
        "1-AGH": (0.80, 0.60),
        "2-AGH": (0.78, 0.70),
        "SPH": (0.60, 0.50),
        "LSH": (0.50, 0.40),
    } | {name.replace("_", "-"): value for name, value in changes.items()}
    return {(method, 45): [{"P@10": near, "P@50": far}] for method, (near, far) in values.items()}


def verdicts(results):
    return {verdict.claim: verdict for verdict in check_claims(results)}


def test_all_claims_about_digits_hold_on_figures_like_the_papers(made):
    found = verdicts(made("paper-usps", as_in_the_paper()))
    assert {verdict.word for claim, verdict in found.items() if verdict.protocol} == {"holds"}
    assert sum(verdict.holds is None for verdict in found.values()) == 2  # no other sets, no transduction


@pytest.mark.parametrize(
    ("changes", "refuted"),
    [
        ({"KSH": (0.96, 0.96)}, "*SHL is best, at every code length"),
        ({"KSH": (0.79, 0.79)}, "Supervised methods (*SHL, KSH) beat the unsupervised ones"),
        ({"BRE": (0.85, 0.60)}, "BRE is the exception: no better than the unsupervised ones"),
        ({"LSH": (0.50, 0.495)}, "BRE and unsupervised methods degrade as s grows from 10 to 50"),
        ({"KSH": (0.90, 0.88)}, "*SHL and KSH stay flat as s grows from 10 to 50"),
        ({"2_AGH": (0.78, 0.50)}, "2-AGH is flatter in s than 1-AGH on digits"),
    ],
)
def test_each_claim_fails_alone_when_its_figures_say_so(made, changes, refuted):
    found = verdicts(made("paper-usps", as_in_the_paper(**changes)))
    assert [claim for claim, verdict in found.items() if verdict.holds is False] == [refuted]
    assert found[refuted].figures


def test_one_length_at_which_another_wins_refutes_best_everywhere_and_is_named(made):
    values = as_in_the_paper()
    values |= {(STAR, 5): [{"P@10": 0.5}], ("KSH", 5): [{"P@10": 0.6}]}
    verdict = verdicts(made("paper-usps", values))["*SHL is best, at every code length"]
    assert verdict.holds is False
    assert "not at 5 bits" in verdict.figures
    assert "KSH 0.600" in verdict.figures


@pytest.mark.parametrize(("bar", "holds"), [(0.85, True), (0.75, False), (0.92, False)])
def test_useful_means_above_euclidean_search(made, bar, holds):
    values = as_in_the_paper() | {("float search", None): [{"P@10": bar}]}
    found = verdicts(made("paper-cifar10", values))
    assert found["Only *SHL and KSH are useful on sets other than digits"].holds is holds
    assert found["2-AGH is flatter in s than 1-AGH on digits"].holds is None


def test_transduction_must_gain_at_every_length(made):
    def values(after):
        return {
            (STAR, 4): [{"accuracy": 0.5, "accuracy, hinge": 0.52}],
            (STAR, 8): [{"accuracy": 0.7, "accuracy, hinge": 0.72}],
            ("*SHL transductive, paper settings", 4): [{"accuracy, transductive": 0.51}],
            ("*SHL transductive, paper settings", 8): [{"accuracy, transductive": after}],
        }

    claim = "Transductive *SHL beats inductive *SHL, at every code length"
    assert verdicts(made("transductive-vowel", values(0.72)))[claim].holds is True
    refuted = verdicts(made("transductive-vowel", values(0.70)))[claim]
    assert refuted.holds is False
    assert "not at 8 bits" in refuted.figures


def test_claims_without_figures_are_not_measured(made):
    assert {verdict.word for verdict in check_claims(Results())} == {"not measured"}
    lacking = verdicts(made("paper-usps", {(STAR, 45): [{"P@10": 0.9}]}))
    assert {verdict.word for verdict in lacking.values()} == {"not measured"}


def test_lists_longer_than_a_class_say_nothing_about_flatness(made):
    found = verdicts(made("paper-usps", as_in_the_paper(), smallest_class=30))
    verdict = found["*SHL and KSH stay flat as s grows from 10 to 50"]
    assert verdict.holds is None
    assert "30 training rows" in verdict.figures
