"""Theorem 1: every term by hand, and the laws of its empirical part."""

from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import StarSHL

X4, Y4 = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])


def inner(A, B):
    return A @ B.T


@pytest.fixture(scope="module")
def line():
    """The SVM with w = 1 and no bias on four points of a line, as a hasher of one bit."""
    return StarSHL(1, kernels=[inner], C=10.0, codewords=[[-1], [1]], svm_tol=1e-8, tol=1e-6).fit(X4, Y4)


@pytest.mark.parametrize(("rho", "er_hat", "complexity"), [(1.0, 0.0, 2.0), (2.0, 0.25, 1.0), (4.0, 0.625, 0.5)])
def test_terms_by_hand(line, rho, er_hat, complexity):
    bound = line.generalization_bound(X4, Y4, rho=rho, delta=0.05)
    deviation = np.sqrt(np.log(20) / 8)
    assert deviation == pytest.approx(0.611937, abs=1e-6)
    assert bound["er_hat"] == pytest.approx(er_hat, abs=1e-7)
    assert bound["complexity"] == pytest.approx(complexity, abs=1e-7)
    assert bound["deviation"] == pytest.approx(deviation, abs=1e-7)
    assert bound["paper"] == pytest.approx(er_hat + complexity + deviation, abs=1e-7)
    assert bound["vacuous"]
    assert bound["radius"] == pytest.approx(2, abs=1e-7)
    assert bound["norms"] == pytest.approx([1], abs=1e-7)
    assert bound["n_samples"] == 4
    assert bound["misclassification"] == pytest.approx(2 * bound["paper"], abs=1e-7)
    assert bound["conservative"] is None
    assert "not known" in bound["conservative_reason"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[:150] / 16.0, y[:150]
    return StarSHL(8, C=0.05, random_state=0).fit(X, y), X, y


def test_empirical_part_rises_with_rho_and_covers_the_hamming_error(digits):
    hasher, X, y = digits
    values = [hasher.generalization_bound(X, y, rho=rho)["er_hat"] for rho in (1e-9, 0.01, 0.3, 1.0, 3.0, 100.0)]
    assert all(before <= after for before, after in pairwise(values))
    wrong = hasher.transform(X) != hasher.codewords_[np.searchsorted(hasher.classes_, y)]
    assert 0 < wrong.mean() <= values[0]
    assert values[-1] <= 1


def test_norms_are_those_of_the_hash_functions(digits):
    hasher, X, y = digits
    grams = np.array([kernel(X, X) for kernel in hasher.kernels_])
    squared = [
        eta @ np.tensordot(theta, grams, 1) @ eta
        for theta, eta in zip(hasher.kernel_weights_, hasher.dual_coef_, strict=True)
    ]
    bound = hasher.generalization_bound(X, y)
    assert bound["norms"] == pytest.approx(np.sqrt(squared), rel=1e-6)
    diagonals = hasher.kernel_weights_.sum(axis=1)  # every kernel has diagonal one on these rows
    assert bound["radius"] == pytest.approx(np.sqrt(diagonals.max()))
    expected = 2 * bound["radius"] * bound["norms"].sum() / (8 * np.sqrt(150))
    assert bound["complexity"] == pytest.approx(expected, rel=1e-12)


def test_conservative_terms_follow_their_formulas(digits):
    hasher, X, y = digits
    rho, delta = 0.7, 0.1
    bound = hasher.generalization_bound(X, y, rho=rho, delta=delta)
    n_codewords, n_bits = hasher.codewords_.shape
    complexity, penalty = 0.0, np.log(1 / delta)
    for norm, bias in zip(bound["norms"], hasher.intercept_, strict=True):
        grid = [2 * max(norm, 1.0), 2 * max(abs(bias), 1.0)]
        complexity += np.sqrt(6) * grid[0] + grid[1]  # six kernels of diagonal one
        penalty += sum(2 * np.log(np.log2(value) + 1) + np.log(np.pi**2 / 6) for value in grid)
    complexity *= 2 * np.sqrt(n_codewords) / (rho * n_bits * np.sqrt(150))
    assert bound["conservative_radius"] == pytest.approx(np.sqrt(6))
    assert bound["conservative_complexity"] == pytest.approx(complexity, rel=1e-12)
    assert bound["conservative_deviation"] == pytest.approx(np.sqrt(penalty / 300), rel=1e-12)
    assert bound["conservative"] == pytest.approx(
        bound["er_hat"] + complexity + bound["conservative_deviation"], rel=1e-12
    )
    assert bound["conservative"] > bound["paper"]


def test_unlabeled_rows_do_not_count(digits):
    hasher, X, y = digits
    some = np.where(np.arange(150) < 100, y, -1)
    left, right = hasher.generalization_bound(X, some), hasher.generalization_bound(X[:100], y[:100])
    assert left["n_samples"] == 100
    assert left["paper"] == pytest.approx(right["paper"], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": 0.0}, "rho is 0"),
        ({"rho": np.nan}, "rho is nan"),
        ({"delta": 0.0}, "delta is 0"),
        ({"delta": 1.0}, "delta is 1"),
        ({"y": np.full(4, -1)}, "no labels"),
        ({"y": np.array([0, 0, 1, 7])}, r"classes \[7\]"),
        ({"y": np.array(["a", "b", "a", "b"])}, "classes"),
        ({"y": Y4[:3]}, "shape"),
    ],
)
def test_bad_input_is_refused(line, change, message):
    given = {"y": Y4, "rho": 1.0, "delta": 0.05} | change
    with pytest.raises(ValueError, match=message):
        line.generalization_bound(X4, **given)


def test_theorem_1_does_not_pay_for_classes_that_the_sample_lacks():
    """The counterexample of the method page: a constant function and codewords that follow the sample."""
    rng = np.random.default_rng(0)
    sample, new = rng.integers(0, 1000, 100), rng.integers(0, 1000, 10_000)
    codeword = np.where(np.isin(np.arange(1000), sample), 1, -1)
    norm, empirical_risk, risk = 0.0, np.mean(codeword[sample] != 1), np.mean(codeword[new] != 1)
    complexity, deviation = norm, np.sqrt(np.log(1 / 0.05) / (2 * len(sample)))
    assert empirical_risk == 0
    assert risk > empirical_risk + complexity + deviation + 0.5


def test_lemma_1_of_the_paper_fails_for_all_functions_with_two_values():
    """Lemma 1 bounds the Rademacher complexity of a Lipschitz function of f by that of the absolute value |f|.

    With B = 1, the identity and all functions with values in {-1, 1} on four points, the left side is 1 and the right
    side 0.
    """
    signs = np.array(list(product((-1.0, 1.0), repeat=4)))  # all functions and, as well, all draws of signs

    def rademacher_complexity(functions):
        return float((signs @ functions.T / 4).max(axis=1).mean())

    assert rademacher_complexity(np.abs(signs)) == pytest.approx(0.0)
    assert rademacher_complexity(signs) == pytest.approx(1.0)
