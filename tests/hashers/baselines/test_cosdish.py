from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.hashers.baselines import COSDISH
from starshl.hashers.baselines.cosdish import (
    _linear_regression,
    column_error,
    descend_by_flips,
    improve_columns,
    similar_codes,
)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order] / 16.0, y[order]


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=12)
    S = np.where(classes[:, None] == classes, 1.0, -1.0)
    return S, np.where(rng.random((12, 4)) < 0.5, -1.0, 1.0)


def test_tied_vote_keeps_the_old_sign():
    H = np.array([[1.0, 1.0], [-1.0, 1.0]])
    for old in (-1.0, 1.0):
        assert similar_codes(np.array([[1.0, -1.0]]), H, np.array([[-1.0, old]])).tolist() == [[1.0, old]]


def test_codes_outside_are_the_exhaustive_minimum_of_the_absolute_errors(problem):
    S, codes = problem
    inside = np.arange(5)
    found = similar_codes(S[5:, inside], codes[inside], codes[5:])
    for row, target in zip(found, 4 * S[5:, inside], strict=True):
        errors = [np.abs(target - codes[inside] @ h).sum() for h in product((-1.0, 1.0), repeat=4)]
        assert np.abs(target - codes[inside] @ row).sum() == min(errors)


def test_flips_end_where_no_single_flip_helps_and_lower_the_cost():
    rng = np.random.default_rng(0)
    Q, linear = rng.standard_normal((9, 9)), rng.standard_normal(9)
    Q = Q + Q.T

    def cost(h):
        return -2 * h @ Q @ h - 2 * linear @ h

    h = np.where(rng.random(9) < 0.5, -1.0, 1.0)
    before = cost(h)
    assert descend_by_flips(Q, linear, h) > 0
    assert cost(h) < before
    for i in range(9):
        flipped = h.copy()
        flipped[i] *= -1
        assert cost(flipped) >= cost(h) - 1e-9


def test_improved_columns_lower_the_squared_error_counted_by_brute_force(problem):
    S, codes = problem
    inside, outside = np.arange(5), np.arange(5, 12)

    def error(H):
        return sum((4 * S[i, j] - H[i] @ H[j]) ** 2 for i, j in product(range(12), inside))

    improved = codes.copy()
    improved[inside] = improve_columns(S[:5, :5], S[5:, :5], codes[inside], codes[outside])
    assert error(improved) < error(codes)
    share = column_error(S[:, inside], improved, inside)
    assert share == pytest.approx(error(improved) / np.sum((4 * S[:, inside]) ** 2))
    for i, k in product(inside, range(4)):
        flipped = improved.copy()
        flipped[i, k] *= -1
        # Later bits changed after bit k was settled, so only the last bit is sure to be at a minimum.
        assert k < 3 or error(flipped) >= error(improved)


def test_error_of_the_columns_never_rises_in_the_second_step(digits):
    history = COSDISH(12, random_state=0).fit(*digits).objective_history_.reshape(30, 2)
    assert np.all(history[:, 1] <= history[:, 0] + 1e-12)
    assert history[-1, 1] < 0.5 * history[0, 0]


@pytest.mark.parametrize(("variant", "least"), [("linear", 0.84), ("kernel", 0.95)])
def test_held_out_digits_are_retrieved(digits, variant, least):
    X, y = digits
    hasher = COSDISH(16, variant=variant, random_state=0).fit(X[:1000], y[:1000])
    distances = hasher.encode(X[1000:]).distances(hasher.encode(X[:1000]))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
    # Measured .89 and .99; the bounds leave .05 and .04.
    assert np.mean(y[:1000][nearest] == y[1000:, None]) > least


@pytest.mark.parametrize("variant", ["linear", "kernel"])
def test_codes_do_not_depend_on_the_unit_of_the_features(digits, variant):
    X, y = digits[0][:400], digits[1][:400]
    settings = {"variant": variant, "random_state": 0}
    codes = [COSDISH(8, **settings).fit(c * X, y).transform(c * X) for c in (1, 256)]
    assert np.mean(codes[0] == codes[1]) > 0.999


def test_regularization_means_the_same_for_any_number_of_rows(digits):
    X, y = digits[0][:300], digits[1][:300]
    once = _linear_regression(X, np.where(y[:, None] == np.arange(10), 1.0, -1.0), 0.1)
    X, y = np.tile(X, (4, 1)), np.tile(y, 4)
    repeated = _linear_regression(X, np.where(y[:, None] == np.arange(10), 1.0, -1.0), 0.1)
    np.testing.assert_allclose(once[0], repeated[0], rtol=1e-8, atol=1e-10)


def test_all_rows_may_be_columns(digits):
    X, y = digits[0][:40], digits[1][:40]
    assert COSDISH(4, n_columns=1000, random_state=0).fit(X, y).transform(X).shape == (40, 4)


def test_missing_labels_point_to_methods_that_need_none(digits):
    with pytest.raises(ValueError, match="COSDISH requires y"):
        COSDISH(4).fit(digits[0])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"variant": "trees"}, "variant is 'trees'"),
        ({"n_columns": 0}, "n_columns is 0"),
        ({"max_iter": 0}, "max_iter is 0"),
    ],
)
def test_bad_parameters_are_named(digits, params, match):
    with pytest.raises(ValueError, match=match):
        COSDISH(4, **params).fit(*digits)
