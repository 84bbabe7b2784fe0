"""Kernels computed when asked for are the kernels that would have been stored."""

import numpy as np
import pytest

from starshl.kernels import (
    Gaussian,
    GramBank,
    GraphGaussian,
    KernelMix,
    NormalizedLinear,
    NormalizedPolynomial,
    VectorBank,
    compute_grams,
    expand_over_rows,
    paper_kernels,
)
from starshl.kernels._exp_loops import exp_of_nonpositive

LISTS = {
    "paper": paper_kernels(),
    "unordered": [Gaussian(3.0), NormalizedPolynomial(3, 0.5), Gaussian(0.7), NormalizedLinear(), Gaussian(1.5)],
    "one Gaussian": [Gaussian(1.3)],
    "no Gaussian": [NormalizedLinear(), NormalizedPolynomial(1, 2.0)],
}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).standard_normal((700, 12))
    X[5] = 0.0
    X[600] = X[3]
    return X


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("name", LISTS)
def test_sums_and_expansions_equal_those_of_stored_kernels(name, precision, rows):
    kernels, X = LISTS[name], rows.astype(precision)
    rng = np.random.default_rng(1)
    weights, coefficients = rng.random(len(kernels)), rng.standard_normal((3, len(X)))
    stored, computed = GramBank(compute_grams(kernels, X)), VectorBank(kernels, X)
    tolerance = 2e-5 if precision == np.float32 else 1e-10
    some = np.array([600, 3, 5, 17])
    assert np.abs(computed.combine(weights) - stored.combine(weights)).max() < tolerance
    assert np.abs(computed.combine(weights, some) - stored.combine(weights, some)).max() < tolerance
    assert np.abs(computed.expand(coefficients) - stored.expand(coefficients)).max() < 30 * tolerance
    assert computed.combine(weights).dtype == precision


def test_sums_are_exactly_symmetric(rows):
    combined = VectorBank(paper_kernels(), rows.astype(np.float32)).combine(np.ones(11))
    assert np.array_equal(combined, combined.T)


def test_equal_rows_are_at_distance_zero_in_float32(rows):
    narrow = VectorBank([Gaussian(1e-3)], rows.astype(np.float32)).combine(np.ones(1))
    assert narrow[3, 600] == narrow[600, 3] == 1.0
    assert np.count_nonzero(narrow > 1e-30) == 702


def test_bytes_do_not_depend_on_the_number_of_threads(rows):
    one, two = (VectorBank(paper_kernels(), rows, n_jobs) for n_jobs in (1, 2))
    coefficients = np.random.default_rng(2).standard_normal((2, len(rows)))
    assert one.distances.tile(0, 1).tobytes() == two.distances.tile(0, 1).tobytes()
    assert one.expand(coefficients).tobytes() == two.expand(coefficients).tobytes()


def test_only_kernels_that_the_loops_know_are_covered():
    assert KernelMix.covers(paper_kernels())
    assert not KernelMix.covers([Gaussian(1.0), GraphGaussian()])


def test_float32_rows_of_very_different_length_keep_exact_dot_products(rows):
    X = rows.astype(np.float32)
    X[::2] *= 1000
    assert not KernelMix.covers([NormalizedLinear()], X)
    assert KernelMix.covers([NormalizedLinear()], X.astype(np.float64))
    assert KernelMix.covers([Gaussian(1.0)], X)
    weights, coefficients = np.ones((1, 1)), np.eye(1, len(X))
    cosines = expand_over_rows([NormalizedLinear()], X, X, weights, coefficients)[:, 0]
    exact = NormalizedLinear()(X.astype(np.float64), X[:1].astype(np.float64))[:, 0]
    assert np.abs(cosines - exact).max() < 1e-6


@pytest.mark.parametrize(("precision", "error"), [(np.float32, 2e-7), (np.float64, 1e-15)])
def test_exponentials_are_as_exact_as_their_precision(precision, error):
    from numba import njit

    @njit
    def fill(x, out):
        for i in range(len(x)):
            out[i] = exp_of_nonpositive(x[i])

    x = -np.concatenate([np.linspace(0, 1, 1001), np.linspace(1, 80, 5001), [0.0, 1e-30]]).astype(precision)
    out = np.empty_like(x)
    fill(x, out)
    assert np.abs(out / np.exp(x.astype(np.float64)) - 1).max() < error
    assert out[0] == 1.0
