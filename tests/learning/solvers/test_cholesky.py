"""Solves and inverse diagonals of kernel matrices with a ridge, against dense inverses."""

import numpy as np
import pytest

from starshl._common.threads import using_threads
from starshl.learning import linalg
from starshl.learning.kernels import Gaussian
from starshl.learning.solvers.ridge import RidgeFactor


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(linalg, "BLOCK", 16)


def kernel_matrix(n_rows, seed=0):
    return Gaussian(2.0).gram(np.random.default_rng(seed).standard_normal((n_rows, 6))) + 1.0


def with_condition(n_rows, condition, seed=0):
    """A matrix whose eigenvalues fall evenly, on a logarithmic scale, from 1 to 1 / condition."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n_rows, n_rows)))
    return (Q * np.geomspace(1.0, 1.0 / condition, n_rows)) @ Q.T


def assert_inverts(factor, A, B, tolerance):
    inverse = np.linalg.inv(A)
    largest = np.abs(inverse @ B).max()
    assert np.abs(factor.solve(B) - inverse @ B).max() < tolerance * largest
    assert factor.inverse_diagonal() == pytest.approx(np.diag(inverse), rel=tolerance)
    # From here on the factor is replaced by its inverse.
    assert np.abs(factor.solve(B) - inverse @ B).max() < tolerance * largest
    assert np.abs(factor.solve(B[:, 0]) - inverse @ B[:, 0]).max() < tolerance * largest


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_rows", [1, 2, 15, 16, 17, 32, 33, 150])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_solutions_and_inverse_diagonals_are_those_of_the_inverse(n_rows, precision):
    K = kernel_matrix(n_rows)
    ridge = np.random.default_rng(1).uniform(0.1, 1.0, n_rows)
    B = np.random.default_rng(2).standard_normal((n_rows, 3))
    factor = RidgeFactor(K.astype(precision), ridge)
    assert factor.dtype == precision
    assert_inverts(factor, K + np.diag(ridge), B, 1e-4 if precision == np.float32 else 1e-12)


@pytest.mark.parametrize("n_rows", [255, 256, 257, 600])
def test_blocks_of_their_own_size_are_exact_too(n_rows):
    K = kernel_matrix(n_rows)
    B = np.random.default_rng(2).standard_normal((n_rows, 3))
    assert_inverts(RidgeFactor(K, 0.3), K + 0.3 * np.eye(n_rows), B, 1e-11)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("condition", [1e2, 1e6, 1e10])
def test_errors_grow_no_faster_than_the_condition_number(condition):
    A = with_condition(120, condition)
    B = np.random.default_rng(2).standard_normal((120, 2))
    assert_inverts(RidgeFactor(A, 0.0), A, B, 1e-14 * condition + 1e-12)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("ridge", [1e-2, 1e-4])
def test_float32_has_a_small_residual_down_to_small_ridges(ridge):
    K = kernel_matrix(200).astype(np.float32)
    B = np.random.default_rng(2).standard_normal((200, 2))
    factor = RidgeFactor(K, ridge)
    assert factor.dtype == np.float32
    solution = factor.solve(B)
    residual = K.astype(np.float64) @ solution + ridge * solution - B
    # A backward stable method: the residual is some roundings of |A| |x|, whatever the condition number.
    assert np.abs(residual).max() < 20 * np.finfo(np.float32).eps * 400 * np.abs(solution).max()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("overwrite", [False, True])
def test_float64_takes_over_where_the_ridge_is_small(overwrite):
    # Small integers are exact in float32, so float64 has all the digits that the matrix needs.
    X = np.random.default_rng(3).integers(-2, 3, (60, 4)).astype(np.float32)
    A = (X @ X.T).astype(np.float64) + 1e-6 * np.eye(60)
    factor = RidgeFactor(X @ X.T, 1e-6, overwrite=overwrite)
    assert factor.dtype == np.float64
    assert_inverts(factor, A, np.eye(60, 2), 1e-6)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("overwrite", [False, True])
def test_float64_takes_over_where_float32_fails(overwrite, monkeypatch):
    monkeypatch.setattr("starshl.learning.solvers.ridge.SMALLEST_FLOAT32_RIDGE", 0.0)
    X = np.random.default_rng(3).integers(-99, 100, (60, 4)).astype(np.float32)
    K = X @ X.T
    A = K.astype(np.float64) + 1e-3 * np.eye(60)  # the ridge is lost beside entries of 10,000
    factor = RidgeFactor(K, 1e-3, overwrite=overwrite)
    assert factor.dtype == np.float64
    assert_inverts(factor, A, np.eye(60, 2), 1e-5)


def test_the_matrix_is_kept_unless_it_may_be_overwritten():
    K = kernel_matrix(50)
    kept = K.copy()
    expected = RidgeFactor(K, 0.1).inverse_diagonal()
    assert np.array_equal(K, kept)
    factor = RidgeFactor(K, 0.1, overwrite=True)
    assert not np.array_equal(K, kept)
    assert np.array_equal(factor.inverse_diagonal(), expected)


def test_whole_numbers_are_taken():
    assert RidgeFactor(np.ones((2, 2), dtype=int), 1, overwrite=True).inverse_diagonal() == pytest.approx(2 / 3)


def test_matrices_in_any_order_in_memory_are_taken():
    K = kernel_matrix(50)
    expected = RidgeFactor(K, 0.1).inverse_diagonal()
    assert np.array_equal(RidgeFactor(np.asfortranarray(K), 0.1, overwrite=True).inverse_diagonal(), expected)
    assert np.array_equal(RidgeFactor(np.tile(K, (1, 2))[:, :50], 0.1, overwrite=True).inverse_diagonal(), expected)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_bytes_do_not_depend_on_the_number_of_threads(precision):
    K = kernel_matrix(700).astype(precision)
    B = np.random.default_rng(2).standard_normal((700, 3))

    def bytes_with(n_jobs):
        with using_threads(n_jobs):
            factor = RidgeFactor(K, 0.1)
            return b"".join(part.tobytes() for part in (factor.solve(B), factor.inverse_diagonal(), factor.solve(B)))

    assert bytes_with(1) == bytes_with(2) == bytes_with(3)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [2, 40])
def test_a_matrix_that_is_not_positive_definite_is_explained(precision, bad):
    K = np.eye(50, dtype=precision)
    K[bad, bad] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="or rows in float64"):
        RidgeFactor(K, 0.5)
