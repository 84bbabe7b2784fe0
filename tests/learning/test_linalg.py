import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from starshl.exceptions import InputError
from starshl.learning.linalg import (
    gram,
    inverse_of_kernel,
    nearest_rows,
    principal_directions,
    project,
    random_rotation,
    required_directions,
    smallest_columns,
    squared_distances,
)

A = np.random.default_rng(0).standard_normal((2500, 100))
B = np.random.default_rng(1).standard_normal((70, 100))


def test_products_agree_with_numpy():
    assert np.allclose(project(A, B, np.arange(70.0)), A @ B.T + np.arange(70.0), atol=1e-12)
    assert np.allclose(gram(A), A.T @ A, atol=1e-10)
    assert np.allclose(gram(A, A[:, :3]), A.T @ A[:, :3], atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverses_of_kernels_agree_with_numpy_and_are_symmetric(dtype):
    kernel = (B @ B.T + 10 * np.eye(len(B))).astype(dtype)
    inverse = inverse_of_kernel(kernel.copy())
    assert inverse.dtype == dtype
    assert np.array_equal(inverse, inverse.T)
    assert np.allclose(inverse @ kernel, np.eye(len(B)), atol=1e-4)


def test_an_indefinite_matrix_is_no_kernel():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        inverse_of_kernel(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_squared_distances_agree_with_scipy_and_are_never_negative():
    assert np.allclose(squared_distances(A, B), cdist(A, B, "sqeuclidean"), atol=1e-10)
    shifted = B.astype(np.float32) + np.float32(1000)
    found = squared_distances(shifted, shifted)
    assert found.dtype == np.float32
    assert (found >= 0).all()
    assert np.allclose(found, cdist(shifted, shifted, "sqeuclidean"), atol=1e-4)


def test_nearest_rows_break_ties_by_index():
    points = np.array([[0.0], [1.0], [1.0], [-1.0]])
    assert nearest_rows(points[:1], points, 4).tolist() == [[0, 1, 2, 3]]
    assert nearest_rows(points, points, 2, exclude_self=True).tolist() == [[1, 2], [2, 0], [1, 0], [0, 1]]


def test_nearest_rows_agree_with_a_full_sort():
    expected = np.argsort(cdist(A, B), axis=1)[:, :5]
    assert np.array_equal(nearest_rows(A, B, 5), expected)


# Up to a 16th of the columns are searched for one by one; of more, all are sorted.
@pytest.mark.parametrize("k", [1, 12, 13, 200])
def test_the_smallest_columns_are_those_of_a_stable_sort(k):
    values = np.random.default_rng(3).integers(0, 9, size=(20, 200)).astype(np.float32)
    assert np.array_equal(smallest_columns(values, k), np.argsort(values, axis=1, kind="stable")[:, :k])


@pytest.mark.parametrize("shape", [(80, 12), (12, 80)])
def test_principal_directions_agree_with_scikit_learn(shape):
    X = np.random.default_rng(2).standard_normal(shape) * np.geomspace(1, 9, shape[1])
    directions, variances = principal_directions(X, 6)
    pca = PCA(6, svd_solver="full").fit(X)
    assert np.allclose(np.abs(np.sum(directions * pca.components_, axis=1)), 1)
    assert np.allclose(variances * shape[0] / (shape[0] - 1), pca.explained_variance_)
    assert (directions[np.arange(6), np.abs(directions).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_principal_directions_stop_at_the_rank(dtype):
    rng = np.random.default_rng(3)
    X = (rng.standard_normal((50, 2)) @ rng.standard_normal((2, 9)) + 5).astype(dtype)
    assert principal_directions(X, 7)[0].shape == (2, 9)
    assert principal_directions(X[:2], 7)[0].shape == (1, 9)
    assert principal_directions(np.ones((5, 3), dtype), 2)[0].shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bytes_do_not_depend_on_the_number_of_threads(dtype):
    rows, others = A.astype(dtype), B.astype(dtype)

    def everything():
        found = (project(rows, others), gram(rows), squared_distances(rows, others))
        return [array.tobytes() for array in (*found, *principal_directions(rows, 8))]

    with threadpool_limits(1):
        alone = everything()
    with threadpool_limits(4):
        assert everything() == alone


def test_directions_beyond_the_rank_name_the_largest_number_allowed():
    X = np.arange(30.0)[:, None] @ np.ones((1, 8))
    with pytest.raises(InputError) as refused:
        required_directions(X, 4, "n_bits")
    assert (refused.value.parameter, refused.value.value) == ("n_bits", 4)


def test_random_rotations_are_orthogonal_and_uniform():
    rotations = [random_rotation(3, np.random.RandomState(seed)) for seed in range(4000)]
    assert np.allclose(rotations[0] @ rotations[0].T, np.eye(3), atol=1e-12)
    # Under the Haar measure every entry has mean 0 and variance 1/3; four standard errors.
    assert np.abs(np.mean(rotations, axis=0)).max() < 4 * np.sqrt(1 / 3 / 4000)
