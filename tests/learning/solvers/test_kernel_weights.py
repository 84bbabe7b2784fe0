"""The closed-form kernel weights against hand values, random search and a generic optimizer."""

import numpy as np
import pytest
from scipy.optimize import minimize

from starshl.learning.solvers.objective import kernel_weights, penalty

NORMS = np.array([0.3, 5.0, 1e-3, 40.0, 2.0])


def weights_of(squared_norms, p):
    squared_norms = np.asarray(squared_norms, dtype=float)
    return kernel_weights(squared_norms, p, np.full(len(squared_norms), 0.1))


def closed_form_value(squared_norms, p):
    return np.sum(squared_norms ** (p / (p + 1))) ** ((p + 1) / p) / 2


@pytest.mark.parametrize(
    ("p", "expected", "value"),
    [
        (2.0, np.array([1, 2, 3]) / np.sqrt(14), 52.383203),
        (1.0, [0.110808, 0.313414, 0.575778], 81.443036),
        (4.0, [0.471436, 0.714563, 0.911371], 42.942529),
    ],
)
def test_weights_match_hand_values(p, expected, value):
    weights = weights_of([1, 8, 27], p)
    assert weights == pytest.approx(expected, abs=1e-6)
    assert 2 * penalty(np.array([1.0, 8.0, 27.0]), weights) == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("p", [1.0, 1.01, 1.5, 2.0, 4.0, 50.0, 1000.0])
def test_weights_have_unit_norm(p):
    assert np.linalg.norm(weights_of(NORMS, p), ord=p) == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
def test_weights_beat_random_feasible_points(p):
    rng = np.random.default_rng(0)
    points = rng.exponential(size=(1000, len(NORMS))) ** rng.uniform(0.2, 3, (1000, 1))
    points /= np.linalg.norm(points, ord=p, axis=1, keepdims=True)
    best = penalty(NORMS, weights_of(NORMS, p))
    assert all(best <= penalty(NORMS, point) * (1 + 1e-6) for point in points)


@pytest.mark.parametrize("p", [1.2, 2.0, 3.0])
def test_weights_agree_with_a_generic_optimizer(p):
    found = minimize(
        lambda theta: np.sum(NORMS / theta),
        np.full(len(NORMS), 0.3),
        bounds=[(1e-6, 1.0)] * len(NORMS),
        constraints={"type": "ineq", "fun": lambda theta: 1 - np.sum(theta**p)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert weights_of(NORMS, p) == pytest.approx(found.x, abs=1e-4)
    assert 2 * penalty(NORMS, weights_of(NORMS, p)) == pytest.approx(found.fun, rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 7.0])
def test_penalty_is_the_closed_form_optimum(p):
    assert penalty(NORMS, weights_of(NORMS, p)) == pytest.approx(closed_form_value(NORMS, p), rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("scale", [1e-200, 1e-12, 3.0, 1e12, 1e200])
def test_scaling_all_norms_changes_nothing(p, scale):
    assert weights_of(scale * NORMS, p) == pytest.approx(weights_of(NORMS, p), rel=1e-9)


@pytest.mark.parametrize("p", [1.0, 2.0, 10.0])
def test_equal_norms_give_equal_weights(p):
    assert weights_of(np.full(7, 3.3), p) == pytest.approx(7 ** (-1 / p))


@pytest.mark.parametrize("p", [1001.0, 1e6, np.inf])
def test_infinite_norm_gives_ones(p):
    assert np.array_equal(weights_of(NORMS, p), np.ones(len(NORMS)))


def test_large_norms_approach_ones():
    assert weights_of(NORMS, 1000.0) == pytest.approx(np.ones(len(NORMS)), abs=0.02)


def test_kernel_of_zero_norm_gets_zero_weight():
    weights = weights_of([0, 4], 2.0)
    assert weights.tolist() == [0, 1]
    assert 2 * penalty(np.array([0.0, 4.0]), weights) == 4


def test_zero_norms_keep_the_current_weights():
    current = np.array([0.6, 0.8])
    weights = kernel_weights(np.zeros(2), 2.0, current)
    assert np.array_equal(weights, current)
    assert weights is not current


def test_near_norm_one_no_weight_is_zero():
    weights = weights_of([0, 1, 4], 1.0)
    assert 0 < weights[0] < 1e-7
    assert weights.sum() == pytest.approx(1, abs=1e-12)


def test_single_kernel_has_weight_one():
    assert weights_of([0.0], 2.0).tolist() == [1]


def test_penalty_of_a_used_kernel_without_weight_is_infinite():
    assert penalty(np.array([1.0, 1.0]), np.array([0.0, 1.0])) == np.inf
    assert penalty(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0.5
