"""Features over landmarks: their inner products against the kernel, for rows of every kind."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from starshl.learning.kernels import CallableKernel, Cauchy, Gaussian, NormalizedLinear, ShiftedCosine, SpectrumKernel
from starshl.learning.kernels.landmarks import LandmarkMap
from starshl.learning.kernels.mixture import KernelMixture

KERNELS = [Gaussian(1.5), Gaussian(9.0), Cauchy(2.0), ShiftedCosine(4), NormalizedLinear()]
WEIGHTS = np.array([0.3, 0.0, 0.25, 0.4, 0.05])


def rows_of(n_rows, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n_rows, 6)).astype(dtype)


def weighted_sum(A, B):
    return sum(weight * kernel(A, B) for weight, kernel in zip(WEIGHTS, KERNELS, strict=True))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-6), (np.float64, 1e-12)])
def test_a_mixture_is_the_weighted_sum_of_its_kernels(dtype, tolerance):
    A, Z = rows_of(300, 1, dtype), rows_of(70, 2, dtype)
    mixture = KernelMixture(KERNELS, WEIGHTS, Z)(A)
    assert mixture.dtype == dtype
    np.testing.assert_allclose(mixture, weighted_sum(A, Z), atol=tolerance)


def test_features_have_the_projected_kernel_as_inner_products():
    A, Z = rows_of(40, 1), rows_of(25, 2)
    phi = LandmarkMap(KERNELS, WEIGHTS, Z, precision=np.float64).features(A)
    K = weighted_sum(A, Z)
    np.testing.assert_allclose(phi @ phi.T, K @ np.linalg.solve(weighted_sum(Z, Z), K.T), atol=1e-8)


@pytest.mark.parametrize(("precision", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-8)])
def test_features_of_the_landmarks_themselves_have_the_kernel_as_inner_products(precision, tolerance):
    Z = rows_of(300)  # more than a tile
    phi = LandmarkMap(KERNELS, WEIGHTS, Z, precision=precision).features(Z)
    np.testing.assert_allclose(phi @ phi.T, weighted_sum(Z, Z), atol=tolerance)


def test_equal_landmarks_do_no_harm():
    Z = rows_of(30)
    A = rows_of(50, 1)
    once, twice = (LandmarkMap(KERNELS, WEIGHTS, each).features(A) for each in (Z, np.vstack([Z, Z])))
    np.testing.assert_allclose(once @ once.T, twice @ twice.T, atol=1e-4)


def test_a_transformed_map_multiplies_the_features():
    A, Z = rows_of(30, 1), rows_of(20, 2)
    lower = np.tril(np.random.default_rng(3).standard_normal((20, 20)))
    plain = LandmarkMap(KERNELS, WEIGHTS, Z, precision=np.float64)
    np.testing.assert_allclose(plain.transformed(lower).features(A), plain.features(A) @ lower.T, atol=1e-9)


def test_folded_coefficients_give_the_same_function():
    A, Z = rows_of(30, 1), rows_of(20, 2)
    plain = LandmarkMap(KERNELS, WEIGHTS, Z, precision=np.float64)
    coefficients = np.random.default_rng(3).standard_normal((20, 3))
    np.testing.assert_allclose(
        weighted_sum(A, Z) @ plain.fold(coefficients), plain.features(A) @ coefficients, atol=1e-9
    )


def test_sparse_rows_have_the_features_of_dense_ones():
    A, Z = np.maximum(rows_of(40, 1), 0), np.maximum(rows_of(15, 2), 0)
    dense = LandmarkMap(KERNELS, WEIGHTS, Z, precision=np.float64).features(A)
    sparse = LandmarkMap(KERNELS, WEIGHTS, csr_array(Z), precision=np.float64).features(csr_array(A))
    np.testing.assert_allclose(sparse, dense, atol=1e-9)


def test_strings_may_be_landmarks():
    texts = np.array(["abab", "abba", "baba", "aabb", "bbbb"], dtype=object)
    kernel = SpectrumKernel(2)
    phi = LandmarkMap([kernel], np.ones(1), texts, precision=np.float64).features(texts)
    np.testing.assert_allclose(phi @ phi.T, kernel(texts, texts), atol=1e-8)


def test_features_do_not_depend_on_the_number_of_threads():
    A, Z = rows_of(900, 1, np.float32), rows_of(300, 2, np.float32)
    one, two = (LandmarkMap(KERNELS, WEIGHTS, Z, n_jobs=n_jobs).features(A) for n_jobs in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_a_function_that_is_no_kernel_is_refused():
    negative = CallableKernel(lambda a, b: -float(a @ b))
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        LandmarkMap([negative], np.ones(1), rows_of(10))
