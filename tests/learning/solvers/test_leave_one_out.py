"""Leave-one-out scores against refits, gradients against finite differences, and what the search finds."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from starshl.learning.kernels import rich_kernels
from starshl.learning.kernels.banks import compute_grams
from starshl.learning.kernels.choice import fit_kernels
from starshl.learning.solvers.calibration import Calibration, CalibrationLoss, fit_calibration
from starshl.learning.solvers.leave_one_out import LeaveOneOutLoss, fit_mixture, leave_one_out_scores, one_hot


@pytest.fixture(scope="module")
def problem():
    """Two kernels over forty rows of three classes, with ridge multipliers and weights."""
    rng = np.random.default_rng(0)
    index = np.arange(40) % 3
    rows = rng.standard_normal((3, 4))[index] + rng.standard_normal((40, 4))
    squared = ((rows[:, None] - rows) ** 2).sum(axis=2)
    grams = np.array([np.exp(-squared / 2), np.exp(-squared / 20)])
    return grams, index, rng.uniform(0.5, 4.0, 40), rng.uniform(0.5, 4.0, 40)


def slopes(function, point, step=1e-5):
    return [(function(point + move)[0] - function(point - move)[0]) / (2 * step) for move in step * np.eye(len(point))]


def test_scores_equal_those_of_refits_without_the_row(problem):
    grams, index, ridge_scale, _ = problem
    matrix = 0.3 * grams[0] + 0.7 * grams[1] + 0.2
    ridge, targets = np.diag(0.05 * ridge_scale), one_hot(index, 3)
    inverse = np.linalg.inv(matrix + ridge)
    scores = leave_one_out_scores(targets, inverse @ targets, inverse.diagonal())
    for row in range(len(index)):
        others = np.delete(np.arange(len(index)), row)
        kept = np.ix_(others, others)
        refit = np.linalg.solve(matrix[kept] + ridge[kept], targets[others])
        np.testing.assert_allclose(scores[row], matrix[row, others] @ refit, atol=1e-10)


@pytest.mark.parametrize("point", [[-1.0, -0.5, -2.0, 1.5], [0.5, -6.0, -8.0, 2.5], [-3.0, 0.1, 1.0, 0.0]])
def test_gradient_of_the_search_equals_finite_differences(problem, point):
    loss = LeaveOneOutLoss(problem[0], problem[1], 3, *problem[2:])
    value, gradient = loss(np.array(point))
    assert np.isfinite(value)
    np.testing.assert_allclose(gradient, slopes(loss, np.array(point)), rtol=1e-5, atol=1e-7)


def test_classes_without_a_row_count_as_if_their_scores_were_computed(problem):
    grams, index, ridge_scale, weights = problem
    point = np.array([-1.0, -0.5, -2.0, 1.5])
    theta, (ridge, temperature) = np.exp(point[:2]), np.exp(point[2:])
    matrix = np.tensordot(theta, grams, 1) + 1.0 + ridge * theta.sum() * np.diag(ridge_scale)
    targets = one_hot(3 * index + 1, 11)  # of eleven classes, three have rows
    inverse = np.linalg.inv(matrix)
    scores = leave_one_out_scores(targets, inverse @ targets, inverse.diagonal())
    own = log_softmax(temperature * scores, axis=1)[np.arange(40), 3 * index + 1]
    penalty = 1e-5 * point[:2] @ point[:2]

    loss = LeaveOneOutLoss(grams, 3 * index + 1, 11, ridge_scale, weights)
    value, gradient = loss(point)
    assert value == pytest.approx(-weights @ own / weights.sum() + penalty, rel=1e-10)
    np.testing.assert_allclose(gradient, slopes(loss, point), rtol=1e-5, atol=1e-7)


def test_gradient_is_right_for_more_rows_than_a_block():
    rng = np.random.default_rng(1)
    rows, index = rng.standard_normal((200, 2)), rng.integers(0, 2, 200)
    grams = np.exp(-((rows[:, None] - rows) ** 2).sum(axis=2))[None]
    loss = LeaveOneOutLoss(grams, index, 2, np.ones(200), np.ones(200))
    point = np.array([-0.5, -2.0, 1.0])
    np.testing.assert_allclose(loss(point)[1], slopes(loss, point), rtol=1e-5, atol=1e-7)


def test_search_lowers_the_loss_and_its_weights_sum_to_one(problem):
    grams, index, ridge_scale, weights = problem
    mixture = fit_mixture(grams, index, 3, ridge_scale, weights)
    loss = LeaveOneOutLoss(grams, index, 3, ridge_scale, weights)
    found = [*mixture.weights / mixture.constant, mixture.ridge, mixture.temperature]
    assert loss(np.log(np.maximum(found, 1e-9)))[0] < loss(np.log([0.5, 0.5, 0.1, 5.0]))[0]
    assert mixture.weights.sum() == pytest.approx(1.0)


def test_unit_of_a_kernel_does_not_matter(problem):
    grams, *others = problem
    plain = fit_mixture(grams, others[0], 3, *others[1:])
    scaled = fit_mixture(grams * np.array([1e4, 1e-3])[:, None, None], others[0], 3, *others[1:])
    np.testing.assert_allclose(scaled.weights * [1e4, 1e-3], plain.weights, rtol=1e-4, atol=1e-9)
    assert scaled.ridge == pytest.approx(plain.ridge, rel=1e-4)


def test_kernels_of_little_weight_are_dropped(problem):
    grams, *others = problem
    constant = np.ones((1, 40, 40))  # the mixture has a constant of its own
    weights = fit_mixture(np.concatenate([grams, constant]), others[0], 3, *others[1:]).weights
    assert np.all((weights == 0) | (weights >= 0.005))


def test_kernels_of_little_weight_that_scores_depend_on_are_kept():
    # The cosine gets nearly all of the weight beside a tiny ridge, though it cannot tell rows of one direction apart.
    X = np.random.default_rng(4).uniform(-1, 1, (700, 2))
    index = (np.sin(3 * X.sum(axis=1)) > 0).astype(int)
    grams = compute_grams(fit_kernels(rich_kernels(), X), X)
    mixture = fit_mixture(grams, index, 2, np.ones(700), np.ones(700))
    targets = one_hot(index, 2)
    inverse = np.linalg.inv(np.tensordot(mixture.weights, grams, 1) + mixture.constant + mixture.ridge * np.eye(700))
    scores = leave_one_out_scores(targets, inverse @ targets, inverse.diagonal())
    assert np.mean(scores.argmax(axis=1) == index) > 0.95


def test_gradient_of_the_calibration_equals_finite_differences():
    rng = np.random.default_rng(2)
    loss = CalibrationLoss(rng.standard_normal((30, 3)), rng.integers(0, 3, 30), rng.uniform(0.5, 2.0, 30))
    point = np.array([1.0, 0.5, 0.1, -0.2, 0.3])
    np.testing.assert_allclose(loss(point)[1], slopes(loss, point), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("shape", [(40, 3), (70, 3000), (2, 40_000)])  # one tile, several, and one for each row
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_loss_of_the_calibration_is_that_of_whole_matrices(shape, precision):
    rng = np.random.default_rng(4)
    scores = rng.standard_normal(shape).astype(precision)
    scores[0] *= 1000  # whose exponentials are too large for any float
    index, weights = rng.integers(0, shape[1], shape[0]), rng.uniform(0.5, 2.0, shape[0])
    point = np.array([3.0, 0.7, *0.1 * rng.standard_normal(shape[1])])
    loss = CalibrationLoss(scores, index, weights)

    (temperature, curvature), shifts, exact = np.exp(point[:2]), point[2:], scores.astype(np.float64)
    bent = np.arcsinh(curvature * exact) / curvature
    errors = softmax(temperature * bent + shifts, axis=1) - one_hot(index, shape[1])
    errors *= (weights / weights.sum())[:, None]
    own = log_softmax(temperature * bent + shifts, axis=1)[np.arange(len(index)), index]
    by_curvature = exact / np.sqrt(1 + (curvature * exact) ** 2) - bent
    expected = [np.sum(temperature * errors * bent), np.sum(temperature * errors * by_curvature)]

    value, gradient = loss(point)
    assert value == pytest.approx(-weights @ own / weights.sum() + loss.prior * shifts @ shifts, rel=1e-12)
    np.testing.assert_allclose(gradient[:2], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gradient[2:], errors.sum(axis=0) + 2 * loss.prior * shifts, rtol=1e-9, atol=1e-12)


def test_calibration_finds_the_temperature_that_made_the_labels():
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((20_000, 4))
    truth = Calibration(3.0, 2.0, np.array([0.1, -0.1, 0.05, -0.05]))
    index = np.argmax(truth.temperature * truth.bend(scores) + rng.gumbel(size=scores.shape), axis=1)
    found = fit_calibration(scores, index, np.ones(len(scores)))
    assert found.temperature == pytest.approx(3.0, rel=0.05)
    np.testing.assert_allclose(found.bend(scores[:50]), truth.bend(scores[:50]), atol=0.1)


def test_scores_that_only_mislead_get_the_lowest_temperature():
    index = np.arange(60) % 3
    found = fit_calibration(-one_hot(index, 3), index, np.ones(60))
    assert found.temperature == 1.0


def test_calibration_without_curvature_is_straight():
    scores = np.array([[0.5, -2.0]], dtype=np.float32)
    bent = Calibration(5.0, 0.0, np.zeros(2)).bend(scores)
    assert bent.dtype == np.float32
    assert np.array_equal(bent, scores)
