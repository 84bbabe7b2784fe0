"""What every hasher of the catalog promises."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

import starshl
from starshl.catalog import METHODS, get_class

BASELINES = [method.class_name for method in METHODS if method.class_name != "StarSHL"]


def small(class_name):
    """A hasher of few bits that fits in a blink and gives the same codes each time."""
    return get_class(class_name)(n_bits=4).set_params(random_state=0)


@parametrize_with_checks([small(name) for name in BASELINES])
def test_hasher_obeys_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


@pytest.mark.parametrize("name", BASELINES)
def test_codes_are_signs_of_the_scores(name, digits):
    X, y = digits
    hasher = small(name).fit(X, y)
    scores, signs, codes = hasher.decision_function(X), hasher.transform(X), hasher.encode(X)
    assert scores.shape == signs.shape == (len(X), 4)
    assert signs.dtype == np.int8
    assert np.array_equal(signs, np.where(scores >= 0, 1, -1))
    assert np.array_equal(codes.to_signs(), signs)


@pytest.mark.parametrize("name", BASELINES)
def test_same_seed_gives_the_same_scores(name, digits):
    X, y = digits
    first, second = (clone(small(name)).fit(X, y).decision_function(X) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", BASELINES)
def test_saved_hasher_comes_back_the_same(name, digits, tmp_path):
    X, y = digits
    hasher = small(name).fit(X, y)
    hasher.save(tmp_path / "model.star")
    loaded = starshl.load(tmp_path / "model.star")
    assert type(loaded) is type(hasher)
    assert loaded.get_params() == hasher.get_params()
    assert np.array_equal(loaded.decision_function(X), hasher.decision_function(X))


@pytest.mark.parametrize("name", BASELINES)
def test_float32_rows_are_hashed_in_float32(name, digits):
    X, y = digits
    assert small(name).fit(X.astype(np.float32), y).decision_function(X.astype(np.float32)).dtype == np.float32
