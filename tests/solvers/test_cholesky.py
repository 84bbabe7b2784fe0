"""Solves and inverse diagonals of kernel matrices with a ridge, against dense inverses."""

import numpy as np
import pytest

from starshl.kernels import Gaussian
from starshl.solvers import RidgeFactor


def kernel_matrix(n_rows, seed=0):
    return Gaussian(2.0).gram(np.random.default_rng(seed).standard_normal((n_rows, 6))) + 1.0


@pytest.mark.parametrize("n_rows", [1, 2, 40, 300])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_solutions_and_inverse_diagonals_are_those_of_the_inverse(n_rows, precision):
    K = kernel_matrix(n_rows)
    ridge = np.random.default_rng(1).uniform(0.1, 1.0, n_rows)
    B = np.random.default_rng(2).standard_normal((n_rows, 3))
    inverse = np.linalg.inv(K + np.diag(ridge))
    factor = RidgeFactor(K.astype(precision), ridge)
    tolerance = 1e-3 if precision == np.float32 else 1e-11
    before = factor.solve(B)
    assert before == pytest.approx(inverse @ B, abs=tolerance)
    assert factor.inverse_diagonal() == pytest.approx(np.diag(inverse), rel=tolerance)
    assert factor.solve(B) == pytest.approx(inverse @ B, abs=tolerance)
    assert factor.solve(B[:, 0]) == pytest.approx(inverse @ B[:, 0], abs=tolerance)
    assert factor.dtype == precision


def test_the_matrix_is_kept_unless_it_may_be_overwritten():
    K = kernel_matrix(50)
    kept = K.copy()
    factor = RidgeFactor(K, 0.1)
    assert np.array_equal(K, kept)
    expected = factor.inverse_diagonal()
    assert np.array_equal(RidgeFactor(K, 0.1, overwrite=True).inverse_diagonal(), expected)
    assert np.array_equal(np.triu(K, 1), np.triu(kept, 1))


def test_float64_is_taken_where_the_ridge_is_small():
    K = kernel_matrix(200)
    assert RidgeFactor(K.astype(np.float32), 1e-3).dtype == np.float32
    # Small integers are exact in float32, so float64 has all the digits that the matrix needs.
    X = np.random.default_rng(3).integers(-2, 3, (60, 4)).astype(np.float32)
    factor = RidgeFactor(X @ X.T, 1e-6)
    assert factor.dtype == np.float64
    inverse = np.linalg.inv((X @ X.T).astype(np.float64) + 1e-6 * np.eye(60))
    assert factor.inverse_diagonal() == pytest.approx(np.diag(inverse), rel=1e-6)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_matrix_that_is_not_positive_definite_is_explained(precision):
    with pytest.raises(np.linalg.LinAlgError, match="larger ridge"):
        RidgeFactor(-np.eye(5, dtype=precision), 0.5)
