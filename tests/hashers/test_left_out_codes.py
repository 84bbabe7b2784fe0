"""Rows of a fit as items without labels: a hasher that has seen their labels must not be too sure of them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from starshl import HybridHasher, StarRidge
from starshl.hashers import ClassifierHasher, PreparedHasher
from starshl.hashers.baselines import LSHash
from starshl.hashers.fitting import codes_of_vectors

HASHERS = {
    "ridge": StarRidge(24, random_state=0),
    "hybrid": HybridHasher(24, random_state=0),
    "classifier": ClassifierHasher(KNeighborsClassifier(1), 24, random_state=0),
    "prepared": PreparedHasher([StandardScaler()], StarRidge(24, random_state=0)),
    "prepared classes": HybridHasher(
        24, class_hasher=PreparedHasher([StandardScaler()], StarRidge(24, random_state=0)), random_state=0
    ),
}


@pytest.fixture(scope="module")
def overlapping():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    return rng.normal(size=(3, 40))[y] * 0.25 + rng.normal(size=(300, 40)), y


def right(hasher, codes, y):
    """The mean probability that codes give their class, and its share among the likeliest."""
    shares = hasher.words.posteriors_of(codes)
    return shares[np.arange(len(y)), y].mean(), (shares.argmax(axis=1) == y).mean()


@pytest.mark.parametrize("name", HASHERS)
def test_labeled_rows_are_coded_as_if_they_were_unseen(overlapping, name):
    X, y = overlapping
    hasher = clone(HASHERS[name]).fit(X[:150], y[:150])
    seen = right(hasher, hasher.encode_database(X[:150]), y[:150])
    unseen = right(hasher, hasher.encode_database(X[150:]), y[150:])
    left_out = right(hasher, codes_of_vectors(hasher, X[:150], y[:150]), y[:150])
    assert seen[1] > unseen[1] + 0.1
    assert left_out == pytest.approx(unseen, abs=0.1)


def test_unlabeled_rows_keep_the_codes_of_the_fit(overlapping):
    X, y = overlapping
    some = np.where(np.arange(150) % 2, y[:150], -1)
    hasher = StarRidge(24, random_state=0).fit(X[:150], some)
    np.testing.assert_array_equal(
        codes_of_vectors(hasher, X[:150], some).packed[::2], hasher.training_codes_.packed[::2]
    )


def test_a_method_that_cannot_leave_rows_out_codes_them_as_any(overlapping):
    X, y = overlapping
    hasher = LSHash(8, random_state=0).fit(X)
    assert codes_of_vectors(hasher, X, y) == hasher.encode_database(X)
