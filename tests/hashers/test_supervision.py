import warnings

import numpy as np
import pytest

from starshl import StarRidge, StarSHL
from starshl.exceptions import InputWarning
from starshl.hashers import Pairs, pairs_from_labels, triplets_from_labels
from starshl.hashers.baselines import SDH, LSHash
from starshl.hashers.supervision import check_pairs, check_triplets, pairs_or_labels, require_labels, triplets_or_labels

LABELS = np.array([2, 0, 1, 0, 2, 2, -1, 1, 0])


def test_pairs_tell_equal_labels_from_different_ones():
    first, second, similarity = pairs_from_labels(LABELS, 500, balance=0.3, random_state=0)
    assert similarity.sum() == 150 - 350
    assert np.array_equal(LABELS[first] == LABELS[second], similarity == 1)
    assert not (first == second).any()
    assert 6 not in first
    assert 6 not in second


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_pairs_are_uniform_over_all_ordered_pairs_of_their_kind(balance):
    n_pairs = 60_000
    first, second, _ = pairs_from_labels(LABELS, n_pairs, balance=balance, random_state=1)
    counts = np.zeros((9, 9))
    np.add.at(counts, (first, second), 1)
    known = LABELS >= 0
    possible = known[:, None] & known & ~np.eye(9, dtype=bool)
    possible &= (LABELS[:, None] == LABELS) == bool(balance)
    expected = n_pairs / possible.sum()
    assert counts[~possible].sum() == 0
    # 5 standard errors of a binomial count, for at most 42 cells.
    assert np.abs(counts[possible] - expected).max() < 5 * np.sqrt(expected)


def test_pairs_come_from_labels_of_any_kind():
    first, second, similarity = pairs_from_labels(["cat", "dog", "cat"], 10, random_state=0)
    assert set(zip(first[similarity == 1], second[similarity == 1], strict=True)) <= {(0, 2), (2, 0)}


@pytest.mark.parametrize(
    ("y", "arguments", "message"),
    [
        ([0, 1, 2], {}, "no similar pair"),
        ([4, 4, 4], {}, "no dissimilar pair"),
        ([0, 0, 1], {"balance": 1.5}, "balance is 1.5"),
        ([0, 0, 1], {"n_pairs": 0}, "n_pairs is 0"),
    ],
)
def test_pairs_that_cannot_be_drawn_are_refused(y, arguments, message):
    with pytest.raises(ValueError, match=message):
        pairs_from_labels(y, **{"n_pairs": 4, **arguments})


def test_triplets_are_the_nearest_of_both_kinds_by_brute_force():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(-1, 3, 40)
    found = triplets_from_labels(X, y, k_pos=2, k_neg=3)
    expected = []
    for anchor in np.flatnonzero(y >= 0):
        near = sorted(range(40), key=lambda j, i=anchor: np.sum((X[i] - X[j]) ** 2))
        similar = [j for j in near if y[j] == y[anchor] and j != anchor][:2]
        dissimilar = [j for j in near if y[j] not in (-1, y[anchor])][:3]
        expected += [[anchor, p, n] for p in similar for n in dissimilar]
    assert found.tolist() == expected


def test_triplets_shrink_with_small_classes():
    found = triplets_from_labels(np.arange(4.0)[:, None], [0, 0, 1, 2], k_pos=9, k_neg=9)
    assert found.tolist() == [[0, 1, 2], [0, 1, 3], [1, 0, 2], [1, 0, 3]]


def test_triplets_without_two_rows_of_a_class_are_refused():
    with pytest.raises(ValueError, match="no triplet"):
        triplets_from_labels(np.eye(3), [0, 1, 2])


