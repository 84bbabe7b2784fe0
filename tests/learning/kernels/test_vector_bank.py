"""Kernels computed when asked for are the kernels that would have been stored."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from starshl.learning.kernels import (
    Cauchy,
    Gaussian,
    GraphGaussian,
    NormalizedLinear,
    NormalizedPolynomial,
    ShiftedCosine,
    paper_kernels,
    rich_kernels,
)
from starshl.learning.kernels._fused_loops import exp_of_nonpositive
from starshl.learning.kernels.banks import GramBank, MemoryPlan, compute_grams, make_bank
from starshl.learning.kernels.choice import fit_kernels
from starshl.learning.kernels.expansion import BitExpansion
from starshl.learning.kernels.mixture import FusedKernels
from starshl.learning.kernels.vector_bank import VectorBank

LISTS = {
    "paper": paper_kernels(),
    "unordered": [Gaussian(3.0), NormalizedPolynomial(3, 0.5), Gaussian(0.7), NormalizedLinear(), Gaussian(1.5)],
    "cosines and Cauchy": [ShiftedCosine(16), Cauchy(2.0), ShiftedCosine(4), ShiftedCosine(8), Cauchy(0.3)],
    "odd powers": [ShiftedCosine(7), ShiftedCosine(1), ShiftedCosine(64), ShiftedCosine(14), ShiftedCosine(14)],
    "all families": [ShiftedCosine(3), Gaussian(2.0), NormalizedPolynomial(2, 1.0), Cauchy(1.5), NormalizedLinear()],
    "one Gaussian": [Gaussian(1.3)],
    "no Gaussian": [NormalizedLinear(), NormalizedPolynomial(1, 2.0)],
}
TILE_SIZES = [1, 2, 383, 384, 385, 700]  # tiles have 384 rows


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


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", TILE_SIZES)
def test_rich_sums_equal_those_of_kernels_evaluated_one_by_one(n_rows, precision, rows):
    kernels = fit_kernels(rich_kernels(), rows)
    weights = np.random.default_rng(4).random(8)
    weights[[1, 6]] = 0.0  # what is left are other squarings
    X = rows[:n_rows].astype(precision)
    expected = sum(weight * kernel.gram(rows[:n_rows]) for weight, kernel in zip(weights, kernels, strict=True))
    combined = VectorBank(kernels, X, stores_distances=False).combine(weights)
    assert combined.dtype == precision
    assert np.abs(combined - expected).max() < (1e-5 if precision == np.float32 else 1e-12)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_sparse_rows_have_the_sums_of_dense_rows(precision, rows):
    thin = np.where(np.random.default_rng(5).random(rows.shape) < 0.4, rows, 0.0).astype(precision)
    kernels = fit_kernels(rich_kernels(), thin)
    weights = np.arange(8.0)
    dense, sparse = (VectorBank(kernels, X).combine(weights) for X in (thin, csr_array(thin)))
    assert np.abs(dense - sparse).max() < (1e-4 if precision == np.float32 else 1e-12)


def test_sums_are_the_same_bytes_whether_distances_are_stored_or_not(rows):
    kernels = fit_kernels(rich_kernels(), rows)
    stored, computed = (VectorBank(kernels, rows, stores_distances=stores) for stores in (True, False))
    assert stored.combine(np.ones(8)).tobytes() == computed.combine(np.ones(8)).tobytes()


def test_sums_over_all_rows_can_be_written_to_given_memory(rows):
    bank = VectorBank(rich_kernels()[5:], rows, n_jobs=2)
    out = np.empty((700, 700))
    assert bank.combine(np.ones(3), out=out) is out
    assert np.array_equal(out, bank.combine(np.ones(3)))


@pytest.mark.parametrize("kernels", [paper_kernels(), [Cauchy(1.0), ShiftedCosine(4), ShiftedCosine(9)]])
def test_sums_are_exactly_symmetric(kernels, rows):
    combined = VectorBank(kernels, rows.astype(np.float32)).combine(np.ones(len(kernels)))
    assert np.array_equal(combined, combined.T)


def test_equal_rows_are_at_distance_zero_in_float32(rows):
    narrow = VectorBank([Gaussian(1e-3)], rows.astype(np.float32)).combine(np.ones(1))
    assert narrow[3, 600] == narrow[600, 3] == 1.0
    assert np.count_nonzero(narrow > 1e-30) == 702


def test_bytes_do_not_depend_on_the_number_of_threads(rows):
    kernels = [*paper_kernels(), *fit_kernels(rich_kernels(), rows)]
    one, two = (VectorBank(kernels, rows, n_jobs) for n_jobs in (1, 2))
    coefficients = np.random.default_rng(2).standard_normal((2, len(rows)))
    assert one.combine(np.ones(19)).tobytes() == two.combine(np.ones(19)).tobytes()
    assert one.distances.tile(0, 1).tobytes() == two.distances.tile(0, 1).tobytes()
    assert one.expand(coefficients).tobytes() == two.expand(coefficients).tobytes()


def test_only_kernels_that_the_loops_know_are_covered():
    assert FusedKernels.covers(paper_kernels())
    assert FusedKernels.covers([ShiftedCosine(4), Cauchy(1.0)])
    assert not FusedKernels.covers([Gaussian(1.0), GraphGaussian()])


def test_float32_rows_of_very_different_length_keep_exact_dot_products(rows):
    X = rows.astype(np.float32)
    X[::2] *= 1000
    assert not FusedKernels.covers([NormalizedLinear()], X)
    assert not FusedKernels.covers([ShiftedCosine(4)], X)
    assert FusedKernels.covers([Cauchy(1.0)], X)
    assert FusedKernels.covers([NormalizedLinear()], X.astype(np.float64))
    assert FusedKernels.covers([Gaussian(1.0)], X)
    weights, coefficients = np.ones((1, 1)), np.eye(1, len(X))
    cosines = BitExpansion([NormalizedLinear()], X, weights, coefficients)(X)[:, 0]
    exact = NormalizedLinear()(X.astype(np.float64), X[:1].astype(np.float64))[:, 0]
    assert np.abs(cosines - exact).max() < 1e-6


def test_banks_take_float32_rows_of_very_different_length_in_float64(rows):
    X = rows.astype(np.float32)
    X[::2] *= 1000
    bank = make_bank([ShiftedCosine(16), Gaussian(1.0)], X, MemoryPlan())
    assert isinstance(bank, VectorBank)
    expected = ShiftedCosine(16).gram(X.astype(np.float64))
    assert np.abs(bank.combine(np.array([1.0, 0.0])) - expected).max() < 1e-12


def test_distances_are_stored_unless_kernels_are_summed_once(rows):
    assert make_bank(paper_kernels(), rows, MemoryPlan()).distances.stored is not None
    assert make_bank(paper_kernels(), rows, MemoryPlan(stores_distances=False)).distances.stored is None


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


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_cauchy_kernels_of_any_scale_are_finite(scale, precision, rows):
    X = rows[:20].astype(precision)
    combined = VectorBank([Cauchy(scale)], X).combine(np.ones(1))
    assert combined == pytest.approx(Cauchy(scale).gram(X), abs=1e-6)
