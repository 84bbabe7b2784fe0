"""The paper's propositions as laws of the functions that stand for them."""

import numpy as np
import pytest
from sklearn.svm import SVC

from starshl.learning.solvers.objective import (
    bit_objective,
    box,
    hinge_distances,
    penalty,
    squared_function_norms,
    surrogate,
)


@pytest.fixture(params=range(5))
def rng(request):
    return np.random.default_rng(request.param)


def test_with_fixed_assignments_the_surrogate_bounds_the_nearest_distances_and_touches_them(rng):
    codewords = rng.choice([-1, 1], (4, 6))
    before, after = rng.normal(size=(2, 30, 6))
    assigned, ones = codewords[hinge_distances(before, codewords).argmin(axis=1)], np.ones(30)
    assert surrogate(before, assigned, ones) == pytest.approx(hinge_distances(before, codewords).min(axis=1).sum())
    assert surrogate(after, assigned, ones) >= hinge_distances(after, codewords).min(axis=1).sum()


def test_with_fixed_assignments_the_objective_is_the_sum_of_one_objective_per_bit(rng):
    own, scores = rng.choice([-1, 1], (30, 6)), rng.normal(size=(30, 6))
    norms, weights, C = rng.uniform(size=(6, 3)), rng.uniform(0.1, 1.0, (6, 3)), 7.0
    cost = rng.uniform(size=30)
    regularizers = [penalty(norms[bit], weights[bit]) for bit in range(6)]
    per_bit = [bit_objective(own[:, bit] * scores[:, bit], C * cost, regularizers[bit]) for bit in range(6)]
    assert sum(per_bit) == pytest.approx(C * surrogate(scores, own, cost) + (norms / weights).sum() / 2)


def test_the_svm_in_the_box_has_the_value_of_a_bits_problem_for_the_mixture_of_kernels(rng):
    X, labels, C = rng.normal(size=(40, 3)), np.repeat([-1, 1], 20), 2.0
    kernels, weights = np.stack([X @ X.T, (1 + X @ X.T) ** 2]), np.array([0.3, 0.8])
    mixture = np.tensordot(weights, kernels, 1)
    svm = SVC(C=C, kernel="precomputed", tol=1e-8).fit(mixture, labels)
    eta = np.zeros(40)
    eta[svm.support_] = svm.dual_coef_[0]
    low, high = box(labels, np.full(40, C))
    assert (low - 1e-12 <= eta).all()
    assert (eta <= high + 1e-12).all()
    norms = squared_function_norms(np.einsum("i,mij,j->m", eta, kernels, eta), weights)
    primal = bit_objective(labels * (mixture @ eta + svm.intercept_), np.full(40, C), penalty(norms, weights))
    assert np.abs(eta).sum() - eta @ mixture @ eta / 2 == pytest.approx(primal, rel=1e-5)
