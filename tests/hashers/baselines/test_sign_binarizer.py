import numpy as np
import pytest

from starshl.exceptions import InputError
from starshl.hashers.baselines import SignBinarizer

X = np.random.default_rng(0).gamma(1.0, size=(101, 6))


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [("mean", X.mean(axis=0)), ("median", np.median(X, axis=0)), ("zero", np.zeros(6))],
)
def test_bits_compare_features_with_the_threshold(threshold, expected):
    codes = SignBinarizer(threshold=threshold).fit_transform(X)
    assert np.array_equal(codes > 0, expected <= X)


def test_median_balances_every_bit():
    codes = SignBinarizer(threshold="median").fit_transform(X)
    # 101 rows: 50 below the median, the median itself and 50 above it.
    assert np.array_equal(codes.sum(axis=0), np.ones(6))


def test_fewer_bits_are_the_leading_features():
    whole, leading = SignBinarizer().fit_transform(X), SignBinarizer(2).fit_transform(X)
    assert np.array_equal(leading, whole[:, :2])
    assert SignBinarizer().fit(X).get_feature_names_out().shape == (6,)


def test_more_bits_than_features_are_refused_with_the_largest_allowed():
    with pytest.raises(InputError) as refused:
        SignBinarizer(7).fit(X)
    assert (refused.value.parameter, refused.value.value) == ("n_bits", 7)


def test_unknown_threshold_is_named():
    with pytest.raises(ValueError, match="threshold is 'mode'"):
        SignBinarizer(threshold="mode").fit(X)
