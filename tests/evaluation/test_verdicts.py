"""The verdict: one sentence on what the codes are good for, from the figures alone."""

from dataclasses import replace

import pytest

from starshl.evaluation import MethodResult
from starshl.evaluation.verdict import about_class_first, about_float_search, about_rivals, verdict


def figures(name="", different=None, precision=None, recall=None, first=0.5):
    return MethodResult(
        name=name,
        precision_at_10=precision,
        mean_average_precision=precision,
        pooled_area=None,
        recall_10_at_10=first,
        recall_10_at_100=recall,
        bytes_per_item=4,
        model_bytes=1000,
        total_bytes=9000,
        n_different_codes=different,
        fit_seconds=1.0,
        one_query_milliseconds=1.0,
        batch_milliseconds=1.0,
    )


@pytest.mark.parametrize(
    ("exact", "own", "alone", "expected"),
    [
        (
            figures(precision=0.83, recall=1.0),
            figures(different=4, precision=0.90, recall=0.12, first=0.02),
            figures(different=40, precision=0.88, recall=0.11),
            "These codes are good for finding items of the same class: 90.0% of the ten nearest codes have the class "
            "of the query, against 83.0% of the ten nearest vectors. They do not tell which items of a class are "
            "closest: 2,000 items have 4 different codes, and of the ten nearest vectors, 2% are among the ten "
            "nearest codes and 12% among the 100 nearest. "
            "Add items with their labels: coded from vectors alone, they reach 88.0%.",
        ),
        (
            figures(recall=1.0),
            figures(different=1900, recall=0.91, first=0.8),
            None,
            "These codes are good for finding the nearest vectors: of the ten nearest vectors, 80% are among the ten "
            "nearest codes and 91% among the 100 nearest. 2,000 items have 1,900 different codes.",
        ),
        (
            figures(precision=0.83, recall=1.0),
            figures(different=1900, precision=0.82, recall=0.91, first=0.17),
            None,
            "These codes are good for finding items of the same class and 100 candidates that vectors put in order: "
            "82.0% of the ten nearest codes have the class of the query, against 83.0% of the ten nearest vectors, and "
            "of the ten nearest vectors, 17% are among the ten nearest codes and 91% among the 100 nearest. 2,000 "
            "items have 1,900 different codes.",
        ),
        (
            figures(precision=0.83, recall=1.0),
            figures(different=700, precision=0.60, recall=0.40),
            None,
            "These codes lose much of the vectors: 60.0% of the ten nearest codes have the class of the query, against "
            "83.0% of the ten nearest vectors, and of the ten nearest vectors, 50% are among the ten nearest codes and "
            "40% among the 100 nearest. Use more bits or another method. 2,000 items have 700 different codes.",
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
    assert told.startswith("These codes keep most neighbors in a list of 100, but 540 items are few to judge by: of")
    own = figures(different=500, precision=0.9, recall=0.97)
    told = verdict(figures(precision=0.9, recall=1.0), own, None, 540, 60)
    assert told.startswith("These codes are good for finding items of the same class: 90.0%")
    assert told.endswith("97% among the 100 nearest. 540 items have 500 different codes.")


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
            "If the nearest vectors are all you want, PQ finds 50% of them in its first ten, 97% in its first 100, "
            "with 84.0% of the first ten in the class of the query, in no more bytes per item.",
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
        "They keep only part of the neighbors: of the ten nearest vectors, 50% are among the ten nearest codes and 73% "
        "among the 100 nearest, and 2,700 items have 1,464 different codes."
    )


@pytest.mark.parametrize(
    ("n_items", "milliseconds", "expected"),
    [
        (15_000, 0.43, "Float search is enough for 15,000 items: over all of them it takes 0.43 ms per query here."),
        (900_000, 9.99, "Float search is enough for 900,000 items: over all of them it takes 10 ms per query here."),
        (1_000_000, 10.0, "Float search over all 1,000,000 items takes 10 ms per query here."),
    ],
)
def test_float_search_is_said_to_be_enough_if_it_takes_less_than_ten_milliseconds(n_items, milliseconds, expected):
    assert about_float_search(n_items, milliseconds) == expected


def test_the_verdict_names_what_a_classifier_reaches_without_codes():
    told = about_class_first(figures("linear classifier", precision=0.953, recall=0.85))
    assert told == "A linear classifier, then float search within its class, reaches 95.3%."
    assert about_class_first(figures("linear classifier", recall=0.85)) == about_class_first(None) == ""
