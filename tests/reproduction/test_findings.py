"""What the report says in words."""

import numpy as np

from starshl.evaluation.reports.statistics import paired
from starshl.reproduction.findings import describe_ranking, transduction_findings
from starshl.reproduction.retrieval import retrieval_findings


def values_of(star, other, n=3):
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=1e-4, size=(2, n))
    return {
        ("starshl-paper", 45): [{"P@10": star + e} for e in noise[0]],
        ("hc-sdh", 45): [{"P@10": other + e} for e in noise[1]],
    }


def test_two_runs_have_no_interval_and_tell_their_differences():
    found = paired({0: 0.9, 1: 0.9}, {0: 0.8, 1: 0.8})
    assert (found.low, found.clear) == (None, False)
    [told, _] = describe_ranking("Here", "P@10", {"LSH": {0: 0.9, 1: 0.9}, "*SHL": {0: 0.8, 1: 0.7}})
    assert "2 paired runs, too few for an interval: +0.100, +0.200" in told


def test_methods_that_are_equal_in_every_run_are_called_equal():
    same = {0: 0.5, 1: 0.6, 2: 0.7}
    assert describe_ranking("Here", "accuracy", {"StarRidge": same, "SVC": dict(same)}) == [
        "Here StarRidge is best with accuracy 0.600, equal to SVC in all 3 runs."
    ]


def test_only_shared_runs_are_ranked():
    values = {"LSH": {0: 0.5, 1: 0.9}, "KSH": {0: 0.6}}
    assert describe_ranking("Here", "P@10", values)[0].startswith(
        "Here KSH is best with P@10 0.600, 0.100 ahead of LSH"
    )
    assert describe_ranking("Here", "P@10", {"LSH": {1: 0.9}, "KSH": {0: 0.6}}) == [
        "Here all methods have no run in common, so none is called best."
    ]


def test_rows_of_star_shl_lose_to_others_only():
    told = describe_ranking(
        "Here", "P@10", {"*SHL, a": {0: 0.9}, "LSH": {0: 0.7}, "*SHL, b": {0: 0.8}, "*SHL, c": {0: 0.6}}
    )
    assert "*SHL, a is best with P@10 0.900, 0.200 ahead of LSH" in told[0]
    assert [sentence.split(" (")[0] for sentence in told[1:]] == [
        "Here *SHL, c does not win: place 2 of 2, other rows of *SHL not counted, 0.100 behind LSH"
    ]


def test_findings_say_by_how_much_star_shl_does_not_win(made):
    [found] = made("paper-usps", values_of(0.90, 0.95)).protocols
    text = " ".join(retrieval_findings(found))
    assert "HC-SDH, all rows is best with P@10 0.950, 0.050 ahead of *SHL, paper settings" in text
    assert "*SHL, paper settings does not win: place 2 of 2, 0.050 behind HC-SDH" in text
    assert "3 paired runs, clear" in text
    assert "Neither setting of *SHL is first at 1 of 1 lengths" in text
    assert "At 45 bits *SHL, defaults was not run." in text


def test_findings_call_a_tie_not_clear(made):
    [found] = made("paper-usps", values_of(0.90, 0.90)).protocols
    assert "not clear" in " ".join(retrieval_findings(found))


def test_findings_do_not_praise_a_winner_without_rivals(made):
    values = {("starshl-paper", 45): [{"P@10": 0.9}], ("starshl", 45): [{"P@10": 0.8}]}
    [found] = made("paper-usps", values).protocols
    assert not any("first at every length" in sentence for sentence in retrieval_findings(found))


def test_a_contest_of_one_has_no_winner():
    assert describe_ranking("Here", "P@10", {"LSH": {0: 0.5}, "KSH": {}}) == []


def test_transduction_is_compared_with_induction_decoded_alike():
    [sentence] = transduction_findings(15, {0: 0.70, 1: 0.71}, {0: 0.75, 1: 0.76}, "hinge", "paper settings")
    assert "both decoded by hinge distance, transduction changes the accuracy by +0.050" in sentence
    assert transduction_findings(15, {}, {0: 0.75}, "hinge", "paper settings") == []
