"""Whole lists: items of one rule for all methods, queries that keep their scores, and how the page tells of them."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from starshl import StarRidge
from starshl.data import datasets
from starshl.hashers.baselines import LSHash
from starshl.reproduction import protocol, run, run_float_search, score, split_data
from starshl.reproduction.runner import label_codes
from starshl.reproduction.whole_lists import LABEL_COLUMN, describe_lists, lists_in_short


@pytest.fixture(scope="module")
def data():
    digits = datasets.get("digits")
    small = protocol("lists-digits").reduced(n_train=300, n_query=100, n_runs=1)
    return split_data(digits, small.split(digits, 0))


def exact(scores, same):
    """Average precision by sorting, which is right where no scores are equal."""
    return np.mean([average_precision_score(*pair) for pair in zip(same, scores, strict=True) if pair[0].any()])


def test_a_hasher_with_probabilities_is_scored_in_their_order(data):
    scores = score(run(lambda n_bits, seed: StarRidge(n_bits, random_state=seed), data, "starridge", 16))
    hasher = StarRidge(16, random_state=data.split.seed("starridge")).fit(data.X_train, data.y_train)
    said = hasher.predict_proba(data.X_query)
    items = hasher.words.posteriors_of(hasher.encode_database(data.X_database))
    same = data.y_database == data.y_query[:, None]
    real = scores["lists"]["real"]
    assert real["mAP"] == pytest.approx(exact(said @ items.T, same), abs=0.01)  # equal words have equal scores
    same = data.y_train == data.y_query[:, None]
    column = said[:, np.searchsorted(hasher.classes_, data.y_train)]
    expected = np.mean([same[row][column[row] == column[row].max()].mean() for row in range(len(same))])
    assert scores["lists"]["labeled, real"]["P@10"] == pytest.approx(expected, abs=1e-6)


def test_a_label_has_its_codeword_or_the_majority_of_its_rows(data):
    ridge = StarRidge(16, random_state=0).fit(data.X_train, data.y_train)
    of_labels = label_codes(ridge, data.X_train, data.y_train)
    assert np.array_equal(of_labels.packed, ridge.encode_database(data.X_train, data.y_train).packed)
    lsh = LSHash(16, random_state=0).fit(data.X_train)
    signs = lsh.encode(data.X_train).to_signs()
    majority = np.where(np.sum(signs[data.y_train == 3], axis=0, dtype=int) >= 0, 1, -1)
    assert (label_codes(lsh, data.X_train, data.y_train).to_signs()[data.y_train == 3] == majority).all()


def test_float_search_ranks_all_items(data):
    scores = score(run_float_search(data, "float", n_neighbors=len(data.X_database)))
    distances = ((data.X_query[:, None] - data.X_database) ** 2).sum(axis=2)
    same = data.y_database == data.y_query[:, None]
    assert scores["mean_average_precision"] == pytest.approx(exact(-distances, same), abs=1e-3)


def test_the_label_column_stands_first_where_items_carry_labels(made):
    figures = {"P@10": 0.9, "mAP": 0.8, "PR area": 0.7}
    values = {
        f"{name}{kind}": value + len(kind) / 1000
        for name, value in figures.items()
        for kind in ("", ", real", ", labeled", ", labeled, real")
    }
    results = made("lists-usps", {("starridge", 32): [values] * 3, ("ksh", 32): [figures] * 3})
    section = lists_in_short(results)
    vectors, _, labeled, _ = (block for block in section.blocks if hasattr(block, "rows"))
    assert vectors.rows[:2] == (("StarRidge", ".906 .806 .706"), ("KSH", ".900 .800 .700"))
    assert vectors.strong == {(0, 1)}
    assert vectors.rows[-1] == ("number of runs", "3")
    assert labeled.rows[0] == (LABEL_COLUMN, ".915 .815 .715")
    [sentence] = describe_lists(results)
    assert "on 1 data set, means over 3 runs, the first is by P@10 StarRidge on 1; by mAP" in sentence
