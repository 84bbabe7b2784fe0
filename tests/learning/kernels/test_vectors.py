"""Kernels on rows: values by hand, zero rows, equal rows, precision."""

import os

import numpy as np
import pytest
from scipy.sparse import csr_array

from starshl.data import datasets
from starshl.learning.kernels import (
    Cauchy,
    Gaussian,
    NormalizedLinear,
    NormalizedPolynomial,
    ScaledCauchy,
    ScaledGaussian,
    ShiftedCosine,
    paper_kernels,
)
from starshl.learning.kernels.vectors import median_distance

READY = [
    NormalizedLinear(),
    NormalizedPolynomial(),
    NormalizedPolynomial(3, 0.0),
    Gaussian(0.7),
    Gaussian(30.0),
    ShiftedCosine(1),
    ShiftedCosine(5),
    ShiftedCosine(16),
    Cauchy(0.5),
    Cauchy(20.0),
]


@pytest.fixture
def rows():
    rows = np.random.default_rng(0).normal(size=(60, 7))
    rows[3] = 0.0
    rows[10] = rows[20]
    return rows


def plain(kernel, a, b):
    """One kernel value, from the formula."""
    match kernel:
        case NormalizedLinear():
            norms = np.sqrt(a @ a) * np.sqrt(b @ b)
            return a @ b / norms if norms else 0.0
        case NormalizedPolynomial(degree, bias):
            norms = np.sqrt((a @ a + bias) * (b @ b + bias))
            return ((a @ b + bias) / norms) ** degree if norms else 0.0
        case Gaussian(sigma):
            return np.exp(-np.sum((a - b) ** 2) / (2 * sigma**2))
        case ShiftedCosine(power):
            return ((1 + plain(NormalizedLinear(), a, b)) / 2) ** power
        case Cauchy(scale):
            return 1 / (1 + np.sum((a - b) ** 2) / scale**2)


@pytest.mark.parametrize("kernel", READY, ids=repr)
def test_values_follow_the_formula(kernel, rows):
    expected = [[plain(kernel, a, b) for b in rows[:25]] for a in rows]
    assert kernel(rows, rows[:25]) == pytest.approx(np.array(expected), abs=1e-12)


def test_values_known_by_hand():
    e1, e2 = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert NormalizedLinear()(3 * e1, e1).item() == 1
    assert NormalizedPolynomial(2, 1.0)(e1, e2).item() == pytest.approx(1 / 4)
    assert Gaussian(1.0)(e1, e2).item() == pytest.approx(np.exp(-1))
    assert ShiftedCosine(4)(2 * e1, e2).item() == 1 / 16
    assert ShiftedCosine(4)(e1, -e1).item() == 0
    assert Cauchy(0.5)(e1, e2).item() == pytest.approx(1 / 9)


@pytest.mark.parametrize("kernel", READY, ids=repr)
def test_sparse_rows_have_the_values_of_dense_ones(kernel, rows):
    rows = np.where(np.random.default_rng(4).random(rows.shape) < 0.4, rows, 0.0)
    sparse = csr_array(rows)
    assert kernel(sparse, sparse[:9]) == pytest.approx(kernel(rows, rows[:9]), abs=1e-12)
    assert kernel.diagonal(sparse) == pytest.approx(kernel.diagonal(rows))


@pytest.mark.parametrize("kernel", READY, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grams_are_symmetric_and_positive_semi_definite(kernel, dtype, rows):
    gram = kernel.gram(rows.astype(dtype))
    assert gram.dtype == dtype
    eps = 1e-6 if dtype == np.float32 else 1e-13
    assert np.abs(gram - gram.T).max() <= eps
    assert np.linalg.eigvalsh(gram.astype(np.float64))[0] >= -50 * eps


@pytest.mark.parametrize("kernel", READY, ids=repr)
def test_diagonal_is_that_of_the_gram_matrix(kernel, rows):
    assert kernel.diagonal(rows) == pytest.approx(np.diag(kernel.gram(rows)), abs=1e-12)
    assert kernel.diagonal(rows).max() <= kernel.largest_diagonal


def test_zero_rows_have_kernel_zero_unless_biased(rows):
    assert not NormalizedLinear()(rows, rows)[3].any()
    assert not NormalizedPolynomial(2, 0.0)(rows, rows)[3].any()
    assert NormalizedPolynomial(2, 1.0)(rows, rows)[3, 3] == 1
    assert NormalizedLinear().diagonal(rows)[3] == 0


def test_zero_rows_have_cosine_zero_before_the_shift(rows):
    assert np.all(ShiftedCosine(3)(rows, rows)[3] == 1 / 8)
    assert ShiftedCosine(3).diagonal(rows)[3] == 1 / 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("width", [1, 64, 784, 20_000])
def test_equal_rows_have_distance_zero_in_any_precision(dtype, offset, width):
    rng = np.random.default_rng(1)
    rows = (rng.random((9, width)) + offset).astype(dtype)
    rows = np.vstack([rows, rows[::-1]])
    gram = Gaussian(1e-3)(rows, rows)
    assert np.all(np.diag(gram) == 1)
    assert np.all(gram[np.arange(18), 17 - np.arange(18)] == 1)


@pytest.mark.parametrize("kernel", [Gaussian, Cauchy])
def test_narrow_and_wide_kernels_have_finite_values(kernel, rows):
    with np.errstate(all="raise", under="ignore"):
        for dtype in (np.float32, np.float64):
            for scale in (1e-30, 2.0**-7, 2.0**7, 1e30):
                values = kernel(scale)(rows.astype(dtype), rows.astype(dtype))
                assert np.isfinite(values).all()
                assert np.all(np.diag(values) == 1)


@pytest.mark.parametrize("kernel", READY, ids=repr)
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool])
def test_whole_numbers_are_read_as_numbers(kernel, dtype):
    counts = np.random.default_rng(2).integers(0, 2, (8, 5)).astype(dtype)
    assert np.array_equal(kernel(counts, counts), kernel(counts.astype(float), counts.astype(float)))
    assert kernel(counts.tolist(), counts.tolist()).dtype == np.float64


