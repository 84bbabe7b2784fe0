"""Reading samples: which kind they are, and rows that no kernel can square."""

import numpy as np
import pytest

from starshl import StarRidge, StarSHL
from starshl.hashers.star.samples import Precomputed, sample_type
from starshl.learning.kernels import CallableKernel, Gaussian, SpectrumKernel


@pytest.mark.parametrize(
    ("kernels", "X", "kind"),
    [
        ("precomputed", np.eye(3), "precomputed"),
        ([Gaussian()], [[1.0], [2.0]], "vectors"),
        ([SpectrumKernel()], ["a", "b"], "objects"),
        ([CallableKernel(max)], np.ones((3, 2)), "vectors"),
        ([CallableKernel(max)], np.array([["a", "b"]]), "objects"),
        ([CallableKernel(max)], [1.0, 2.0], "objects"),
        ([CallableKernel(max), Gaussian()], ["a"], "vectors"),
    ],
)
def test_kind_follows_from_kernels_and_samples(kernels, X, kind):
    assert sample_type(kernels, X).kind == kind


def test_rows_of_a_kernel_matrix_are_taken_on_both_sides():
    K = np.arange(32).reshape(2, 4, 4)
    rows = np.array([3, 1])
    assert np.array_equal(Precomputed(K).take(rows).values, K[:, [3, 1]][:, :, [3, 1]])


@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float64, 1e200), (np.float64, 1e-200), (np.float32, 1e25), (np.float32, 1e-25)]
)
def test_rows_that_cannot_be_squared_are_refused(dtype, scale):
    X = (scale * np.random.default_rng(0).normal(size=(20, 3))).astype(dtype)
    with pytest.raises(ValueError, match="Rescale the features"):
        StarSHL(4).fit(X, np.arange(20) % 2)


@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float64, 1e140), (np.float64, 1e-140), (np.float32, 1e15), (np.float32, 1e-13)]
)
def test_rows_that_can_be_squared_give_the_codes_of_rescaled_ones(dtype, scale):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    hasher = StarSHL(4, random_state=0).fit((scale * X).astype(dtype), y)
    assert hasher.score((scale * X).astype(dtype), y) >= 0.95


def test_short_rows_among_longer_ones_and_zero_rows_are_fine():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[0] = 1e-300
    hasher = StarSHL(4, random_state=0).fit(X, np.arange(20) % 2)
    assert hasher.transform(np.full((1, 3), 1e-300)).shape == (1, 4)
    assert hasher.transform(np.zeros((1, 3))).shape == (1, 4)


@pytest.mark.parametrize("texts", [["good", "bad"] * 5, np.array(["good", "bad"] * 5)])
def test_texts_without_a_kernel_on_texts_are_refused_with_advice(texts):
    with pytest.raises(ValueError, match=r"'good'.*SpectrumKernel.*TfidfVectorizer"):
        StarRidge(8).fit(texts, [0, 1] * 5)
