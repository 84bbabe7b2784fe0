"""Triangular factors in place, against dense linear algebra."""

import numpy as np
import pytest

from starshl.learning import linalg


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(linalg, "BLOCK", 16)


def positive_definite(n_rows=50):
    A = np.random.default_rng(0).standard_normal((n_rows, n_rows))
    return A @ A.T + np.eye(n_rows)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_lower_triangle_becomes_the_factor_and_then_its_inverse(n_jobs):
    A = positive_definite()
    factor = A.copy()
    assert linalg.factor_in_place(factor, n_jobs)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(A), atol=1e-10)
    linalg.invert_in_place(factor, n_jobs)
    linalg.clear_above_diagonal(factor)
    np.testing.assert_allclose(factor, np.linalg.inv(np.linalg.cholesky(A)), atol=1e-10)


def test_only_the_lower_triangle_is_read():
    A = positive_definite()
    factor = np.tril(A)
    assert linalg.factor_in_place(factor, None)
    np.testing.assert_allclose(factor, np.linalg.cholesky(A), atol=1e-10)


def test_a_matrix_that_is_not_positive_definite_is_told():
    A = positive_definite()
    A[30, 30] = -1.0
    assert not linalg.factor_in_place(A, None)
