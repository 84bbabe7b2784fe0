import numpy as np
import pytest
from scipy.optimize import minimize

from starshl.learning.solvers.ridge import FeatureRidge, KernelRidge, ridge_solve


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    features, H = rng.standard_normal((30, 5)), np.sign(rng.standard_normal((30, 3)))
    return features, features @ features.T, H


def test_ridge_solution_has_zero_gradient(problem):
    features, _, H = problem
    W = ridge_solve(features, H, 0.7)
    np.testing.assert_allclose(features.T @ (features @ W - H) + 0.7 * W, 0, atol=1e-10)


@pytest.mark.parametrize(("solver", "which"), [(FeatureRidge, 0), (KernelRidge, 1)])
def test_ridge_reaches_the_minimum_a_generic_optimizer_finds(problem, solver, which):
    H = problem[2]
    regression = solver(problem[which], 0.3)
    P = regression.solve(H)
    found = minimize(lambda p: regression.loss(H, p.reshape(P.shape)), np.zeros(P.size), method="L-BFGS-B")
    assert regression.loss(H, P) <= found.fun + 1e-9
    assert regression.loss(H, P) == pytest.approx(found.fun, rel=1e-3)


def test_weights_and_intercept_give_the_fitted_values(problem):
    features, kernel, H = problem
    for regression, inputs in ((FeatureRidge(features, 0.3), features), (KernelRidge(kernel, 0.3), kernel)):
        P = regression.solve(H)
        weights, intercept = regression.split(P)
        np.testing.assert_allclose(inputs @ weights.T + intercept, regression.predict(P), atol=1e-10)


def test_kernel_ridge_with_a_linear_kernel_equals_feature_ridge(problem):
    features, kernel, H = problem
    of_features, of_kernel = FeatureRidge(features, 0.3), KernelRidge(kernel, 0.3)
    np.testing.assert_allclose(
        of_features.predict(of_features.solve(H)), of_kernel.predict(of_kernel.solve(H)), atol=1e-8
    )
