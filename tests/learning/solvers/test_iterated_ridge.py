"""Conjugate gradients against the Cholesky factorization of the same system."""

import numpy as np
import pytest

from starshl._common.threads import using_threads
from starshl.learning.solvers import iterated_ridge
from starshl.learning.solvers.iterated_ridge import Preconditioner, solve_by_steps
from starshl.learning.solvers.leave_one_out import one_hot


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Make 600 rows several blocks, and more rows than landmarks."""
    monkeypatch.setattr(iterated_ridge, "LANDMARKS", 60)
    monkeypatch.setattr(iterated_ridge, "BLOCK_ROWS", 90)


def kernel_of(rows, width):
    squared = np.sum((rows[:, None, :] - rows[None, :, :]) ** 2, axis=2)
    return np.exp(-squared / (2 * width**2)) + 1.0


def hard_problem(seed=0, n_rows=600):
    """Clusters of unequal size, copies, lonely rows, ridges that differ a hundredfold, a narrow and a wide kernel."""
    rng = np.random.default_rng(seed)
    centers = 3.0 * rng.standard_normal((7, 4))
    index = rng.choice(7, n_rows, p=[0.4, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02])
    rows = centers[index] + 0.7 * rng.standard_normal((n_rows, 4))
    rows[:20] = rows[20:40]
    rows[40:45] *= 20.0
    kernel = 0.7 * kernel_of(rows, 0.5) + 0.3 * kernel_of(rows, 4.0)
    return kernel, 10.0 ** rng.uniform(-3, -1, n_rows), one_hot(index, 8)  # nobody is of the last class


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_steps_end_at_the_solution_of_the_system(dtype, seed):
    kernel, ridges, targets = hard_problem(seed)
    found = solve_by_steps(kernel.astype(dtype), ridges, targets.astype(dtype), seed)
    exact = np.linalg.solve(kernel + np.diag(ridges), targets)
    np.testing.assert_allclose(kernel @ found.dual, kernel @ exact, atol=1e-2)
    assert found.dual.dtype == dtype
    assert 1 < found.n_steps < 60
    assert not found.dual[:, 7].any()


@pytest.mark.parametrize("seed", range(3))
def test_leave_one_out_scores_are_nearly_those_of_fits_without_each_row(seed):
    kernel, ridges, targets = hard_problem(seed)
    found = solve_by_steps(kernel, ridges, targets, seed)
    inverse = np.linalg.inv(kernel + np.diag(ridges))
    exact = targets - (inverse @ targets) / inverse.diagonal()[:, None]
    scores = targets - found.dual / found.inverse_diagonal[:, None]
    assert np.sqrt(np.mean((scores - exact) ** 2)) < 0.2 * np.sqrt(np.mean((targets - exact) ** 2))
    assert np.mean(scores.argmax(axis=1) == exact.argmax(axis=1)) > 0.98
    # The part of a row that is its own ridge is never estimated.
    assert np.all(1.0 / found.inverse_diagonal >= ridges * (1 - 1e-6))
    assert abs(np.median(np.log(found.inverse_diagonal / inverse.diagonal()))) < 0.1


def test_the_preconditioner_is_the_inverse_of_what_it_says():
    kernel, ridges, _ = hard_problem()
    approximate = Preconditioner(kernel, ridges, np.random.RandomState(0))
    rows = np.sort(np.concatenate(approximate.blocks))
    np.testing.assert_array_equal(rows, np.arange(len(kernel)))
    assert max(len(block) for block in approximate.blocks) <= 90
    inverse = approximate.solve(np.eye(len(kernel)))
    np.testing.assert_allclose(approximate.inverse_diagonal(), inverse.diagonal(), rtol=1e-6)
    matrix = np.linalg.inv(inverse)
    for block in approximate.blocks:
        own = np.ix_(block, block)
        np.testing.assert_allclose(matrix[own], (kernel + np.diag(ridges))[own], atol=2e-4)


def test_one_block_takes_a_step_or_two():
    kernel, ridges, targets = hard_problem(n_rows=80)
    found = solve_by_steps(kernel, ridges, targets, 0)
    assert found.n_steps <= 2
    inverse = np.linalg.inv(kernel + np.diag(ridges))
    np.testing.assert_allclose(found.inverse_diagonal, inverse.diagonal(), rtol=1e-2)


def test_steps_that_do_not_lead_there_return_nothing(monkeypatch):
    kernel, ridges, targets = hard_problem()
    monkeypatch.setattr(iterated_ridge, "MOST_STEPS", 2)
    assert solve_by_steps(kernel, ridges, targets, 0) is None


def test_kernels_that_are_not_positive_definite_return_nothing():
    kernel, ridges, targets = hard_problem()
    assert solve_by_steps(-kernel, ridges, targets, 0) is None


def test_any_number_of_threads_gives_the_same_bytes():
    kernel, ridges, targets = (array.astype(np.float32) for array in hard_problem())
    alone = solve_by_steps(kernel, ridges, targets, 3)
    with using_threads(2):
        both = solve_by_steps(kernel, ridges, targets, 3)
    assert both.dual.tobytes() == alone.dual.tobytes()
    assert both.inverse_diagonal.tobytes() == alone.inverse_diagonal.tobytes()