def test_large_rows_do_not_overflow_the_polynomial():
    rows = np.array([[1e100, 0.0], [0.0, 1e100], [1e100, 1e100]])
    assert NormalizedPolynomial(3, 1.0)(rows, rows) == pytest.approx(
        np.array([[1, 0, 8**-0.5], [0, 1, 8**-0.5], [8**-0.5, 8**-0.5, 1]])
    )


@pytest.mark.parametrize("kernel", READY, ids=repr)
def test_rescaling_rows_leaves_normalized_kernels_and_moves_the_others(kernel, rows):
    scaled = kernel(4.0 * rows, rows)
    assert np.allclose(scaled, kernel(rows, rows)) == (
        isinstance(kernel, NormalizedLinear | ShiftedCosine) or kernel == READY[2]
    )


@pytest.mark.parametrize(("scaled", "absolute"), [(ScaledGaussian, Gaussian), (ScaledCauchy, Cauchy)])
def test_scaled_kernels_follow_the_median_distance(scaled, absolute, rows):
    fitted = scaled(0.5).fit(rows)
    assert fitted == absolute(0.5 * median_distance(rows))
    assert scaled(0.5).fit(csr_array(rows))(rows, rows) == pytest.approx(fitted(rows, rows))
    stretched = scaled(0.5).fit(7.0 * rows)
    assert stretched(7.0 * rows, 7.0 * rows) == pytest.approx(fitted(rows, rows))


@pytest.mark.parametrize("scaled", [ScaledGaussian, ScaledCauchy])
def test_scaled_kernels_cannot_be_evaluated_before_fit(scaled, rows):
    with pytest.raises(TypeError, match="before fit"):
        scaled()(rows, rows)


def test_the_paper_has_eleven_kernels_with_unit_diagonal():
    kernels = paper_kernels()
    assert len(kernels) == 11
    assert sorted(kernel.sigma for kernel in kernels[2:]) == [2.0**k for k in (-7, -5, -3, -1, 0, 1, 3, 5, 7)]
    rows = np.random.default_rng(3).normal(size=(5, 3))
    assert all(np.allclose(np.diag(kernel(rows, rows)), 1) for kernel in kernels)


@pytest.mark.parametrize(
    ("name", "n_identity", "n_constant"),
    [("mnist", 5, 2), ("cifar10", 5, 2), ("pascal07", 5, 2), ("usps", 5, 1), ("digits", 3, 3)],
)
def test_on_pixels_most_gaussians_of_the_paper_are_nearly_the_identity_or_nearly_constant(name, n_identity, n_constant):
    if name != "digits" and ("STARSHL_DATA" not in os.environ or datasets.locate(name) is None):
        pytest.skip(f"STARSHL_DATA names no folder with {name}")
    pixels = datasets.get(name).X.astype(float)
    rows = pixels[np.random.default_rng(0).permutation(len(pixels))[:3000]] / pixels.max()
    others = ~np.eye(200, len(rows), dtype=bool)
    sums, lowest = [], []
    for kernel in paper_kernels()[2:]:
        values = np.where(others, kernel(rows[:200], rows), 0.0)
        sums.append(np.median(values.sum(axis=1)))  # everything off the diagonal together, in the typical row
        lowest.append(np.quantile(values[others], 0.05))
    assert sum(total < 1e-5 for total in sums) == n_identity
    assert sum(low > 0.85 for low in lowest) == n_constant


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0.0), "sigma"),
        (lambda: Gaussian(-1.0), "sigma"),
        (lambda: Gaussian(float("nan")), "sigma"),
        (lambda: ScaledGaussian(0.0), "factor"),
        (lambda: ScaledCauchy(-1.0), "factor"),
        (lambda: Cauchy(0.0), "scale"),
        (lambda: Cauchy(float("inf")), "scale"),
        (lambda: ShiftedCosine(0), "power"),
        (lambda: ShiftedCosine(1.5), "power"),
        (lambda: NormalizedPolynomial(0), "degree"),
        (lambda: NormalizedPolynomial(2.5), "degree"),
        (lambda: NormalizedPolynomial(2, -1.0), "bias"),
    ],
)
def test_parameters_that_make_no_kernel_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
