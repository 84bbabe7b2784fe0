"""What every hasher of the catalog promises, in its default setting and in each variant."""

import pickle
import re
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import starshl
from starshl.bundle import read_bundle
from starshl.catalog import configurations
from starshl.collection import Collection

# StarSHL's own tests hold its contract; what is here takes a method that fits in a blink.
CASES = {method.name: method for method in configurations() if method.name != "StarSHL"}
UNSUPERVISED = [name for name, method in CASES.items() if method.facts.labels == "ignored"]
SUPERVISED = [name for name, method in CASES.items() if method.facts.needs_labels]
# Settings without which a method would take seconds on a handful of rows.
QUICK = {
    "BoostSSC": {"n_pairs": 1000},
    "CGHash": {"max_triplets": 300},
    "ForgivingHash": {"max_iter": 10, "pool": 2},
    "KSH": {"max_iter": 20},
    "LAMP": {"n_pairs": 100, "n_anchors": 30, "max_rows": 100},
    "MLH": {"max_iter": 3, "n_pairs": 3000},
    "MetricLSH": {"n_pairs": 200},
    "SemanticHashing": {"hidden_sizes": (30,)},
}
# Some of scikit-learn's checks have rows of three features, and one has a single feature.
BITS_FOR_CHECKS = {"LDAHash": 1, "DIF": 1}
# Three classes differ along two directions; these methods spend every further bit on noise.
BITS_ON_BLOBS = {"LDAHash": 2, "DIF": 2, "PCAHash": 4, "SSH orthogonal": 4, "SSH nonorthogonal": 4}


def make(name, n_bits=4, seed=0):
    """The hasher of a case, of few bits and with a fixed seed."""
    method = CASES[name]
    hasher = method.hasher_class(n_bits=n_bits, **QUICK.get(method.method, {}), **method.params)
    return hasher.set_params(random_state=seed) if "random_state" in hasher.get_params() else hasher


every_hasher = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def few_digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


@pytest.fixture(scope="module")
def blobs():
    """Three classes in 20 features whose centers lie about nine standard deviations apart."""
    rng = np.random.default_rng(0)
    centers = 2 * rng.standard_normal((3, 20))
    y = rng.integers(0, 3, 500)
    return centers[y] + rng.standard_normal((500, 20)), y


@parametrize_with_checks([make(name, BITS_FOR_CHECKS.get(name, 2)) for name in CASES])
def test_hasher_obeys_scikit_learn(estimator, check):
    check(estimator)


@every_hasher
def test_codes_are_signs_of_the_scores(name, few_digits):
    X, y = few_digits
    hasher = make(name).fit(X, y)
    scores, signs, codes = hasher.decision_function(X), hasher.transform(X), hasher.encode(X)
    assert scores.shape == signs.shape == (len(X), 4)
    assert signs.dtype == np.int8
    assert np.array_equal(signs, np.where(scores >= 0, 1, -1))
    assert np.array_equal(codes.to_signs(), signs)


@every_hasher
def test_same_seed_gives_the_same_scores(name, few_digits):
    X, y = few_digits
    first, second = (clone(make(name)).fit(X, y).decision_function(X) for _ in range(2))
    assert np.array_equal(first, second)


@every_hasher
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bytes_do_not_depend_on_the_number_of_threads(name, dtype, tmp_path):
    # More rows than a tile holds; sums of whole numbers, such as pixels, would be exact in any order.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1500)
    X = (rng.standard_normal((3, 100))[y] + rng.standard_normal((1500, 100))).astype(dtype)

    def model_and_scores():
        hasher = make(name).fit(X, y)
        hasher.save(tmp_path / "model.star")
        header, arrays = read_bundle(tmp_path / "model.star")
        return header, {name: array.tobytes() for name, array in arrays.items()}, hasher.decision_function(X)

    with parallel_config("sequential"), threadpool_limits(1):
        alone = model_and_scores()
    with parallel_config("threading", n_jobs=4), threadpool_limits(4):
        shared = model_and_scores()
    assert shared[:2] == alone[:2]
    assert shared[2].tobytes() == alone[2].tobytes()


@every_hasher
def test_saved_hasher_comes_back_the_same(name, few_digits, tmp_path):
    X, y = few_digits
    hasher = make(name).fit(X, y)
    hasher.save(tmp_path / "model.star")
    loaded = starshl.load(tmp_path / "model.star")
    assert type(loaded) is type(hasher)
    assert loaded.get_params() == hasher.get_params()
    assert np.array_equal(loaded.decision_function(X), hasher.decision_function(X))


