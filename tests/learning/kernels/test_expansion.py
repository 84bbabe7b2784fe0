"""Kernel expansions over new samples, against sums of stored kernels."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from starshl._common.result_cache import ResultCache, caching_results
from starshl.learning.kernels import (
    CallableKernel,
    Cauchy,
    Gaussian,
    NormalizedLinear,
    NormalizedPolynomial,
    ShiftedCosine,
    SpectrumKernel,
    rich_kernels,
    scaled_kernels,
)
from starshl.learning.kernels.choice import fit_kernels, resolve_kernels
from starshl.learning.kernels.distances import DistanceCache, squared_distances_from_norms, squared_norms
from starshl.learning.kernels.expansion import BitExpansion, MixtureExpansion
from starshl.learning.kernels.mixture import FusedKernels


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
    found = MixtureExpansion(kernels, container(support.astype(precision)), weights, coefficients)(
        container(samples.astype(precision))
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
    found = MixtureExpansion(kernels, support, weights, coefficients)(samples)
    expected = plain_mixture(kernels, samples.astype(float), support.astype(float), weights, coefficients)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-3


def test_mixtures_equal_expansions_whose_bits_share_their_weights():
    samples, support, coefficients = problem()
    kernels = fit_kernels(rich_kernels(), support)
    weights = np.random.default_rng(2).random(8)
    each = BitExpansion(kernels, support, np.tile(weights, (4, 1)), coefficients)(samples)
    assert MixtureExpansion(kernels, support, weights, coefficients)(samples) == pytest.approx(each)


def test_mixtures_have_the_same_bytes_for_any_number_of_threads():
    samples, support, coefficients = problem(n_samples=700)
    kernels = fit_kernels(rich_kernels(), support)
    one, two = (MixtureExpansion(kernels, support, np.ones(8), coefficients)(samples, n_jobs) for n_jobs in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_mixtures_of_functions_and_strings_are_taken():
    samples, support = ["abc", "abd"], ["ab", "bc", "xyz"]
    kernels = [SpectrumKernel(2), CallableKernel(lambda a, b: float(a[0] == b[0])).fit(support)]
    found = MixtureExpansion(kernels, np.array(support, object), np.ones(2), np.eye(3))(np.array(samples, object))
    expected = sum(kernel(samples, support) for kernel in kernels)
    assert found == pytest.approx(expected)


def test_a_mixture_of_nothing_is_zero():
    samples, support, coefficients = problem()
    assert not MixtureExpansion([Gaussian(1.0)], support, np.zeros(1), coefficients)(samples).any()
    assert not MixtureExpansion([Gaussian(1.0)], support[:0], np.ones(1), coefficients[:, :0])(samples).any()


def uneven_rows(n_rows, n_features, precision, seed):
    """Rows among which some are equal, some are zero and some are a thousand times nearer than others."""
    rng = np.random.RandomState(seed)
    rows = 1.0 + rng.rand(n_rows, n_features)
    rows[: n_rows // 4] = 1.0 + 1e-3 * rows[: n_rows // 4]
    rows[n_rows // 2 : n_rows // 2 + 3] = 0.0
    rows[-5:] = rows[:5]
    return rows.astype(precision)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("n_samples", [255, 256, 300, 512])
@pytest.mark.parametrize("n_features", [3, 50])
def test_distances_that_were_kept_give_what_distances_computed_anew_do(precision, n_samples, n_features):
    rows, rng = uneven_rows(1300, n_features, precision, 0), np.random.RandomState(1)
    samples = np.concatenate([rows[:100], uneven_rows(n_samples - 100, n_features, precision, 2)])
    kernels = fit_kernels(resolve_kernels("paper"), rows)
    # Supports below, at and above a whole piece of 512 rows, known rows and new ones mixed.
    supports = [np.sort(rng.choice(1300, n, replace=False)) for n in (600, 511, 512, 513, 1024, 1300)]
    work = ResultCache(min_seconds=0.0)
    for n_bits, support in zip((3, 17, 5, 16, 45, 1), supports, strict=True):
        weights, coefficients = rng.rand(n_bits, len(kernels)), rng.randn(n_bits, len(support))
        alone = BitExpansion(kernels, rows[support], weights, coefficients)(samples)
        with caching_results(work):
            together = BitExpansion(kernels, rows[support], weights, coefficients)(samples)
            kept = DistanceCache.for_samples(samples, rows, 256, 512)
        if precision == np.float64:
            assert together.tobytes() == alone.tobytes()
        else:  # on some processors, BLAS rounds small products of single precision otherwise than large ones
            np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-4 * np.abs(alone).max())
        assert (kept is not None and len(kept.pieces) > 0) == (n_samples >= 256)


def test_distances_without_room_are_computed_anew():
    rows, rng = uneven_rows(1300, 8, np.float32, 0), np.random.RandomState(1)
    kernels = fit_kernels(resolve_kernels("paper"), rows)
    weights, coefficients = rng.rand(4, len(kernels)), rng.randn(4, len(rows))
    alone = BitExpansion(kernels, rows, weights, coefficients)(rows)
    # Room for one piece of two.
    with caching_results(ResultCache(max_bytes=2 * 1280 * 512 * 4, min_seconds=0.0)):
        together = BitExpansion(kernels, rows, weights, coefficients)(rows)
        kept = DistanceCache.for_samples(rows, rows, 256, 512)
    assert len(kept.pieces) == 1
    assert together.tobytes() == alone.tobytes()


def test_distances_are_computed_once_for_the_rows_that_supports_have_in_common():
    rows = uneven_rows(1300, 8, np.float32, 0)
    with caching_results(ResultCache()):
        kept = DistanceCache.for_samples(rows, rows, 256, 512)
        first = kept.find(rows[:1024])
        assert len(kept.pieces) == 2
        assert np.array_equal(kept.find(rows[200:800]), first[200:800])
        assert len(kept.pieces) == 2


def test_kernels_that_are_zero_on_a_block_are_left_out_of_its_sums_without_a_trace():
    rng = np.random.RandomState(0)
    near, far = rng.rand(600, 5).astype(np.float32), 100.0 + rng.rand(600, 5).astype(np.float32)
    kernels = [Gaussian(sigma) for sigma in (0.01, 1.0, 500.0)]
    weights, coefficients = rng.rand(2, 3), rng.randn(2, 600)
    mix = FusedKernels(kernels, np.float32, 0)
    blocks = [
        squared_distances_from_norms(near, rows, (squared_norms(near), squared_norms(rows))) for rows in (near, far)
    ]
    assert [mix.n_negligible(block) for block in blocks] == [0, 2]
    wide = BitExpansion(kernels[2:], far, weights[:, 2:], coefficients)(near)
    assert BitExpansion(kernels, far, weights, coefficients)(near).tobytes() == wide.tobytes()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_numpy_computes_what_the_compiled_loops_compute(precision, monkeypatch):
    rng = np.random.default_rng(2)
    kernels = [Gaussian(sigma) for sigma in (0.05, 0.3, 1.2, 0.6, 5.0)] + [Cauchy(0.7), Cauchy(3.0)]
    kernels += [NormalizedLinear(), NormalizedPolynomial(2), NormalizedPolynomial(3, bias=0.5)]
    kernels += [ShiftedCosine(power) for power in (1, 4, 8, 24)]
    weights = rng.random(len(kernels)) * (rng.random(len(kernels)) < 0.8)
    A = rng.standard_normal((130, 5)).astype(precision)
    B = np.concatenate([A[:40], np.zeros((1, 5)), 30 * rng.standard_normal((60, 5))]).astype(precision)
    squared = squared_distances_from_norms(A, B, (squared_norms(A), squared_norms(B)))
    own = squared_distances_from_norms(A, A, (squared_norms(A), squared_norms(A)))
    found = {}
    for least in (0, 10_000):
        monkeypatch.setattr("starshl.learning.kernels.mixture.COMPILED_FROM", least)
        fused = FusedKernels(kernels, precision, 1000)
        assert fused.is_compiled == (least == 0)
        rows, columns, weighted = fused.scales(A), fused.scales(B), fused.weighted(weights)
        each = np.full((len(kernels), *squared.shape), np.nan, precision)
        fused.evaluate(squared, rows, columns, each)
        beside, above = np.zeros((2, 300, 300), precision)
        fused.add_up(squared, rows, columns, weighted, 0, 150, beside)
        fused.add_up(own, rows, rows, weighted, 10, 10, above)
        assert (above == above.T).all()
        assert (beside == beside.T).all()
        found[least] = each, fused.sum_between(squared, rows, columns, weighted), beside, above
    tolerance = 1e-5 if precision == np.float32 else 1e-13
    for compiled, plain in zip(*found.values(), strict=True):
        assert np.allclose(plain, compiled, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_distances_are_the_same_bits_with_and_without_the_compiled_loop(precision, monkeypatch):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((70, 33)).astype(precision)
    # Equal rows, rows that differ in the last digits, and rows far from the origin.
    near = A[:20] * (1 + 4 * np.finfo(precision).eps)
    B = np.concatenate([A[:30], near, A + 1000, rng.standard_normal((9, 33))]).astype(precision)
    found = []
    for n_entries in (0, 10**12):
        monkeypatch.setattr("starshl.learning.kernels.distances.ENTRIES_BEFORE_LOOP", n_entries)
        found.append(squared_distances_from_norms(A, B, (squared_norms(A), squared_norms(B))))
    assert found[0].tobytes() == found[1].tobytes()
    assert (np.diag(found[0]) == 0).sum() == 30
