"""Class fields of a given codebook, with numbers in reserve."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import starshl
from starshl import Codebook, HybridHasher, make_index
from starshl.hashers.baselines import ITQ, CodewordSVM, LSHash

N_BITS = 24


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture(scope="module")
def codebook():
    return Codebook.make([3, 1, 4, 0, 5, 2, 6, 8, 7], n_bits=16, n_reserved=10, random_state=0)


@pytest.fixture(scope="module")
def make(codebook):
    """Neighbor bits that do not depend on the rows, so that only the class field could differ between fits."""

    def make_hasher(**params):
        neighbors = LSHash(center=False, random_state=0)
        given = {"neighbor_hasher": neighbors, "n_bits": N_BITS, "codewords": codebook, "random_state": 0}
        return HybridHasher(**(given | params))

    return make_hasher


@pytest.fixture(scope="module")
def of_nine(digits, make):
    X, y = digits
    rows = np.flatnonzero(y[:300] != 9)
    return make().fit(X[rows], y[rows])


def test_class_field_has_room_for_reserved_words(of_nine):
    assert of_nine.class_bits_ == 5  # 9 classes and 10 reserved words


def test_class_field_holds_the_place_of_the_class_in_the_codebook(of_nine, digits, codebook):
    labels = np.array([3, 1, 4, 7])
    signs = of_nine.encode_database(digits[0][:4], labels).to_signs()[:, :5]
    np.testing.assert_array_equal((signs > 0) @ (1 << np.arange(5)), [0, 1, 2, 8])
    assert of_nine.class_hasher_.codebook_ is codebook


def test_new_class_is_found_among_items_coded_before_it_came(of_nine, make, digits, codebook):
    X, y = digits
    new = make(codewords=codebook.assign(9)).fit(X[:300], y[:300])
    assert new.space_id_ == of_nine.space_id_
    items = np.arange(300, 700)[y[300:700] != 9]
    nines = np.flatnonzero(y[300:900] == 9) + 300
    index = make_index(of_nine.encode_database(X[items], y[items]), hasher=of_nine)
    index.add(new.encode_database(X[nines], y[nines]))
    found = index.search(new.encode(X[900:1200]), 10).ids
    labels = y[np.concatenate([items, nines])]
    assert np.mean(labels[found] == y[900:1200, None]) > 0.85
    assert np.mean(labels[found][y[900:1200] == 9] == 9) > 0.7


def test_saved_hasher_keeps_codebook_and_space(of_nine, tmp_path, codebook):
    of_nine.save(tmp_path / "model")
    loaded = starshl.load(tmp_path / "model")
    assert loaded.codewords == codebook
    assert loaded.space_id_ == of_nine.space_id_


def test_other_neighbor_bits_are_another_space(of_nine, make, digits):
    X, y = digits
    rows = np.flatnonzero(y[:300] != 9)
    assert make(neighbor_hasher=ITQ(random_state=0)).fit(X[rows], y[rows]).space_id_ != of_nine.space_id_


def test_residual_form_takes_classes_without_rows(make, digits):
    X, y = digits
    rows = np.flatnonzero(y[:300] < 5)
    hasher = make(neighbor_hasher=None, form="residual").fit(X[rows], y[rows])
    index = make_index(hasher.encode_database(X[:20], np.full(20, 8)), hasher=hasher)
    assert index.search(hasher.encode_queries(X[:2]), 3).ids.shape == (2, 3)


def test_given_class_hasher_is_fitted_to_the_codebook(make, digits, codebook):
    X, y = digits
    rows = np.flatnonzero(y[:200] != 9)
    hasher = make(class_hasher=CodewordSVM(random_state=0)).fit(X[rows], y[rows])
    assert hasher.class_hasher_.codebook_ is codebook


def test_label_without_a_word_is_told_to_take_a_reserved_one(make, digits):
    with pytest.raises(ValueError, match=r"codebook\.assign\(9\)"):
        make().fit(digits[0][:100], digits[1][:100])


def test_codebook_without_labels_is_refused(make, digits):
    with pytest.raises(ValueError, match=r"codewords is a Codebook.*no labels"):
        make().fit(digits[0][:100])


@pytest.mark.parametrize("codewords", ["separated", [[1, -1]]])
def test_codewords_that_are_no_codebook_are_refused(make, digits, codewords):
    with pytest.raises(ValueError, match="a Codebook or None"):
        make(codewords=codewords).fit(*digits)