@every_hasher
def test_pickled_hasher_comes_back_the_same(name, few_digits):
    X, y = few_digits
    hasher = make(name).fit(X, y)
    loaded = pickle.loads(pickle.dumps(hasher))
    assert np.array_equal(loaded.decision_function(X), hasher.decision_function(X))


@every_hasher
def test_parameters_set_after_the_fit_do_not_change_scores(name, few_digits):
    X, y = few_digits
    hasher = make(name).fit(X, y)
    scores = hasher.decision_function(X)
    hasher.set_params(**dict.fromkeys(hasher.get_params()))
    assert np.array_equal(hasher.decision_function(X), scores)


@every_hasher
def test_float32_rows_are_hashed_in_float32(name, few_digits):
    X, y = few_digits
    X = X.astype(np.float32)
    assert make(name).fit(X, y).decision_function(X).dtype == np.float32


@every_hasher
def test_memory_layout_does_not_change_scores(name, few_digits):
    X, y = few_digits
    scores = make(name).fit(X, y).decision_function(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    for rows in (np.asfortranarray(X), frozen, np.repeat(X, 2, axis=0)[::2]):
        assert np.array_equal(make(name).fit(rows, y).decision_function(rows), scores)


@every_hasher
def test_rows_are_left_as_they_came(name, few_digits):
    X, y = few_digits
    rows, labels = X.copy(), y.copy()
    make(name).fit(rows, labels).transform(rows)
    assert np.array_equal(rows, X)
    assert np.array_equal(labels, y)


@every_hasher
def test_one_row_alone_gets_the_code_it_has_among_others(name, few_digits):
    X, y = few_digits
    hasher = make(name).fit(X, y)
    scores = hasher.decision_function(X)
    alone = hasher.decision_function(X[7:8])
    assert alone.shape == (1, 4)
    assert np.allclose(alone[0], scores[7], atol=1e-9 * np.abs(scores).max())


@every_hasher
def test_awkward_rows_get_codes(name, few_digits):
    X, y = few_digits
    X = X.copy()
    X[:, [0, 9]] = 3.0  # constant columns
    X[100:200] = X[:100]  # equal rows, with other labels
    X[::50] = 0.0  # rows of zeros
    hasher = make(name).fit(X, y)
    scores = hasher.decision_function(X)
    assert np.isfinite(scores).all()
    assert np.isfinite(hasher.decision_function(1e3 * X[:5])).all()


@every_hasher
@pytest.mark.parametrize("n_bits", [1, 2])
def test_one_or_two_bits_are_given_or_refused_by_the_rule(name, n_bits, few_digits):
    X, y = few_digits
    multiple = CASES[name].facts.bits_multiple_of
    if n_bits % multiple == 0:
        assert make(name, n_bits).fit(X, y).transform(X).shape == (300, n_bits)
    else:
        with pytest.raises(ValueError, match=f"n_bits is {n_bits};.*[Uu]se {multiple}"):
            make(name, n_bits).fit(X, y)


@every_hasher
def test_more_bits_than_a_method_can_give_name_the_largest_number(name, few_digits):
    X, y = few_digits
    if CASES[name].facts.max_bits == "any":
        assert make(name, 80).fit(X, y).transform(X).shape == (300, 80)  # digits have 64 features
        return
    with pytest.raises(ValueError, match=r"n_bits is 10000;.*at most \d+") as refusal:
        make(name, 10_000).fit(X, y)
    largest = int(re.search(r"at most (\d+)", str(refusal.value))[1])
    assert make(name, largest).fit(X, y).transform(X).shape == (300, largest)


@every_hasher
@pytest.mark.parametrize("n_bits", [0, -8, 2.5, True, "8", None])
def test_impossible_numbers_of_bits_are_refused(name, n_bits, few_digits):
    X, y = few_digits
    with pytest.raises(ValueError, match=f"n_bits is {n_bits!r}; it must be an integer"):
        make(name, n_bits).fit(X, y)


@every_hasher
def test_bad_rows_are_named(name, few_digits):
    X, y = few_digits
    hasher = make(name).fit(X, y)
    broken = X.copy()
    broken[5, 3] = np.nan
    with pytest.raises(ValueError, match="NaN in column 3, first in row 5"):
        hasher.transform(broken)
    with pytest.raises(ValueError, match="NaN in column 3, first in row 5"):
        make(name).fit(broken, y)
    with pytest.raises(ValueError, match="63 features"):
        hasher.transform(X[:, :63])


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_labels_do_not_change_what_ignores_them(name, few_digits):
    X, _ = few_digits
    scores = make(name).fit(X).decision_function(X)
    shuffled = np.random.default_rng(0).integers(-1, 2, 300)
    for poison in (shuffled, np.full(300, np.nan), np.full(300, "poison", dtype=object), ["one label"]):
        assert np.array_equal(make(name).fit(X, poison).decision_function(X), scores)


@pytest.mark.parametrize("name", SUPERVISED)
def test_missing_labels_point_to_methods_that_need_none(name, few_digits):
    X, y = few_digits
    for nothing in (None, np.full(300, -1)):
        with pytest.raises(ValueError, match=r"use a method that needs no labels"):
            make(name).fit(X, nothing)
    some = np.where(np.arange(300) % 2, y, -1)
    if CASES[name].facts.labels == "some":
        assert make(name).fit(X, some).transform(X).shape == (300, 4)
    else:
        with pytest.raises(ValueError, match=r"150 of 300 rows unlabeled"):
            make(name).fit(X, some)


@pytest.mark.parametrize("name", SUPERVISED)
def test_labels_may_be_words(name, few_digits):
    X, y = few_digits
    words = np.array([f"digit {label}" for label in y])
    scores = (make(name).fit(X, labels).decision_function(X) for labels in (y, words))
    assert np.array_equal(*scores)


@every_hasher
def test_neighbors_in_code_share_the_class_on_separated_blobs(name, blobs):
    X, y = blobs
    hasher = make(name, BITS_ON_BLOBS.get(name, 16)).fit(X[:400], y[:400])
    products = hasher.transform(X[400:]).astype(int) @ hasher.transform(X[:400]).astype(int).T
    nearest = np.argsort(-products, axis=1, kind="stable")[:, :10]
    precision = np.mean(y[:400][nearest] == y[400:, None])
    # Chance is 1/3. Unsupervised bits may also cut through classes; supervised ones have no reason to.
    assert precision >= (0.8 if name in UNSUPERVISED else 0.9)


@every_hasher
def test_history_of_the_objective_is_finite(name, few_digits):
    X, y = few_digits
    history = getattr(make(name).fit(X, y), "objective_history_", np.zeros(1))
    assert np.ndim(history) == 1
    assert np.isfinite(history).all()


class Interruption(BaseException):
    """Raised in the middle of a fit, like the KeyboardInterrupt of an impatient user."""


@every_hasher
def test_a_fit_that_is_interrupted_leaves_the_hasher_as_it_was(name, few_digits):
    X, y = few_digits
    hasher = make(name).fit(X, y)
    before = pickle.dumps(hasher)
    for n_calls in (1, 3, 10, 30, 100, 1000):
        try:
            with interrupted_after(n_calls):
                hasher.fit(X[::-1], y[::-1])
        except Interruption:
            assert pickle.dumps(hasher) == before
        else:
            assert n_calls > 1  # the fit makes fewer calls
            break


@every_hasher
def test_a_hasher_whose_first_fit_failed_cannot_be_saved(name, few_digits, tmp_path):
    X, y = few_digits
    hasher = make(name)
    with pytest.raises(Interruption), interrupted_after(8):
        hasher.fit(X, y)
    with pytest.raises(NotFittedError):
        hasher.save(tmp_path / "model.star")
    assert not (tmp_path / "model.star").exists()


@every_hasher
def test_items_are_encoded_like_queries_unless_a_method_says_otherwise(name, few_digits):
    X, y = few_digits
    hasher = make(name).fit(X, y)
    items = hasher.encode_database(X, y)
    assert len(items) == len(X)
    assert items.n_bits == hasher.n_bits_ == hasher.encode(X).n_bits


@every_hasher
def test_default_setting_is_saved_and_backs_a_collection(name, few_digits, tmp_path):
    X, y = few_digits
    method = CASES[name]
    hasher = method.hasher_class(**QUICK.get(method.method, {}), **method.params).fit(X, y)
    hasher.save(tmp_path / "model.star")
    assert starshl.load(tmp_path / "model.star").n_bits_ == hasher.n_bits_
    with Collection.create(tmp_path / "items", hasher) as items:
        ids = items.add(X)
        assert items.codes(ids) == hasher.encode_database(X)


@contextmanager
def interrupted_after(n_calls):
    """Raise after so many calls of Python functions of the package."""
    left = n_calls

    def count(frame, event, argument):
        nonlocal left
        if event == "call" and "starshl" in frame.f_code.co_filename and frame.f_code.co_name != "fit_completely":
            left -= 1
            if left <= 0:
                raise Interruption

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
