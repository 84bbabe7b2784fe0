"""The paper's claims on figures made by hand."""

import pytest

from starshl.paper import check_claims
from starshl.reports.results import Results

STAR = "starshl-paper"
UNSUPERVISED = ("1-agh", "2-agh", "sph", "lsh")


def as_in_the_paper(bits=(45,), n_runs=1, **changes):
    """P@10 and P@50 under which every claim about digits holds."""
    values = {
        STAR: (0.95, 0.949),
        "ksh": (0.90, 0.897),
        "ksh-all": (0.92, 0.917),
        "bre": (0.70, 0.60),
        "1-agh": (0.80, 0.60),
        "2-agh": (0.78, 0.70),
        "sph": (0.60, 0.50),
        "lsh": (0.50, 0.40),
    } | {name.replace("_", "-"): value for name, value in changes.items()}
    return {
        (method, n_bits): [{"P@10": near, "P@50": far}] * n_runs
        for method, (near, far) in values.items()
        for n_bits in bits
    }


def verdicts(results):
    return {verdict.claim: verdict for verdict in check_claims(results)}


def test_all_claims_about_digits_hold_on_figures_like_the_papers(made):
    found = verdicts(made("paper-usps", as_in_the_paper(bits=range(5, 50, 5), n_runs=5)))
    assert {verdict.word for verdict in found.values() if verdict.protocol} == {"holds"}
    assert sum(verdict.holds is None for verdict in found.values()) == 2  # no other sets, no transduction


def test_a_claim_about_every_length_holds_only_so_far_if_lengths_or_runs_are_missing(made):
    verdict = verdicts(made("paper-usps", as_in_the_paper(bits=(5, 15, 45))))["*SHL is best, at every code length"]
    assert verdict.word == "holds so far"
    assert verdict.figures.startswith("(3 of 9 lengths, 1 run)")
    few_runs = verdicts(made("paper-usps", as_in_the_paper(bits=range(5, 50, 5), n_runs=3)))
    assert few_runs["*SHL is best, at every code length"].word == "holds so far"


def test_a_missing_rival_is_named_and_keeps_a_claim_from_holding(made):
    values = as_in_the_paper(bits=range(5, 50, 5), n_runs=5)
    found = verdicts(made("paper-usps", {place: runs for place, runs in values.items() if place[0] != "ksh"}))
    assert found["*SHL is best, at every code length"].word == "holds so far"
    assert "missing: KSH." in found["*SHL is best, at every code length"].figures
    verdict = found["Supervised methods (*SHL, KSH) beat the unsupervised ones"]
    assert (verdict.word, verdict.figures) == ("not measured", "missing: KSH")


def test_an_interval_that_includes_zero_is_not_clear(made):
    values = as_in_the_paper(n_runs=3)
    values["ksh", 45] = [{"P@10": value, "P@50": value} for value in (0.90, 0.94, 1.00)]
    verdict = verdicts(made("paper-usps", values))["*SHL is best, at every code length"]
    assert verdict.word == "not clear"
    assert "not clear at 45 bits" in verdict.figures
    assert "interval -" in verdict.figures


def test_claims_compare_only_the_runs_that_all_methods_share(made):
    values = as_in_the_paper(n_runs=2)
    values[STAR, 45] = [{"P@10": 0.95, "P@50": 0.95}, {"P@10": 0.1, "P@50": 0.1}]
    values["ksh", 45] = values["ksh", 45][:1]
    verdict = verdicts(made("paper-usps", values))["*SHL is best, at every code length"]
    assert verdict.word == "holds so far"
    assert "1 run)" in verdict.figures


def test_figures_that_would_look_equal_get_a_fourth_digit(made):
    verdict = verdicts(made("paper-usps", as_in_the_paper(ksh=(0.9502, 0.95))))["*SHL is best, at every code length"]
    assert "0.9500, best other KSH 0.9502" in verdict.figures


