"""Weighted Hamming distances of the methods whose papers rank by them."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import BinaryCodes
from starshl.hashers.baselines import BoostSSC, CGHash


@pytest.fixture(scope="module", params=[CGHash(8, max_triplets=300, random_state=0), BoostSSC(8, n_pairs=500)])
def fitted(request):
    X, y = load_digits(return_X_y=True)
    return request.param.fit(X[:300], y[:300]), X[300:340]


def test_distances_add_the_weights_of_differing_bits(fitted):
    hasher, rows = fitted
    queries, items = hasher.encode(rows[:10]), hasher.encode_database(rows)
    differing = queries.to_signs()[:, None] != items.to_signs()[None]
    assert np.allclose(hasher.weighted_distances(queries, items), differing @ hasher.bit_weights_)


def test_equal_codes_are_at_distance_zero(fitted):
    hasher, rows = fitted
    codes = hasher.encode(rows)
    assert not np.diag(hasher.weighted_distances(codes, codes)).any()


def test_codes_of_another_length_are_refused(fitted):
    hasher, rows = fitted
    other = BinaryCodes.from_signs(np.ones((2, 9)))
    with pytest.raises(ValueError, match="8 and 9 bits"):
        hasher.weighted_distances(hasher.encode(rows), other)
