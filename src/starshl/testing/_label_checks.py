"""Checks that a hasher does with labels what its facts say."""

from __future__ import annotations

from functools import partial

import numpy as np

from ._expectations import Case, expect, expect_error, expect_same


def check_ignored_labels_change_nothing(case: Case) -> None:
    if case.facts.labels != "ignored":
        return
    n_rows = len(case.X)
    scores = case.make().fit(case.X).decision_function(case.X)
    shuffled = np.random.default_rng(0).integers(-1, 2, n_rows)
    for poison in (shuffled, np.full(n_rows, np.nan), np.full(n_rows, "poison", dtype=object), ["one label"]):
        expect_same(case.make().fit(case.X, poison).decision_function(case.X), scores, "scores with other labels")


def check_missing_labels_point_to_methods_that_need_none(case: Case) -> None:
    if not case.facts.needs_labels:
        return
    for nothing in (None, np.full(len(case.X), -1)):
        expect_error("use a method that needs no labels", partial(case.make().fit, case.X, nothing))


def check_some_labels_are_enough_where_the_facts_say_so(case: Case) -> None:
    if case.facts.labels == "ignored":
        return
    some = np.where(np.arange(len(case.X)) % 2, case.y, -1)
    if case.facts.labels == "required":
        expect_error("150 of 300 rows unlabeled", lambda: case.make().fit(case.X, some))
    else:
        n_codes = len(case.make().fit(case.X, some).encode(case.X))
        expect(n_codes == len(case.X), "rows without a label got no code.")


def check_labels_may_be_words(case: Case) -> None:
    if case.facts.labels == "ignored":
        return
    words = np.array([f"digit {label}" for label in case.y])
    numbered, worded = (case.make().fit(case.X, y).decision_function(case.X) for y in (case.y, words))
    expect_same(numbered, worded, "scores")
