"""Ridge regression over blocks of rows: against a dense solve, and against refits that leave a row out."""

import numpy as np
import pytest

from starshl.learning.solvers.ridge import RidgeSums

RIDGE, CONSTANT = 0.3, 0.7


def problem(n_rows=60, n_features=8, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n_rows, n_features))
    index = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    return features, index, rng.uniform(0.1, 2.0, n_rows)


def stream(features, index, weights, n_blocks=4, n_jobs=None):
    sums = RidgeSums(features.shape[1], index.max() + 1, n_jobs)
    for rows in np.array_split(np.arange(len(index)), n_blocks):
        sums.add(features[rows], index[rows], weights[rows])
    return sums.solve(RIDGE, CONSTANT)


def dense_scores(features, index, weights, queries):
    design = np.column_stack([features, np.full(len(features), np.sqrt(CONSTANT))])
    matrix = design.T @ (weights[:, None] * design) + RIDGE * np.eye(design.shape[1])
    solution = np.linalg.solve(matrix, design.T @ (weights[:, None] * np.eye(index.max() + 1)[index]))
    return queries @ solution[:-1] + np.sqrt(CONSTANT) * solution[-1]


def test_the_solution_is_that_of_all_rows_at_once():
    features, index, weights = problem()
    solution = stream(features, index, weights)
    scores = features @ solution.coefficients + solution.intercept
    np.testing.assert_allclose(scores, dense_scores(features, index, weights, features), atol=1e-10)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 2e-4)])
def test_leave_one_out_scores_are_those_of_refits(dtype, tolerance):
    features, index, weights = problem()
    index[-1] = 0  # every class keeps a row in every refit
    solution = stream(features.astype(dtype), index, weights)
    whitened = (features @ solution.whitening.T).astype(dtype)
    scores = solution.leave_one_out(whitened, index, weights)
    for row in range(len(index)):
        others = np.delete(np.arange(len(index)), row)
        refitted = dense_scores(features[others], index[others], weights[others], features[[row]])
        np.testing.assert_allclose(scores[[row]], refitted, atol=tolerance)


def test_a_weight_of_two_is_a_row_given_twice():
    features, index, _ = problem()
    weights = np.ones(len(index))
    weights[:5] = 2.0
    twice = np.concatenate([np.arange(len(index)), np.arange(5)])
    weighted = stream(features, index, weights)
    repeated = stream(features[twice], index[twice], np.ones(len(twice)))
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, atol=1e-10)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, atol=1e-10)


def test_sums_do_not_depend_on_the_number_of_threads():
    features, index, weights = problem(n_rows=300, n_features=700)  # more than one piece
    one, two = (stream(features.astype(np.float32), index, weights, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.coefficients.tobytes() == two.coefficients.tobytes()
    assert one.whitening.tobytes() == two.whitening.tobytes()
