import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.hashers.baselines import SpectralHash


def box(n_samples, *sides):
    return np.random.default_rng(0).uniform(size=(n_samples, len(sides))) * sides


def test_modes_of_a_two_to_one_rectangle_come_in_the_documented_order():
    corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    hasher = SpectralHash(3).fit(corners)
    assert hasher.directions_.tolist() == [0, 0, 1]
    assert hasher.modes_.tolist() == [1, 2, 1]
    # cos(pi x / 2), cos(2 pi x / 2), cos(pi y) at the corners.
    assert np.allclose(hasher.decision_function(corners), [[1, 1, 1], [-1, 1, 1], [1, 1, -1], [-1, 1, -1]])


def test_modes_agree_with_a_search_over_all_of_them():
    X = box(400, 3.0, 2.2, 0.9)
    hasher = SpectralHash(12).fit(X)
    frequencies = sorted(mode / side for side in hasher.sides_ for mode in range(1, 40))[:12]
    assert np.allclose(hasher.modes_ / hasher.sides_[hasher.directions_], frequencies)


def test_bits_are_balanced_on_a_uniform_box():
    codes = SpectralHash(5).fit_transform(box(20_000, 4.0, 2.6, 1.7))
    assert np.abs(codes.mean(axis=0)).max() < 0.05


def test_rows_outside_the_box_continue_the_cosine():
    X = box(300, 4.0, 1.0)
    hasher = SpectralHash(2).fit(X)
    inside = X[:5]
    one_period_on = inside + 2 * hasher.sides_[0] * hasher.components_[0]
    assert np.allclose(hasher.decision_function(inside), hasher.decision_function(one_period_on))


def test_shifting_the_rows_does_not_change_codes():
    X = load_digits().data[:200]
    assert np.array_equal(SpectralHash(8).fit_transform(X), SpectralHash(8).fit_transform(X + 100.0))


def test_percentile_ranges_ignore_an_outlier():
    X = np.concatenate([box(1000, 4.0, 1.0), [[500.0, 0.5]]])
    narrow, wide = (SpectralHash(1, ranges=ranges).fit(X) for ranges in ("percentile", "minmax"))
    assert narrow.sides_[0] < 5 < wide.sides_[0]


def test_constant_rows_are_refused():
    with pytest.raises(ValueError, match="All 5 rows"):
        SpectralHash(2).fit(np.ones((5, 3)))
