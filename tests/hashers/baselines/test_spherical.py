import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from starshl import BinaryCodes
from starshl.hashers.baselines import SphericalHash
from starshl.hashers.baselines.spherical import balance, push, spherical_distances


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)[0] / 16.0


def test_every_sphere_holds_half_of_the_rows(digits):
    codes = SphericalHash(16, random_state=0).fit_transform(digits)
    assert np.array_equal(np.sum(codes > 0, axis=0), np.full(16, len(digits) // 2))


def test_overlaps_meet_the_tolerances(digits):
    hasher = SphericalHash(12, random_state=0).fit(digits)
    inside = (hasher.transform(digits) > 0).astype(float)
    overlaps = (inside.T @ inside)[np.triu_indices(12, 1)] / (len(digits) / 4)
    assert np.abs(overlaps - 1).mean() <= 0.1
    assert overlaps.std() <= 0.15
    assert hasher.overlap_history_[-1] < hasher.overlap_history_[0]


def test_excess_and_radii_equal_a_count_by_hand():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    radii, excess = balance(X, np.array([[0.0], [3.0]]))
    assert radii.tolist() == [1.5, 1.5]
    # The spheres hold {0, 1} and {2, 3}: no row in common, a quarter (one row) missing.
    assert excess.tolist() == [[0, -1], [-1, 0]]


def test_step_equals_the_sum_of_forces_and_keeps_the_mean():
    rng = np.random.default_rng(0)
    centers, excess = rng.standard_normal((5, 3)), rng.standard_normal((5, 5))
    excess = excess + excess.T
    np.fill_diagonal(excess, 0)
    expected = centers.copy()
    for i in range(5):
        for j in range(5):
            expected[i] += 0.5 * excess[i, j] * (centers[i] - centers[j]) / 5
    moved = push(centers, excess)
    np.testing.assert_allclose(moved, expected)
    np.testing.assert_allclose(moved.mean(axis=0), centers.mean(axis=0))


def test_spherical_distance_equals_xor_over_and():
    rng = np.random.default_rng(0)
    a, b = np.sign(rng.standard_normal((6, 10))), np.sign(rng.standard_normal((7, 10)))
    found = spherical_distances(BinaryCodes.from_signs(a), BinaryCodes.from_signs(b))
    for i, j in np.ndindex(6, 7):
        common = np.sum((a[i] > 0) & (b[j] > 0))
        assert found[i, j] == (np.sum(a[i] != b[j]) / common if common else np.inf)


def test_single_bit_needs_no_pairs(digits):
    assert SphericalHash(1, random_state=0).fit(digits).overlap_history_.tolist() == [0.0]


def test_stopping_early_warns_with_the_numbers(digits):
    with pytest.warns(ConvergenceWarning, match=r"tol_mean 0\.1\) .* after 1 iterations"):
        SphericalHash(16, max_iter=1, random_state=0).fit(digits)


@pytest.mark.parametrize(
    ("params", "match"), [({"tol_mean": -1}, "tol_mean is -1"), ({"max_iter": 0}, "max_iter is 0")]
)
def test_bad_parameters_are_named(digits, params, match):
    with pytest.raises(ValueError, match=match):
        SphericalHash(4, **params).fit(digits)
