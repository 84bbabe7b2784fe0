"""GramBank, compute_grams and BitExpansion: plain sums, float64 accumulation, any number of threads."""

import numpy as np
import pytest

from starshl.learning.kernels import (
    CallableKernel,
    Gaussian,
    GraphGaussian,
    Kernel,
    NormalizedLinear,
    SpectrumKernel,
    scaled_kernels,
)
from starshl.learning.kernels.banks import GramBank, compute_grams
from starshl.learning.kernels.expansion import BitExpansion


def rows_of(n_rows, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, 20)).astype(dtype)


def mixed_kernels(samples):
    def laplace(A, B):
        return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2) / 20)

    kernels = [*scaled_kernels(), GraphGaussian(), CallableKernel(laplace)]
    return [kernel.fit(samples) for kernel in kernels]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grams_hold_every_kernel_in_the_precision_of_the_rows(dtype):
    X = rows_of(70, dtype)
    kernels = mixed_kernels(X)
    grams = compute_grams(kernels, X)
    assert grams.dtype == dtype
    for gram, kernel in zip(grams, kernels, strict=True):
        assert gram == pytest.approx(kernel(X, X), abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_byte(dtype):
    X, X_new = rows_of(1100, dtype), rows_of(1300, dtype, seed=1)
    kernels = [kernel.fit(X) for kernel in scaled_kernels()]
    assert compute_grams(kernels, X, n_jobs=1).tobytes() == compute_grams(kernels, X, n_jobs=2).tobytes()
    rng = np.random.default_rng(2)
    weights, coefficients = rng.random((9, len(kernels))), rng.normal(size=(9, len(X)))
    one, two = (BitExpansion(kernels, X, weights, coefficients)(X_new, n_jobs) for n_jobs in (1, 2))
    assert one.dtype == dtype
    assert one.tobytes() == two.tobytes()


def test_expansion_over_new_rows_is_the_plain_sum():
    X, X_new = rows_of(50), rows_of(30, seed=1)
    kernels = mixed_kernels(X)
    rng = np.random.default_rng(2)
    weights, coefficients = rng.random((4, len(kernels))), rng.normal(size=(4, 50))
    weights[2, 1:4] = 0.0
    scores = BitExpansion(kernels, X, weights, coefficients)(X_new)
    expected = sum(kernel(X_new, X) @ (weights[:, m, None] * coefficients).T for m, kernel in enumerate(kernels))
    assert scores == pytest.approx(expected, abs=1e-12)


def test_training_rows_come_out_of_the_expansion_as_out_of_the_bank():
    X = rows_of(600)
    kernels = mixed_kernels(X)
    rng = np.random.default_rng(3)
    weights, eta = rng.random(len(kernels)), rng.normal(size=600)
    inside = weights @ GramBank(compute_grams(kernels, X)).expand(eta[None])[0]
    outside = BitExpansion(kernels, X, weights[None], eta[None])(X)[:, 0]
    assert np.abs(inside - outside).max() < 1e-9


def test_a_kernel_of_no_weight_is_not_evaluated():
    def refuse(A, B):
        raise AssertionError("evaluated")

    X = rows_of(5)
    kernels = [NormalizedLinear(), CallableKernel(refuse)]
    weights = np.array([[1.0, 0.0]])
    assert BitExpansion(kernels, X, weights, np.ones((1, 5)))(X).shape == (5, 1)


def test_no_support_gives_zero_scores():
    X = rows_of(5)
    scores = BitExpansion([Gaussian()], X[:0], np.ones((3, 1)), np.zeros((3, 0)))(X)
    assert np.array_equal(scores, np.zeros((5, 3)))


def test_a_function_is_not_called_on_no_support():
    def refuse(A, B):
        raise AssertionError("called on an empty block")

    X = rows_of(5)
    scores = BitExpansion([CallableKernel(refuse)], X[:0], np.ones((3, 1)), np.zeros((3, 0)))(X)
    assert np.array_equal(scores, np.zeros((5, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bank_combines_all_rows_or_some(dtype):
    grams = compute_grams([Gaussian(3.0), NormalizedLinear()], rows_of(40, dtype))
    bank, weights = GramBank(grams), np.array([0.3, 0.7])
    expected = 0.3 * grams[0].astype(float) + 0.7 * grams[1].astype(float)
    assert bank.combine(weights) == pytest.approx(expected, abs=1e-6)
    rows = np.array([3, 1, 20])
    assert bank.combine(weights, rows) == pytest.approx(expected[np.ix_(rows, rows)], abs=1e-6)
    assert bank.combine(weights).dtype == bank.combine(weights, rows).dtype == dtype


def test_bank_sums_a_float32_gram_in_float64():
    rng = np.random.default_rng(4)
    grams = (1000 + rng.random((1, 300, 300))).astype(np.float32)
    grams = (grams + grams.transpose(0, 2, 1)) / 2
    eta = rng.normal(size=300)
    eta -= eta.mean()
    exact = grams[0].astype(np.float64) @ eta
    assert np.abs(GramBank(grams).expand(eta[None])[0, 0] - exact).max() < 1e-9


class Broken(Kernel):
    def __init__(self, values):
        self.values = values

    def __call__(self, A, B):
        return self.values(len(A), len(B))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda n, m: np.zeros((n, m + 1)), r"returned shape \(4, 5\)"),
        (lambda n, m: np.full((n, m), np.nan), "NaN or infinity"),
        (lambda n, m: 0.0, r"returned shape \(\)"),
    ],
)
def test_kernel_values_that_are_wrong_are_refused(values, message):
    X = rows_of(4)
    with pytest.raises(ValueError, match=message):
        compute_grams([Broken(values)], X)
    with pytest.raises(ValueError, match=message):
        BitExpansion([Broken(values)], X, np.ones((1, 1)), np.ones((1, 4)))(X)


def test_strings_have_grams_too():
    words = np.array(["abc", "abd", "xyz"], dtype=object)
    grams = compute_grams([SpectrumKernel(2)], words)
    assert grams.dtype == np.float64
    assert grams[0] == pytest.approx(SpectrumKernel(2)(words, words))
