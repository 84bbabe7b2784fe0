"""What users may write for kernels, and matrices that are no kernels."""

import numpy as np
import pytest

from starshl.learning.kernels import (
    CallableKernel,
    Gaussian,
    Kernel,
    ScaledCauchy,
    ScaledGaussian,
    ShiftedCosine,
    SpectrumKernel,
    paper_kernels,
    rich_kernels,
    scaled_kernels,
)
from starshl.learning.kernels.choice import BUILT_IN_KERNELS, resolve_kernels
from starshl.learning.kernels.kernel import check_gram, is_built_in


def rng():
    return np.random.RandomState(0)


def test_words_stand_for_lists_of_kernels():
    assert resolve_kernels("paper") == paper_kernels()
    assert resolve_kernels("scaled") == scaled_kernels()
    assert resolve_kernels("rich") == rich_kernels()


def test_the_rich_list_has_gaussians_a_cauchy_kernel_and_shifted_cosines():
    gaussians = [ScaledGaussian(2**-1.5), ScaledGaussian(0.5), ScaledGaussian(2**-0.5), ScaledGaussian(1.0)]
    cosines = [ShiftedCosine(4), ShiftedCosine(8), ShiftedCosine(16)]
    assert rich_kernels() == [*gaussians, ScaledCauchy(0.5), *cosines]


def test_a_single_kernel_or_function_is_a_list_of_one():
    assert resolve_kernels(Gaussian(2.0)) == [Gaussian(2.0)]
    (kernel,) = resolve_kernels(max)
    assert isinstance(kernel, CallableKernel)
    assert kernel.function is max


@pytest.mark.parametrize("kernels", ["gaussian", [], None, 3, [3], [Gaussian], Gaussian, ["paper"]])
def test_what_is_no_kernel_is_refused(kernels):
    with pytest.raises(ValueError, match="kernels"):
        resolve_kernels(kernels)


def test_a_class_in_place_of_an_object_is_explained():
    with pytest.raises(ValueError, match="parentheses"):
        resolve_kernels([Gaussian])


def test_built_in_kernels_are_trusted_and_others_are_not():
    class Mine(Kernel):
        def __call__(self, A, B):
            return np.ones((len(A), len(B)))

    assert is_built_in(SpectrumKernel())
    assert not is_built_in(Mine())
    assert not is_built_in(CallableKernel(max))
    assert all(name == kernel.__name__ for name, kernel in BUILT_IN_KERNELS.items())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_matrices_pass(dtype):
    X = np.random.default_rng(1).normal(size=(400, 3))
    check_gram((X @ X.T).astype(dtype), "K", rng())
    check_gram(np.zeros((3, 3), dtype), "K", rng())


def test_asymmetric_matrix_is_refused():
    K = np.eye(5)
    K[0, 1] = 0.1
    with pytest.raises(ValueError, match="The matrix is not symmetric"):
        check_gram(K, "The matrix", rng())


@pytest.mark.parametrize("size", [20, 600])
def test_indefinite_matrix_is_refused(size):
    X = np.random.default_rng(2).normal(size=(size, 2))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_gram(-np.sqrt(((X[:, None] - X[None]) ** 2).sum(2)) + 1.0, "K", rng())
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_gram(-np.eye(size), "K", rng())
