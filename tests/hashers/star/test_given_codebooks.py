"""Fitting to a given codebook: frozen codewords, one space, classes to come."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import starshl
from starshl import Codebook, StarRidge, StarSHL, make_index
from starshl.data.features import Scale
from starshl.exceptions import InputError
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import SDH, CodewordSVM

METHODS = {
    "StarRidge": lambda codebook: StarRidge(16, codewords=codebook, random_state=0),
    "StarSHL": lambda codebook: StarSHL(16, codewords=codebook, random_state=0),
    "CodewordSVM": lambda codebook: CodewordSVM(16, codewords=codebook, random_state=0),
    "HC-SDH": lambda codebook: SDH(16, variant="hadamard", codewords=codebook, n_anchors=100, random_state=0),
    "prepared": lambda codebook: PreparedHasher([Scale()], StarRidge(16, codewords=codebook, random_state=0)),
}
every_method = pytest.mark.parametrize("name", METHODS)


@pytest.fixture(scope="module")
def codebook():
    """Classes in an order of their own, without the digit 9."""
    return Codebook.make([3, 1, 4, 0, 5, 2, 6, 8, 7], n_bits=16, n_reserved=3, random_state=0)


@pytest.fixture(scope="module")
def of_nine(digits, codebook):
    """Hashers that have seen no 9, by name."""
    X, y = digits
    rows = np.flatnonzero(y[:400] != 9)
    return {name: make(codebook).fit(X[rows], y[rows]) for name, make in METHODS.items()}


@every_method
def test_codewords_are_those_of_the_codebook(of_nine, codebook, name):
    hasher = of_nine[name]
    inner = getattr(hasher, "hasher_", hasher)
    assert hasher.codebook_ is codebook
    assert hasher.space_id_ == codebook.space_id
    assert inner.classes_.tolist() == list(range(9))
    np.testing.assert_array_equal(inner.codewords_, codebook.word_of(np.arange(9)))


@every_method
def test_new_class_is_found_among_items_coded_before_it_came(of_nine, digits, codebook, name):
    X, y = digits
    old_items, new_items, queries = np.arange(400, 800), np.flatnonzero(y[800:1200] == 9) + 800, np.arange(1200, 1500)
    old_items = old_items[y[old_items] != 9]
    old = of_nine[name]
    new = METHODS[name](codebook.assign(9)).fit(X[:400], y[:400])
    assert new.space_id_ == old.space_id_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index = make_index(old.encode_database(X[old_items], y[old_items]))
        index.add(new.encode_database(X[new_items], y[new_items]))
        found = index.search(new.encode(X[queries]), 10).ids
    labels = np.concatenate([y[old_items], y[new_items]])
    precision = np.mean(labels[found] == y[queries][:, None])
    # Chance is .1, and hashers of unrelated codewords do not exceed it; re-encoding everything reaches about .95.
    assert precision > 0.85
    assert np.mean(labels[found][y[queries] == 9] == 9) > 0.7


@every_method
def test_label_without_a_word_is_told_to_take_a_reserved_one(digits, codebook, name):
    X, y = digits
    with pytest.raises(ValueError, match=r"such as 9.*codebook\.assign\(9\)"):
        METHODS[name](codebook).fit(X[:100], y[:100])


@every_method
def test_codebook_of_another_length_is_refused(digits, name):
    X, y = digits
    with pytest.raises(InputError) as refused:
        METHODS[name](Codebook.make(range(10), 8, random_state=0)).fit(X[:100], y[:100])
    assert (refused.value.parameter, refused.value.value) == ("n_bits", 16)


@every_method
def test_model_file_holds_the_codebook_with_its_reserve(of_nine, codebook, tmp_path, name):
    of_nine[name].save(tmp_path / "model")
    loaded = starshl.load(tmp_path / "model")
    assert loaded.codebook_ == codebook
    assert loaded.codebook_.assign(9).space_id == codebook.space_id
    assert loaded.space_id_ == codebook.space_id
    inner = getattr(loaded, "hasher", loaded)
    assert clone(inner).codewords == codebook


def test_class_without_rows_has_its_word_in_the_database(digits, codebook):
    X, y = digits
    rows = np.flatnonzero(y[:300] < 5)
    hasher = METHODS["StarSHL"](codebook).fit(X[rows], y[rows])
    items = hasher.encode_database(X[:3], np.array([8, 0, 9]))
    assert items[:2] == codebook.codes_of([8, 0])
    assert items[2] == hasher.encode_database(X[2:3])
    assert set(hasher.predict(X[:300])) <= set(range(5))


@pytest.mark.parametrize("name", ["StarRidge", "prepared"])
def test_items_of_a_class_without_rows_are_coded_like_unlabeled_ones_where_codes_stand_for_posteriors(
    digits, codebook, name
):
    X, y = digits
    rows = np.flatnonzero(y[:300] < 5)
    hasher = METHODS[name](codebook).fit(X[rows], y[rows])
    items = hasher.encode_database(X[:3], np.array([8, 0, 9]))
    assert items[1] == codebook.codes_of([0])
    assert items[[0, 2]] == hasher.encode_database(X[[0, 2]])
    assert items.classes.tolist() == [-1, codebook.positions([0])[0], -1]
    assert hasher.words.columns_of(items).tolist() == [-1, 0, -1]


def test_codebook_freezes_the_codewords_of_star_shl(of_nine, codebook):
    assert of_nine["StarSHL"].update_codewords
    assert of_nine["StarSHL"].n_flipped_ == 0


def test_another_length_keeps_classes_and_reserve(of_nine, codebook):
    longer = of_nine["StarRidge"].with_bits(24)
    assert longer.codebook_.classes.tolist() == codebook.classes.tolist()
    assert longer.codebook_.n_reserved == 3
    assert longer.space_id_ not in (codebook.space_id, None)
    assert longer.space_id_ == codebook.assign(9).resized(24).space_id
    assert longer.with_bits(16, codewords=codebook).space_id_ == codebook.space_id


@pytest.mark.parametrize("name", ["StarRidge", "StarSHL"])
def test_codebook_without_labels_is_refused(digits, codebook, name):
    with pytest.raises(ValueError, match="y has no labels"):
        METHODS[name](codebook).set_params(n_codewords=5).fit(digits[0][:50])


def test_few_labels_are_enough_for_a_codebook(digits, codebook):
    X, y = digits
    few = np.where(np.arange(300) < 60, y[:300], -1)
    hasher = StarRidge(16, codewords=codebook.assign(9), random_state=0).fit(X[:300], few)
    assert hasher.space_id_ == codebook.space_id
    assert hasher.training_codes_.space_id == codebook.space_id


@pytest.mark.parametrize("variant", ["sdh", "fsdh"])
def test_sdh_that_learns_its_codes_takes_no_codebook(digits, codebook, variant):
    with pytest.raises(ValueError, match="Set variant='hadamard'"):
        SDH(16, variant=variant, codewords=codebook).fit(digits[0][:50], digits[1][:50] % 2)
