"""Kernel expansions over new samples, against sums of stored kernels."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from starshl.kernels import (
    CallableKernel,
    Gaussian,
    ShiftedCosine,
    SpectrumKernel,
    expand_mixture,
    expand_over_rows,
    fit_kernels,
    rich_kernels,
    scaled_kernels,
)


def problem(n_samples=300, n_support=600, n_columns=4, seed=0):
    rng = np.random.default_rng(seed)
    support = rng.standard_normal((n_support, 9))
    samples = rng.standard_normal((n_samples, 9))
    support[7] = 0.0
    samples[5], samples[6] = support[3], 0.0
    return samples, support, rng.standard_normal((n_columns, n_support))


def plain_mixture(kernels, samples, support, weights, coefficients):
    total = sum(weight * kernel(samples, support) for weight, kernel in zip(weights, kernels, strict=True))
    return total @ coefficients.T


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("preset", [rich_kernels, scaled_kernels])
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_mixtures_equal_the_sum_of_all_kernels(preset, precision, container):
    samples, support, coefficients = problem()
    kernels = fit_kernels(preset(), support)
    weights = np.random.default_rng(1).random(len(kernels))
    weights[2] = 0.0
    found = expand_mixture(
        kernels, container(samples.astype(precision)), container(support.astype(precision)), weights, coefficients
    )
    expected = plain_mixture(kernels, samples, support, weights, coefficients)
    assert found.dtype == precision
    assert found.shape == (300, 4)
    # The sum of 600 terms of size one.
    assert np.abs(found - expected).max() < (2e-3 if precision == np.float32 else 1e-10)


def test_mixtures_of_float32_rows_of_very_different_length_keep_their_digits():
    samples, support, coefficients = problem()
    samples[::2] *= 1000
    kernels, weights = [ShiftedCosine(4), ShiftedCosine(16)], np.ones(2)
    samples, support = samples.astype(np.float32), support.astype(np.float32)
    found = expand_mixture(kernels, samples, support, weights, coefficients)
    expected = plain_mixture(kernels, samples.astype(float), support.astype(float), weights, coefficients)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-3


def test_mixtures_equal_expansions_whose_bits_share_their_weights():
    samples, support, coefficients = problem()
    kernels = fit_kernels(rich_kernels(), support)
    weights = np.random.default_rng(2).random(8)
    each = expand_over_rows(kernels, samples, support, np.tile(weights, (4, 1)), coefficients)
    assert expand_mixture(kernels, samples, support, weights, coefficients) == pytest.approx(each)


def test_mixtures_have_the_same_bytes_for_any_number_of_threads():
    samples, support, coefficients = problem(n_samples=700)
    kernels = fit_kernels(rich_kernels(), support)
    one, two = (expand_mixture(kernels, samples, support, np.ones(8), coefficients, n_jobs) for n_jobs in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_mixtures_of_functions_and_strings_are_taken():
    samples, support = ["abc", "abd"], ["ab", "bc", "xyz"]
    kernels = [SpectrumKernel(2), CallableKernel(lambda a, b: float(a[0] == b[0])).fit(support)]
    found = expand_mixture(kernels, np.array(samples, object), np.array(support, object), np.ones(2), np.eye(3))
    expected = sum(kernel(samples, support) for kernel in kernels)
    assert found == pytest.approx(expected)


def test_a_mixture_of_nothing_is_zero():
    samples, support, coefficients = problem()
    assert not expand_mixture([Gaussian(1.0)], samples, support, np.zeros(1), coefficients).any()
    assert not expand_mixture([Gaussian(1.0)], samples, support[:0], np.ones(1), coefficients[:, :0]).any()
