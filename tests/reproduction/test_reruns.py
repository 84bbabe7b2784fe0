"""Runs that were done again: which scores differ in a printed digit."""

import pytest

from starshl.reproduction import Record, RunKey, RunSummary, compare_rerun

KEY = RunKey("paper-usps", 0, "lsh", 16, seed=7, split_digest="...")


def summary(scores, status="ok", **record):
    return RunSummary(Record(KEY, "usps", status, **record), {}, scores)


@pytest.mark.parametrize(
    ("before", "now", "names"),
    [
        ({"precision_at": {10: 0.9, 50: 0.8}}, {"precision_at": {10: 0.9004, 50: 0.8006}}, ["precision_at 50"]),
        ({"curve": {"recall": [0.1, 0.2]}}, {"curve": {"recall": [0.1, 0.3]}}, ["curve recall 1"]),
        ({"pr_area": 0.5}, {"pr_area": None}, ["pr_area"]),
        ({"pr_area": None}, {"pr_area": 0.5}, ["pr_area"]),
        ({"pr_area": 0.5}, {}, ["pr_area"]),
        ({"curve": {"recall": [0.1, 0.2]}}, {"curve": {"recall": [0.1]}}, ["curve recall 1"]),
        ({"occupancy": {"n_distinct": 700}}, {"occupancy": {"n_distinct": 701}}, []),
        ({}, {"a new score": 0.5}, []),
        ({"pr_area": None}, {"pr_area": None}, []),
    ],
)
def test_scores_that_differ_in_the_third_digit_are_named(before, now, names):
    found = compare_rerun(summary(before), summary(now))
    assert list(found.differences) == names
    assert found.equal is not bool(names)


def test_a_run_that_fails_now_is_different():
    found = compare_rerun(summary({"pr_area": 0.5}), summary({}, "failed", message="no memory"))
    assert found.differences == {"status": ("ok", "failed")}


def test_versions_that_changed_are_told():
    before, now = ({"numpy": "2.0", "scipy": "1.1"}, {"numpy": "2.1", "scipy": "1.1"})
    found = compare_rerun(summary({}, versions=before), summary({}, versions=now))
    assert found.versions == {"numpy": ("2.0", "2.1")}
    assert found.equal