def test_pairs_of_similarity_zero_are_left_out():
    pairs = check_pairs(np.array([[0, 1, 1], [1, 2, 0], [2, 0, -1]]), 3)
    assert [column.tolist() for column in pairs] == [[0, 2], [1, 0], [1, -1]]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (([0], [1]), "does not hold three columns"),
        (5, "type int"),
        (([0, 1], [1], [1]), r"shapes \(2,\), \(1,\) and \(1,\)"),
        (([0], [3], [1]), "names row 3"),
        (([-1], [1], [1]), "names row -1"),
        (([0.5], [1], [1]), "float64"),
        (([0], [1], [2]), "one is 2"),
        (([1], [1], [1]), "row 1 with itself"),
        (([0], [1], [0]), "no pair of similarity"),
    ],
)
def test_bad_pairs_are_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        check_pairs(pairs, 3)


@pytest.mark.parametrize(
    ("triplets", "message"),
    [
        ([[0, 1]], r"shape \(1, 2\)"),
        (np.empty((0, 3), int), "at least one row"),
        ([[0, 1, 9]], "names row 9"),
        ([[0, 1, 1]], r"row in \[0, 1, 1\]"),
    ],
)
def test_bad_triplets_are_refused(triplets, message):
    with pytest.raises(ValueError, match=message):
        check_triplets(triplets, 3)


@pytest.mark.parametrize(
    ("y", "arguments", "message"),
    [
        (None, {}, "LSHash requires y"),
        ([0, -1, 1], {}, "1 of 3 rows unlabeled"),
        ([-1, -1, -1], {"partial": True}, "3 of 3 rows unlabeled"),
        ([0, -1, 0], {"partial": True, "n_classes": 2}, "1 class and leaves 1"),
    ],
)
def test_missing_labels_point_to_methods_that_do_without(y, arguments, message):
    with pytest.raises(ValueError, match=message):
        require_labels(LSHash(), y, 3, **arguments)


def test_labels_may_be_partial_where_the_method_says_so():
    labels = require_labels(LSHash(), [5, -1, 7], 3, partial=True)
    assert labels.classes.tolist() == [5, 7]
    assert labels.index.tolist() == [0, -1, 1]


def test_given_pairs_and_triplets_win_over_labels():
    pairs = pairs_or_labels(LSHash(), ([0], [1], [-1]), [0, 0, 1], 3, n_pairs=7)
    assert isinstance(pairs, Pairs)
    assert pairs.first.tolist() == [0]
    assert len(pairs_or_labels(LSHash(), None, [0, 0, 1], 3, n_pairs=7, random_state=0).first) == 7
    X = np.eye(3)
    assert triplets_or_labels(LSHash(), [[2, 1, 0]], X, [0, 0, 1]).tolist() == [[2, 1, 0]]
    assert triplets_or_labels(LSHash(), None, X, [0, 0, 1]).tolist() == [[0, 1, 2], [1, 0, 2]]
    for draw in (
        lambda: pairs_or_labels(LSHash(), None, None, 3, n_pairs=7),
        lambda: triplets_or_labels(LSHash(), None, X, None),
    ):
        with pytest.raises(ValueError, match="the target y is None"):
            draw()


@pytest.mark.parametrize("gap", [float("nan"), None, ""])
def test_unlabeled_rows_of_a_list_are_in_no_pair_and_no_triplet(gap):
    y = ["a", "b", gap, "a", "b", gap]
    pairs = pairs_or_labels(LSHash(), None, y, 6, n_pairs=50, random_state=0)
    assert not np.isin([pairs.first, pairs.second], [2, 5]).any()
    assert not np.isin(triplets_or_labels(LSHash(), None, np.eye(6), y), [2, 5]).any()


@pytest.mark.parametrize("method", [StarRidge, StarSHL, SDH])
def test_ids_of_rows_in_place_of_labels_are_questioned_once(method, digits):
    with pytest.warns(InputWarning, match="class of its own") as caught:
        method(8, random_state=0).fit(digits[0][:40], np.arange(40))
    assert sum("class of its own" in str(warning.message) for warning in caught) == 1


def test_one_label_per_class_among_unlabeled_rows_is_not_questioned(digits):
    y = np.where(np.arange(60) < 30, np.arange(60), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        StarRidge(8, random_state=0).fit(digits[0][:60], y)
        StarRidge(8, random_state=0).fit(digits[0][:10], np.arange(10))
