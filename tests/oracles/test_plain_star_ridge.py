"""The plain StarRidge, which other tests compare with, is itself right: refits, finite differences."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from plain_star_ridge import PlainStarRidge, leave_one_out, rich_grams, search_loss


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
