"""Kernels that read columns: the same numbers as the kernel on a matrix of these columns alone, wherever it is used."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from starshl.learning.kernels import (
    Cauchy,
    Gaussian,
    GraphGaussian,
    NormalizedLinear,
    OnColumns,
    ScaledGaussian,
    ShiftedCosine,
    SpectrumKernel,
)
from starshl.learning.kernels.banks import ColumnBank, MemoryPlan, compute_grams, make_bank
from starshl.learning.kernels.choice import fit_kernels
from starshl.learning.kernels.expansion import BitExpansion, MixtureExpansion, kernel_values
from starshl.learning.kernels.mixture import FusedKernels, KernelMixture
from starshl.learning.kernels.vectors import median_distance
from starshl.learning.kernels.views import balance_columns, by_columns, view_scales

FIRST, SECOND = np.arange(3), np.array([5, 3, 4])


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((900, 6))


@pytest.fixture(scope="module")
def kernels():
    return [
        OnColumns(Gaussian(2.0), FIRST, "first"),
        OnColumns(Cauchy(1.5), SECOND, "second"),
        NormalizedLinear(),
        OnColumns(ShiftedCosine(4), SECOND, "second"),
        OnColumns(Gaussian(0.02), FIRST, "first"),  # so narrow that the bank holds it as a sparse matrix
    ]


@pytest.fixture(scope="module")
def grams(rows):
    first, second = rows[:, FIRST], rows[:, SECOND]
    return np.array(
        [
            Gaussian(2.0)(first, first),
            Cauchy(1.5)(second, second),
            NormalizedLinear()(rows, rows),
            ShiftedCosine(4)(second, second),
            Gaussian(0.02)(first, first),
        ]
    )


@pytest.fixture(scope="module")
def bank(kernels, rows):
    return make_bank(kernels, rows, MemoryPlan())


def test_kernel_on_columns_is_the_kernel_of_a_matrix_of_these_columns(kernels, rows, grams):
    for kernel, gram in zip(kernels, grams, strict=True):
        assert np.allclose(kernel(rows, rows), gram, atol=1e-12)
        assert np.allclose(kernel.diagonal(rows), gram.diagonal())
    assert np.allclose(compute_grams(kernels, rows), grams, atol=1e-12)
    assert np.allclose(kernel_values(kernels, rows[:4], rows), grams[:, :4], atol=1e-12)


def test_scales_multiply_the_columns(rows):
    scales = np.array([2.0, 0.5, 1.0])
    scaled = rows[:, FIRST] * scales
    assert np.allclose(OnColumns(Gaussian(), FIRST, scales=scales)(rows, rows), Gaussian()(scaled, scaled))


def test_bank_adds_up_kernels_of_different_columns(bank, grams):
    assert isinstance(bank, ColumnBank)
    weights = np.array([0.5, 0.0, 1.0, 2.0, 0.3])
    expected = np.tensordot(weights, grams, axes=1)
    assert np.allclose(bank.combine(weights), expected, atol=1e-10)
    some = np.arange(0, 900, 2)
    out = np.full((450, 450), np.nan)
    assert bank.combine(weights, some, out) is out
    assert np.allclose(out, expected[np.ix_(some, some)], atol=1e-10)
    assert np.allclose(bank.take(some).combine(weights), out, atol=1e-10)


def test_bank_multiplies_kernels_with_coefficients(bank, grams):
    coefficients = np.random.default_rng(1).standard_normal((2, 900))
    assert np.allclose(bank.expand(coefficients), np.einsum("mij,bj->bmi", grams, coefficients), atol=1e-8)
    forms = np.einsum("i,mij,j->m", coefficients[0], grams, coefficients[0])
    assert np.allclose(bank.quadratic_forms(coefficients[0]), forms, rtol=1e-8, atol=1e-6)


def test_bank_of_float32_rows_is_the_same_to_their_precision(kernels, rows, grams):
    bank = make_bank(kernels, rows.astype(np.float32), MemoryPlan())
    assert bank.dtype == np.float32
    weights = np.ones(5)
    assert np.allclose(bank.combine(weights), grams.sum(axis=0), atol=1e-4)


def test_bank_is_the_same_for_any_number_of_threads(kernels, rows, bank):
    weights = np.array([0.5, 0.1, 1.0, 2.0, 0.3])
    threaded = make_bank(kernels, rows, MemoryPlan(n_jobs=2))
    assert np.array_equal(threaded.combine(weights), bank.combine(weights))


def test_bank_holds_matrices_of_kernels_that_the_loops_do_not_know(rows):
    few = rows[:60]
    kernels = fit_kernels([OnColumns(GraphGaussian(), FIRST), OnColumns(Gaussian(), SECOND)], few)
    grams, weights = compute_grams(kernels, few), np.array([0.3, 0.7])
    bank = make_bank(kernels, few, MemoryPlan())
    assert np.allclose(bank.combine(weights), np.tensordot(weights, grams, axes=1))
    some = np.arange(0, 60, 3)
    assert np.allclose(bank.combine(weights, some), np.tensordot(weights, grams, axes=1)[np.ix_(some, some)])
    assert np.allclose(KernelMixture(kernels, weights, few)(few[:9]), np.tensordot(weights, grams, axes=1)[:9])


@pytest.mark.parametrize("sparse", [False, True])
def test_expansions_read_columns(kernels, rows, grams, sparse):
    rng = np.random.default_rng(2)
    weights, coefficients = rng.random((2, 5)), rng.standard_normal((2, 900))
    given = csr_array(rows) if sparse else rows
    expected = np.einsum("bm,mij,bj->ib", weights, grams, coefficients)
    assert np.allclose(BitExpansion(kernels, given, weights, coefficients)(given), expected, atol=1e-8)
    shared = np.einsum("m,mij,bj->ib", weights[0], grams, coefficients)
    assert np.allclose(MixtureExpansion(kernels, given, weights[0], coefficients)(given), shared, atol=1e-8)


def test_kernels_of_the_same_columns_share_one_median(rows):
    fitted = fit_kernels([OnColumns(ScaledGaussian(0.5), FIRST, "a"), OnColumns(ScaledGaussian(), FIRST, "a")], rows)
    median = median_distance(rows[:, FIRST])
    assert [kernel.kernel for kernel in fitted] == [Gaussian(0.5 * median), Gaussian(median)]
    assert [kernel.view for kernel in fitted] == ["a", "a"]
    assert OnColumns(ScaledGaussian(), FIRST).fit(rows).kernel == Gaussian(median)


def test_groups_keep_the_order_of_the_kernels(kernels):
    assert [group.positions for group in by_columns(kernels)] == [[0, 4], [1, 3], [2]]
    assert all(FusedKernels.covers(group.kernels) for group in by_columns(kernels))


def test_balanced_columns_give_every_view_the_same_median_distance(rows):
    kernels = [OnColumns(Gaussian(), FIRST), OnColumns(Gaussian(), SECOND)]
    uneven = rows * np.array([1e3, 1e3, 1e3, 1, 1, 1])
    balanced = balance_columns(uneven, kernels)
    assert np.isclose(median_distance(balanced[:, :3]), median_distance(balanced[:, 3:]))
    assert np.allclose(balance_columns(csr_array(uneven), kernels).toarray(), balanced)
    assert balance_columns(rows, [Gaussian()]) is rows


def test_scales_of_views_follow_weights_and_distances(rows):
    kernels = [OnColumns(Gaussian(), FIRST), OnColumns(Gaussian(), np.arange(2, 5))]
    scales = view_scales(kernels, np.array([3.0, 1.0]), rows)
    parts = 0.75 / median_distance(rows[:, :3]) ** 2, 0.25 / median_distance(rows[:, 2:5]) ** 2
    assert np.allclose(scales**2, [parts[0], parts[0], sum(parts), parts[1], parts[1], 0.0])
    assert view_scales([Gaussian()], np.ones(1), rows) is None


@pytest.mark.parametrize(
    ("kernel", "columns", "message"),
    [
        (Gaussian(), [], "one or more columns"),
        (Gaussian(), [1, 1], "each once"),
        (Gaussian(), [-1], "from 0"),
        (Gaussian(), [0.5], "one or more columns"),
        (SpectrumKernel(), [0], "kernel is SpectrumKernel"),
        (lambda a, b: 1.0, [0], "A function can take"),
        (OnColumns(Gaussian(), [0]), [0], "reads columns already"),
    ],
)
def test_wrong_kernels_and_columns_are_refused(kernel, columns, message):
    with pytest.raises(ValueError, match=message):
        OnColumns(kernel, columns)


def test_rows_without_the_columns_are_refused(rows):
    with pytest.raises(ValueError, match=r"reads column 7.*6 columns"):
        OnColumns(Gaussian(), [0, 7])(rows, rows)
