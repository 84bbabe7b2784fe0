"""The verdict: one sentence on what the codes are good for, from the figures alone."""

from dataclasses import replace

import pytest

from starshl.evaluation import MethodResult
from starshl.evaluation.verdict import about_rivals, verdict


def figures(name="", different=None, precision=None, recall=None):
    return MethodResult(name, precision, recall, 4, different, 1000, 1.0, 1.0)


@pytest.mark.parametrize(
    ("exact", "own", "alone", "expected"),
    [
        (
            figures(precision=0.83, recall=1.0),
            figures(different=4, precision=0.90, recall=0.12),
            figures(different=40, precision=0.88, recall=0.11),
            "These codes are good for finding items of the same class: 90.0% of the ten nearest codes have the class "
            "of the query, against 83.0% of the ten nearest vectors. They do not tell which items of a class are "
            "closest: 2,000 items have 4 different codes, and only 12% of the ten nearest vectors are among the 100 "
            "nearest codes. "
            "Add items with their labels: coded from vectors alone, they reach 88.0%.",
        ),
        (
            figures(recall=1.0),
            figures(different=1900, recall=0.91),
            None,
            "These codes are good for finding the nearest vectors: 91% of the ten nearest vectors are among the 100 "
            "nearest codes. 2,000 items have 1,900 different codes.",
        ),
        (
            figures(precision=0.83, recall=1.0),
            figures(different=1900, precision=0.82, recall=0.91),
            None,
            "These codes are good for finding items of the same class and the nearest vectors: 82.0% of the ten "
            "nearest codes have the class of the query, against 83.0% of the ten nearest vectors, and 91% of the ten "
            "nearest vectors are among the 100 nearest codes. 2,000 items have 1,900 different codes.",
        ),
        (
            figures(precision=0.83, recall=1.0),
            figures(different=700, precision=0.60, recall=0.40),
            None,
            "These codes lose much of the vectors: 60.0% of the ten nearest codes have the class of the query, against "
            "83.0% of the ten nearest vectors, and 40% of the ten nearest vectors are among the 100 nearest codes. Use "
            "more bits or another method. 2,000 items have 700 different codes.",
        ),
        (
            figures(),
            figures(different=7),
            None,
            "There are too few rows to judge these codes: 2,000 items have 7 different",
        ),
    ],
)
def test_the_verdict_says_what_codes_are_good_for_and_what_they_lose(exact, own, alone, expected):
    assert verdict(exact, own, alone, 2000, 50).startswith(expected)


def test_few_items_do_not_prove_that_codes_keep_neighbors():
    own = figures(different=500, recall=0.97)
    told = verdict(figures(recall=1.0), own, None, 540, 0)
    assert told.startswith("These codes keep most neighbors, but 540 items are few to judge by: 97% of the ten nearest")
    own = figures(different=500, precision=0.9, recall=0.97)
    told = verdict(figures(precision=0.9, recall=1.0), own, None, 540, 60)
    assert told.startswith("These codes are good for finding items of the same class: 90.0%")
    assert told.endswith("are among the 100 nearest codes. 540 items have 500 different codes.")


@pytest.mark.parametrize(("n_queries", "expected"), [(50, ""), (11, "Only 11 queries have"), (1, "Only 1 query has")])
def test_the_verdict_says_if_it_rests_on_few_labels(n_queries, expected):
    own = figures(different=4, precision=0.9, recall=0.1)
    told = verdict(figures(precision=0.8, recall=1.0), own, None, 2000, n_queries)
    assert expected in told
    assert ("rough" in told) == (n_queries < 50)


@pytest.mark.parametrize(
    ("rival", "expected"),
    [
        (
            figures("PQ", precision=0.84, recall=0.97),
            "If the nearest vectors are all you want, PQ finds 97% of them, with 84.0% of the first ten in the class "
            "of the query, in as many bytes per item.",
        ),
        (figures("PQ", recall=0.88), ""),  # hardly more
        (replace(figures("PQ", recall=0.97), bytes_per_item=8), ""),
        (figures("PQ"), ""),
    ],
)
def test_the_verdict_names_a_method_that_finds_many_more_neighbors_in_as_many_bytes(rival, expected):
    assert about_rivals(figures("own", precision=0.9, recall=0.85), [rival, figures("other", recall=0.2)]) == expected


def test_codes_that_keep_half_of_the_neighbors_are_not_said_to_keep_none():
    own = figures(different=1464, precision=0.89, recall=0.73)
    told = verdict(figures(precision=0.83, recall=1.0), own, None, 2700, 300)
    assert told.endswith(
        "They keep only part of the neighbors: 73% of the ten nearest vectors are among the 100 nearest codes, and "
        "2,700 items have 1,464 different codes."
    )
