"""StarRidge agrees with a plain float64 version, which is itself right: refits, finite differences."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import StarRidge
from starshl.learning.kernels.vectors import median_distance

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from plain_star_ridge import PlainStarRidge, leave_one_out, log_loss, rich_grams, search_loss, softmax


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:60] / 16.0, y[:60]


def test_leave_one_out_scores_are_those_of_refits_without_the_row(digits):
    X, y = digits
    Y, M = np.eye(10)[y], rich_grams(X, X, 2.0).mean(axis=0) + 1
    _, _, scores = leave_one_out(M, 0.05, Y)
    for row in (0, 17, 59):
        others = np.delete(np.arange(len(X)), row)
        dual = np.linalg.solve(M[np.ix_(others, others)] + 0.05 * np.eye(len(others)), Y[others])
        np.testing.assert_allclose(scores[row], M[row, others] @ dual, atol=1e-9)


def test_gradient_of_the_search_agrees_with_finite_differences(digits):
    X, y = digits
    grams, Y = rich_grams(X, X, 2.0), np.eye(10)[y]
    logs = np.log([*np.linspace(0.05, 0.3, 8), 0.1, 5.0])
    _, gradient = search_loss(logs, grams, Y)
    for place, step in enumerate(1e-5 * np.eye(10)):
        rise = search_loss(logs + step, grams, Y)[0] - search_loss(logs - step, grams, Y)[0]
        assert gradient[place] == pytest.approx(rise / 2e-5, rel=1e-4, abs=1e-7)


def test_all_kernels_are_one_on_the_diagonal_and_positive_definite(digits):
    X, _ = digits
    for gram in rich_grams(X, X, 2.0):
        np.testing.assert_allclose(np.diag(gram), 1.0, atol=1e-12)
        assert np.linalg.eigvalsh(gram).min() > -1e-9


def test_fit_predicts_digits_it_has_not_seen():
    X, y = load_digits(return_X_y=True)
    model = PlainStarRidge(n_search=200).fit(X[:500], y[:500])
    probabilities = model.posterior(model.class_scores(X[500:900]))
    assert (probabilities.argmax(axis=1) == y[500:900]).mean() > 0.9
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.fixture(scope="module")
def both():
    """StarRidge, and the plain model that solves all rows with its kernel weights, ridge and constant."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    hasher = StarRidge(16, random_state=0).fit(X, y)
    plain = PlainStarRidge()
    plain.X, plain.y, plain.Y, plain.median = X, y, np.eye(10)[y], median_distance(X)
    constant = float(np.median(hasher.intercept_ / hasher.dual_coef_.sum(axis=1)))
    return hasher, plain.solve(hasher.kernel_weights_.astype(np.float64), hasher.ridge_, constant), load_digits().data


def test_star_ridge_has_the_leave_one_out_scores_of_the_plain_model(both):
    hasher, plain, _ = both
    np.testing.assert_allclose(hasher.training_scores_, plain.loo_scores, atol=2e-3)


def test_bending_scores_lowers_the_log_loss_of_the_plain_temperature(both):
    hasher, plain, _ = both
    bent = np.arcsinh(hasher.curvature_ * plain.loo_scores) / hasher.curvature_ + hasher.class_shifts_
    assert log_loss(hasher.temperature_ * bent, plain.Y) < log_loss(plain.temperature * plain.loo_scores, plain.Y)


def test_star_ridge_gives_unseen_rows_the_probabilities_and_codes_of_the_plain_model(both):
    hasher, plain, rows = both
    unseen = rows[300:700] / 16.0
    bent = np.arcsinh(hasher.curvature_ * plain.class_scores(unseen)) / hasher.curvature_ + hasher.class_shifts_
    posterior = softmax(hasher.temperature_ * bent)
    np.testing.assert_allclose(hasher.predict_proba(unseen), posterior, atol=0.01)
    np.testing.assert_allclose(hasher.decision_function(unseen), posterior @ hasher.codewords_, atol=0.02)
    agreement = (hasher.encode_database(unseen).to_signs() == hasher.words.encode(posterior)).mean()
    assert agreement > 0.995  # a flip that gains next to nothing may be made or not


def test_the_search_of_star_ridge_ends_as_low_as_the_plain_one(both):
    _, plain, _ = both
    own = PlainStarRidge().fit(plain.X, plain.y)
    losses = [log_loss(model.temperature * model.loo_scores, plain.Y) for model in (plain, own)]
    assert losses[0] < losses[1] * 1.05
