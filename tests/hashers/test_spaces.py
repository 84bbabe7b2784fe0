"""Which hashers make codes of one space, and which of another."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

import starshl
from starshl import BinaryCodes, Codebook, HybridHasher, StarRidge, StarSHL, make_index
from starshl.data.features import Scale
from starshl.exceptions import SpaceMismatchError
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import ITQ, LSHash


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


@pytest.fixture(scope="module")
def ridge(digits):
    return StarRidge(16, random_state=0).fit(*digits)


@pytest.fixture(scope="module")
def clusters(digits):
    return StarRidge(16, n_codewords=4, random_state=0).fit(digits[0])


def test_slices_of_codes_stay_in_their_space(digits, ridge):
    codes = ridge.encode(digits[0])
    for part in (codes[3], codes[2:5], codes[[4, 1]], next(iter(codes))):
        assert part.space_id == ridge.space_id_


def test_equal_bits_are_equal_codes_whatever_their_space():
    assert BinaryCodes.from_signs(np.ones((2, 3)), "0" * 16) == BinaryCodes.from_signs(np.ones((2, 3)))


def test_codes_of_two_spaces_have_no_distance(digits, ridge):
    X = digits[0]
    other = ITQ(16, random_state=0).fit(X)
    with pytest.raises(SpaceMismatchError, match=f"{ridge.space_id_} and {other.space_id_}"):
        ridge.encode(X).distances(other.encode(X))


@pytest.mark.parametrize("space_id", ["", "xyz", "0" * 15, 7, "0" * 15 + "G"])
def test_impossible_identities_are_refused(space_id):
    with pytest.raises(ValueError, match=r"space_id is .*16 hexadecimal digits"):
        BinaryCodes(np.zeros((1, 1), np.uint8), 8, space_id)


def test_unknown_metric_is_refused():
    with pytest.raises(ValueError, match="metric is 'cosine'"):
        BinaryCodes(np.zeros((1, 1), np.uint8), 8, metric="cosine")


def test_refit_to_other_rows_changes_the_space_of_a_method_without_codewords(digits):
    X = digits[0]
    hasher = ITQ(8, random_state=0).fit(X)
    before = hasher.space_id_
    assert hasher.fit(X[:200]).space_id_ != before
    assert hasher.fit(X).space_id_ == before


def test_functions_that_do_not_depend_on_the_rows_have_one_space(digits):
    X = digits[0]
    assert (
        LSHash(8, center=False, random_state=0).fit(X).space_id_
        == LSHash(8, center=False, random_state=0).fit(X[:100]).space_id_
    )
    assert (
        LSHash(8, center=False, random_state=0).fit(X).space_id_
        != LSHash(8, center=False, random_state=1).fit(X).space_id_
    )


def test_new_value_of_a_learned_attribute_changes_the_space(digits):
    hasher = ITQ(8, random_state=0).fit(digits[0])
    before = hasher.space_id_
    hasher.components_ = -hasher.components_
    assert hasher.space_id_ != before


def test_names_of_columns_do_not_change_the_space(digits):
    pandas = pytest.importorskip("pandas")
    X = digits[0]
    table = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    assert ITQ(8, random_state=0).fit(table).space_id_ == ITQ(8, random_state=0).fit(X).space_id_


def product(a, b):
    """A kernel under which rows cannot move, so that compressing is quick."""
    return float(a @ b)


@pytest.mark.parametrize("n_clusters", [None, 4])
def test_compressed_hasher_keeps_the_space_and_another_length_changes_it(digits, n_clusters):
    X, y = digits
    hasher = StarRidge(16, kernels=[product], n_codewords=n_clusters, random_state=0)
    hasher.fit(X[:60], None if n_clusters else y[:60])
    small = hasher.compress(8)
    assert small.space_id_ == hasher.space_id_
    assert hasher.with_bits(24).space_id_ != hasher.space_id_
    assert hasher.with_bits(24).with_bits(16).space_id_ == hasher.space_id_
    assert small.with_bits(24).space_id_ == hasher.with_bits(24).space_id_


def test_compressed_star_shl_keeps_the_space(digits):
    X, y = digits
    hasher = StarSHL(4, kernels=[product], random_state=0).fit(X[:60], y[:60] % 3)
    assert hasher.compress(8).space_id_ == hasher.space_id_


def test_clusters_of_other_rows_are_another_space(digits, clusters):
    again = StarRidge(16, n_codewords=4, random_state=0).fit(digits[0][:299])
    np.testing.assert_array_equal(again.codewords_, clusters.codewords_)
    assert again.space_id_ != clusters.space_id_


def test_training_codes_and_database_codes_are_of_the_space(digits, ridge):
    X, y = digits
    assert ridge.training_codes_.space_id == ridge.space_id_
    assert ridge.encode_database(X[:5], y[:5]).space_id == ridge.space_id_


def test_preparation_is_part_of_the_space_unless_codewords_are(digits):
    X, y = digits
    prepared = PreparedHasher([Scale()], LSHash(8, center=False, random_state=0)).fit(X)
    other = PreparedHasher([Scale()], LSHash(8, center=False, random_state=0)).fit(X[:100])
    assert prepared.hasher_.space_id_ == other.hasher_.space_id_
    assert prepared.space_id_ != other.space_id_
    assert prepared.encode(X).space_id == prepared.encode_database(X).space_id == prepared.space_id_
    with_words = PreparedHasher([Scale()], StarRidge(8, random_state=0)).fit(X, y)
    assert with_words.space_id_ == with_words.codebook_.space_id


@pytest.mark.parametrize(
    "hasher", [HybridHasher(16, random_state=0), PreparedHasher([Scale()], ITQ(8, random_state=0))]
)
def test_wrapped_hashers_keep_the_space_in_files_and_pickles(digits, tmp_path, hasher):
    hasher.fit(*digits)
    hasher.save(tmp_path / "model")
    assert starshl.load(tmp_path / "model").space_id_ == hasher.space_id_
    assert pickle.loads(pickle.dumps(hasher)).space_id_ == hasher.space_id_


def test_hybrid_codes_say_which_distance_they_need(digits):
    X, y = digits
    hasher = HybridHasher(16, random_state=0).fit(X, y)
    for codes in (hasher.encode(X), hasher.encode_database(X, y), hasher.encode(X)[3]):
        assert codes.metric == "hybrid"
        assert codes.space_id == hasher.space_id_


class WithAnObject(LSHash):
    """A hasher that has learned something that no model file holds."""

    def fit(self, X, y=None):
        super().fit(X)
        self.helper_ = object()
        return self


def test_hasher_that_no_file_can_hold_makes_codes_of_unknown_space(digits):
    for hasher in (WithAnObject(8, random_state=0), PreparedHasher([Scale()], WithAnObject(8, random_state=0))):
        hasher.fit(digits[0])
        codes = hasher.encode(digits[0][:3])
        assert codes.space_id is None
        assert make_index(codes, hasher=hasher).space_id is None
        assert hasher.space_id_ is None


def test_queries_over_other_classes_of_one_codebook_are_refused(digits):
    X, y = digits
    codebook = Codebook.make(range(4), n_bits=16, random_state=0)
    ours, theirs = (np.isin(y, classes) for classes in ([0, 1, 2], [0, 1, 3]))
    old = StarRidge(16, codewords=codebook, random_state=0).fit(X[ours], y[ours])
    new = StarRidge(16, codewords=codebook, random_state=0).fit(X[theirs], y[theirs])
    index = old.make_index(old.encode_database(X[ours], y[ours]))
    index.search(old.encode_queries(X[:5]))
    with pytest.raises(ValueError, match="other classes of the codebook"):
        index.search(new.encode_queries(X[:5]))
    # A code says which class it is near, whoever made it.
    assert y[ours][index.search(new.encode(X[y == 1][:1]), k=5).ids[0]].tolist() == [1] * 5
