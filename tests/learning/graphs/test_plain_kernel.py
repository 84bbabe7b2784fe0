"""Kernels between rows: of dense and sparse rows, and given ones."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist

from starshl.learning.graphs.plain_kernel import GivenKernel, RowsKernel, inverse_with_ridge

N_ROWS = 60


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((N_ROWS, 5)) + 1.0


def gaussian(rows, factor=0.5):
    distances = np.sort(pdist(rows))
    median = distances[(len(distances) - 1) // 2]
    return np.exp(-cdist(rows, rows, "sqeuclidean") / (2 * (factor * median) ** 2))


def test_the_plain_kernel_is_a_gaussian_of_half_the_median_distance(rows):
    some, others = np.array([3, 1]), np.array([0, 5, 9])
    assert np.allclose(RowsKernel(rows).gram(), gaussian(rows))
    assert np.allclose(RowsKernel(rows).block(some, others), gaussian(rows)[np.ix_(some, others)])


def test_labels_choose_among_three_gaussians_and_two_powers_of_the_shifted_cosine(rows):
    everything = np.arange(N_ROWS)
    found = [kernel(everything, everything) for kernel in RowsKernel(rows).kernels]
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = (1 + unit @ unit.T) / 2
    expected = [*(gaussian(rows, factor) for factor in (0.5, 1.0, 2.0)), cosine**4, cosine**16]
    for kernel, by_hand in zip(found, expected, strict=True):
        assert np.allclose(kernel, by_hand)


def test_linear_rows_are_centered_and_of_length_one_on_average(rows):
    centered = rows - rows.mean(axis=0)
    by_hand = centered @ centered.T / np.mean(np.sum(centered**2, axis=1))
    everything = np.arange(N_ROWS)
    assert np.allclose(RowsKernel(rows).linear(everything, everything), by_hand)


def test_sparse_rows_have_the_kernels_of_dense_ones(rows):
    rows = np.where(rows > 0.3, rows, 0.0)
    dense, sparse = RowsKernel(rows), RowsKernel(csr_array(rows))
    some = np.arange(7)
    assert np.allclose(dense.gram(), sparse.gram())
    assert np.allclose(dense.linear(some, some), sparse.linear(some, some))
    for one, other in zip(dense.kernels, sparse.kernels, strict=True):
        assert np.allclose(one(some, some), other(some, some))


def test_a_given_kernel_is_the_only_one(rows):
    given = GivenKernel(gaussian(rows))
    (only,) = given.kernels
    assert np.array_equal(only(np.array([2]), np.array([4, 5])), gaussian(rows)[[2]][:, [4, 5]])


def test_a_matrix_that_is_no_kernel_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        inverse_with_ridge(-100.0 * np.eye(N_ROWS), np.ones(N_ROWS))
