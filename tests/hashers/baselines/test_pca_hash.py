import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from starshl.hashers.baselines import PCAHash


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)[0] / 16.0


def test_scores_are_the_principal_components_of_scikit_learn(digits):
    expected = PCA(10, svd_solver="full").fit_transform(digits)
    found = PCAHash(10).fit(digits).decision_function(digits)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


def test_variances_are_those_of_the_scores(digits):
    hasher = PCAHash(10).fit(digits)
    np.testing.assert_allclose(hasher.decision_function(digits).var(axis=0), hasher.variances_)


def test_bits_beyond_the_rank_are_refused_or_drawn_at_random(digits):
    with pytest.raises(ValueError, match=r"n_bits is 70; .* at most 61 here"):
        PCAHash(70).fit(digits)
    hasher = PCAHash(70, overflow="random", random_state=0).fit(digits)
    np.testing.assert_allclose(hasher.components_[:61], PCAHash(61).fit(digits).components_, atol=1e-9)
    assert (np.abs(hasher.transform(digits)[:, 61:].mean(axis=0)) < 1).all()


def test_unknown_overflow_is_named(digits):
    with pytest.raises(ValueError, match="overflow is 'pad'"):
        PCAHash(overflow="pad").fit(digits)
