"""The value that labels are parsed into: rows with one class, with none and with several."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.utils.multiclass import type_of_target

from starshl import Collection, HybridHasher, StarRidge, StarSHL
from starshl._common.labels import Labels, check_labels
from starshl.exceptions import InputError
from starshl.hashers import PreparedHasher

# Row 0 is a cat and a dog, row 1 has no class, row 2 is a dog, row 3 is all three, row 4 is an ox.
SETS = [{"cat", "dog"}, set(), {"dog"}, {"cat", "dog", "ox"}, {"ox"}]


def labels_of(sets):
    classes = sorted(set().union(*sets))
    members = [classes.index(label) for row in sets for label in sorted(row)]
    offsets = np.cumsum([0, *map(len, sets)])
    return Labels(np.array(classes), offsets, np.array(members, np.int64), np.array(classes).dtype)


def sets_of(labels):
    names = labels.classes.tolist()
    rows = zip(labels.offsets[:-1], labels.offsets[1:], strict=True)
    return [{names[member] for member in labels.members[start:end]} for start, end in rows]


def test_rows_with_several_classes_are_labeled_rows():
    labels = labels_of(SETS)
    assert labels.n_rows == len(labels) == 5
    assert labels.labeled.tolist() == [True, False, True, True, True]
    assert labels.class_counts.tolist() == [2, 3, 2]


def test_the_one_class_of_a_row_is_refused_where_it_has_several():
    with pytest.raises(InputError) as error:
        _ = labels_of([{"cat"}, {"cat", "dog", "ox"}]).index
    assert (error.value.fields["row"], error.value.fields["n_classes"]) == (1, 3)
    with pytest.raises(InputError):
        np.asarray(labels_of(SETS))


@pytest.mark.parametrize(
    "rows",
    [
        np.array([3, 0, 0]),
        np.array([1]),
        np.array([], np.int64),
        np.array([True, False, True, False, False]),
        slice(1, None, 2),
    ],
)
def test_some_rows_keep_their_classes_and_no_others(rows):
    taken = labels_of(SETS).take(rows)
    expected = np.array(SETS, dtype=object)[rows].tolist()
    assert sets_of(taken) == expected
    assert taken.classes.tolist() == sorted(set().union(*expected))


def test_labels_are_found_among_classes_in_any_order():
    found = labels_of(SETS).among(np.array(["ox", "hen", "cat"]))
    assert sets_of(found) == [{"cat"}, set(), set(), {"cat", "ox"}, {"ox"}]
    assert found.members.tolist() == [2, 0, 2, 0]  # ascending within the row of both
    assert found.classes.tolist() == ["ox", "hen", "cat"]


def test_a_row_has_a_position_if_one_of_its_classes_is_known():
    assert labels_of(SETS).positions_in(np.array(["hen", "cat"])).tolist() == [1, -1, -1, 1, -1]
    with pytest.raises(InputError) as error:
        labels_of(SETS).positions_in(np.array(["ox", "cat"]))
    assert (error.value.fields["row"], error.value.fields["n_classes"]) == (3, 2)


def test_labels_are_equal_if_rows_have_the_same_classes():
    assert labels_of(SETS) == labels_of(SETS)
    assert labels_of(SETS) != labels_of([{"cat"}, {"dog"}, {"dog"}, {"cat", "dog", "ox"}, {"ox"}])
    assert labels_of([{"cat"}, {"dog"}]) != labels_of([{"cow"}, {"dog"}])
    assert check_labels([7, -1, 8], 3) == check_labels(np.array([7.0, np.nan, 8.0]), 3)
    assert pickle.loads(pickle.dumps(labels_of(SETS))) == labels_of(SETS)


def test_rows_of_one_class_are_indices():
    labels = check_labels(["b", "", "a", "b"], 4)
    assert labels.classes.tolist() == ["a", "b"]
    assert labels.index.tolist() == [1, -1, 0, 1]
    assert labels == Labels.from_index(np.array(["a", "b"]), np.array([1, -1, 0, 1]), labels.dtype)
    assert repr(labels) == "Labels(4 rows, 3 labeled, 2 classes)"


@pytest.mark.parametrize(
    "y", [[3, -1, 5], [3.0, np.nan, 5.0], ["a", "", "b"], ["a", None, "b"], [True, False, True], [b"x", b"", b"y"]]
)
def test_parsed_labels_are_an_array_like(y):
    y = np.array(y)
    labels = check_labels(y, 3)
    np.testing.assert_array_equal(np.asarray(labels), y)
    assert np.asarray(labels).dtype == y.dtype == labels.dtype
    np.testing.assert_array_equal(np.asarray(labels.take(np.array([2, 1]))), y[[2, 1]])
    np.testing.assert_array_equal(labels[[2, 1]], y[[2, 1]])
    np.testing.assert_array_equal(list(labels), list(y))
    assert type_of_target(check_labels([0, 1, 2], 3)) == "multiclass"


def test_labels_without_an_array_mark_gaps_by_none():
    known = check_labels([3, -1, 5], 3).among(np.array([5]))
    assert np.asarray(known).tolist() == [None, None, 5]


def test_parsed_labels_come_back_unchanged():
    labels = check_labels([1, 2], 2)
    assert check_labels(labels, 2) is labels
    with pytest.raises(ValueError, match=r"y has shape \(2,\)"):
        check_labels(labels, 3)


def test_parsed_labels_teach_what_the_array_teaches(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.where(np.arange(40) < 30, np.arange(40) % 2, -1)
    written = []
    for labels in (y, check_labels(y, 40)):
        StarRidge(8, random_state=0).fit(X, labels).save(tmp_path / "model.star")
        written.append((tmp_path / "model.star").read_bytes())
    assert written[0] == written[1]


def test_steps_of_other_libraries_get_an_array_of_labels():
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = (X[:, 1] > 0).astype(int)
    hasher = PreparedHasher([SelectKBest(k=1)], StarRidge(8, random_state=0)).fit(X, check_labels(y, 40))
    assert hasher.steps_[0].get_support().tolist() == [False, True, False]


class Counted:
    """Labels that count how often they are read."""

    def __init__(self, labels):
        self.labels, self.n_reads = np.asarray(labels), 0

    def __len__(self):
        return len(self.labels)

    def __array__(self, dtype=None, copy=None):
        self.n_reads += 1
        return np.array(self.labels, dtype=dtype, copy=copy)


@pytest.mark.parametrize("method", [StarRidge, StarSHL, HybridHasher])
def test_labels_are_read_once_along_their_way(method, tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = Counted([0, 1] * 20)
    hasher = method(4, random_state=0).fit(X, y)
    assert y.n_reads == 2  # once to parse them, once for their hash in the record of the fit
    hasher.encode_database(X, y)
    assert y.n_reads == 3
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.set_labels(collection.add(X, labels=y), y)
    assert y.n_reads == 5


def test_hashers_and_collections_refuse_rows_with_several_classes(tmp_path):
    X, y = np.random.default_rng(0).standard_normal((40, 3)), labels_of([{"cat"}, {"cat", "dog"}] * 20)
    with pytest.raises(InputError):
        StarRidge(4).fit(X, y)
    hasher = StarRidge(4, random_state=0).fit(X, np.array(["cat", "dog"] * 20))
    with Collection.create(tmp_path / "items", hasher) as collection, pytest.raises(InputError):
        collection.add(X, labels=y)


@pytest.mark.parametrize(
    "y",
    [
        [3.0, -1.0, 5.0, -1.0],
        np.array([3, -1, 5, -1], object),
        np.array([3.0, -1.0, 5.0, np.nan], object),
        np.ma.masked_array([3, 4, 5, 3], [0, 1, 0, 1]),
        np.ma.masked_array([3.0, 4.0, 5.0, 3.0], [0, 1, 0, 1]),
        pd.Series([3, None, 5, None]).fillna(-1),
        pd.Series([3, None, 5, None], dtype=object).fillna(-1),
    ],
    ids=str,
)
def test_no_mark_of_an_unlabeled_row_becomes_a_class(y):
    labels = check_labels(y, 4)
    assert labels.classes.tolist() == [3, 5]
    assert labels.labeled.tolist() == [True, False, True, False]


def test_masked_text_is_unlabeled_and_a_mask_that_hides_nothing_changes_nothing():
    assert check_labels(np.ma.masked_array(["cat", "dog"], [True, False]), 2).classes.tolist() == ["dog"]
    assert check_labels(np.ma.masked_array([False, True], [True, False]), 2).classes.tolist() == [True]
    assert check_labels(np.ma.masked_array([1.0, 2.0]), 2).dtype == np.float64


def test_text_that_looks_like_a_mark_is_a_class():
    assert check_labels(["-1", "1"], 2).classes.tolist() == ["-1", "1"]


def test_a_fit_to_gaps_filled_with_numbers_learns_what_it_learns_from_gaps(digits):
    X, y = digits
    few = np.where(np.arange(200) < 60, y[:200], np.nan)
    filled = np.where(np.isnan(few), -1.0, few)
    expected = StarRidge(8, random_state=0).fit(X[:200], few).predict(X[200:260])
    assert StarRidge(8, random_state=0).fit(X[:200], filled).predict(X[200:260]).tolist() == expected.tolist()
