"""Hybrid codes whose class hasher has a given codebook, with words in reserve."""

import numpy as np
import pytest

import starshl
from starshl import Codebook, HybridHasher, StarRidge, make_index
from starshl.hashers.baselines import ITQ, LSHash

N_BITS = 24


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


def test_reserved_words_take_no_room_in_the_class_field(of_nine, codebook):
    assert of_nine.class_bits_ == 6  # ceil(log2 9) + 2
    assert of_nine.class_hasher_.codebook_ is codebook


def test_item_of_a_reserved_word_is_coded_from_its_row(of_nine, make, digits, codebook):
    X, y = digits
    rows = np.flatnonzero(y[:300] != 9)
    promised = make(codewords=codebook.assign(9)).fit(X[rows], y[rows])
    for hasher in (of_nine, promised):
        items = hasher.encode_database(X[:20], [9] * 10 + [3] * 10)
        assert items[:10] == hasher.encode(X[:10])
        assert (hasher.words.columns_of(items)[10:] == hasher.classes_.tolist().index(3)).all()


def test_another_fit_is_another_space(of_nine, make, digits, codebook):
    X, y = digits
    new = make(codewords=codebook.assign(9)).fit(X[:300], y[:300])
    assert new.space_id_ != of_nine.space_id_
    assert new.class_hasher_.space_id_ == of_nine.class_hasher_.space_id_


def test_codes_for_other_systems_repeat_words_of_the_codebook(of_nine, digits, codebook):
    X, y = digits
    items = of_nine.encode_database(X[:50], y[:50])
    plain = of_nine.hamming_codes(items)
    n_repeats, rest = divmod(plain.n_bits - (N_BITS - 6), codebook.n_bits)
    assert rest == 0
    known = y[:50] != 9
    np.testing.assert_array_equal(
        plain.to_signs()[known, : 16 * n_repeats], np.tile(codebook.word_of(y[:50][known]), n_repeats)
    )


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
    hasher = make(class_hasher=StarRidge(8, kernels="scaled")).fit(X[rows], y[rows])
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