@pytest.mark.parametrize(
    ("changes", "refuted"),
    [
        ({"ksh": (0.96, 0.96)}, "*SHL is best, at every code length"),
        ({"ksh_all": (0.96, 0.96)}, "*SHL is best, at every code length"),
        ({"ksh": (0.79, 0.79)}, "Supervised methods (*SHL, KSH) beat the unsupervised ones"),
        ({"bre": (0.85, 0.60)}, "BRE is the exception: no better than the unsupervised ones"),
        ({"lsh": (0.50, 0.495)}, "BRE and unsupervised methods degrade as s grows from 10 to 50"),
        ({"ksh": (0.90, 0.88)}, "*SHL and KSH stay flat as s grows from 10 to 50"),
        ({"2_agh": (0.78, 0.50)}, "2-AGH is flatter in s than 1-AGH on digits"),
    ],
)
def test_each_claim_fails_alone_when_its_figures_say_so(made, changes, refuted):
    found = verdicts(made("paper-usps", as_in_the_paper(**changes)))
    assert [claim for claim, verdict in found.items() if verdict.holds is False] == [refuted]
    assert found[refuted].figures


def test_one_length_at_which_another_wins_refutes_best_everywhere_and_is_named(made):
    values = as_in_the_paper()
    values |= {(STAR, 5): [{"P@10": 0.5}], ("ksh", 5): [{"P@10": 0.6}]}
    verdict = verdicts(made("paper-usps", values))["*SHL is best, at every code length"]
    assert verdict.holds is False
    assert "not at 5 bits" in verdict.figures
    assert "KSH 0.600" in verdict.figures


@pytest.mark.parametrize(("bar", "holds"), [(0.85, True), (0.75, False), (0.92, False)])
def test_useful_means_above_euclidean_search(made, bar, holds):
    values = as_in_the_paper() | {("float", None): [{"P@10": bar}]}
    found = verdicts(made("paper-cifar10", values))
    assert found["Only *SHL and KSH are useful on sets other than digits"].holds is holds
    assert found["2-AGH is flatter in s than 1-AGH on digits"].holds is None


def test_transduction_must_gain_at_every_length(made):
    def values(after):
        return {
            (STAR, 4): [{"accuracy, ties at random": 0.5, "accuracy": 0.515, "accuracy, hinge": 0.52}],
            (STAR, 8): [{"accuracy, ties at random": 0.7, "accuracy": 0.73, "accuracy, hinge": 0.72}],
            ("starshl-paper-transductive", 4): [{"accuracy, transductive": 0.51}],
            ("starshl-paper-transductive", 8): [{"accuracy, transductive": after}],
        }

    claim = "Transductive *SHL beats inductive *SHL, at every code length"
    verdict = verdicts(made("transductive-vowel", values(0.72)))[claim]
    assert verdict.word == "holds so far"
    assert "ties at random 0.700, transductive 0.720, ties by hinge 0.730, hinge 0.720" in verdict.figures
    refuted = verdicts(made("transductive-vowel", values(0.69)))[claim]
    assert refuted.holds is False
    assert "not at 8 bits" in refuted.figures


def test_claims_without_figures_are_not_measured(made):
    assert {verdict.word for verdict in check_claims(Results())} == {"not measured"}
    lacking = verdicts(made("paper-usps", {(STAR, 45): [{"P@10": 0.9}]}))
    assert {verdict.word for verdict in lacking.values()} == {"not measured"}


def test_methods_without_codes_leave_transduction_not_measured(made):
    found = verdicts(made("transductive-vowel", {("svc", None): [{"accuracy": 0.5}]}))
    verdict = found["Transductive *SHL beats inductive *SHL, at every code length"]
    assert verdict.word == "not measured"
    assert verdict.figures.startswith("missing: *SHL, paper settings")


def test_lists_longer_than_a_class_say_nothing_about_flatness(made):
    found = verdicts(made("paper-usps", as_in_the_paper(), smallest_class=30))
    verdict = found["*SHL and KSH stay flat as s grows from 10 to 50"]
    assert verdict.holds is None
    assert "30 training rows" in verdict.figures
