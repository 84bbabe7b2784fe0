"""Our SVM solver against LIBSVM, closed forms and a generic optimizer."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import SVC

from starshl.learning.solvers.svm import LibSVM, PairwiseAscent, feasible_start


def rbf(A, B, sigma=1.0):
    return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2) / (2 * sigma**2))


def xor(n=120):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0), np.full(n, 10.0)


def random_points(C, n=200):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 5))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, np.full(n, C)


def repeated_rows():
    X, y, upper = random_points(5.0, n=60)
    y = np.tile(y, 3)
    y[7] *= -1  # an equal row with another label
    return np.tile(X, (3, 1)), y, np.tile(upper, 3)


def imbalanced():
    rng = np.random.default_rng(2)
    y = np.where(np.arange(200) < 10, 1.0, -1.0)
    return rng.normal(size=(200, 4)) + 0.7 * y[:, None], y, np.full(200, 3.0)


def per_sample_cost():
    X, y, upper = random_points(1.0)
    return X, y, upper * np.random.default_rng(3).choice([0.01, 0.5, 1.0, 20.0], len(y))


CASES = {
    "xor": xor,
    "C=1e-3": lambda: random_points(1e-3),
    "C=1": lambda: random_points(1.0),
    "C=1e3": lambda: random_points(1e3),
    "repeated rows": repeated_rows,
    "5:95": imbalanced,
    "per-sample C": per_sample_cost,
}


def terms(K, y, upper, eta, intercept):
    """Dual value, primal value, KKT gap recomputed from nothing but the solution."""
    f = K @ eta
    norm = eta @ f
    dual = y @ eta - norm / 2
    primal = upper @ np.maximum(0, 1 - y * (f + intercept)) + norm / 2
    gradient = y - f
    low, high = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    gap = gradient[eta < high].max() - gradient[eta > low].min()
    return dual, primal, gap


@pytest.fixture(params=CASES, ids=CASES.keys())
def case(request):
    X, y, upper = CASES[request.param]()
    X_new = np.random.default_rng(9).normal(size=(50, X.shape[1]))
    return rbf(X, X), y, upper, rbf(X_new, X)


def test_solution_agrees_with_libsvm(case):
    K, y, upper, K_new = case
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-6).fit(K, y, sample_weight=upper)
    theirs = np.zeros(len(y))
    theirs[svc.support_] = svc.dual_coef_[0]
    dual, _, _ = terms(K, y, upper, theirs, svc.intercept_[0])
    ours = PairwiseAscent(tol=1e-6).solve(K, y, upper)
    our_dual, our_primal, gap = terms(K, y, upper, ours.coefficients, ours.intercept)
    assert our_dual == pytest.approx(dual, rel=1e-6)
    assert gap <= 1.01e-6
    assert ours.violation == pytest.approx(gap, abs=1e-9)
    assert ours.converged
    assert -1e-9 * max(1, our_dual) <= our_primal - our_dual <= 1e-4 * max(1.0, abs(our_dual))
    assert ours.coefficients @ K @ ours.coefficients == pytest.approx(theirs @ K @ theirs, rel=1e-4)
    for values, decisions in ((K, svc.decision_function(K)), (K_new, svc.decision_function(K_new))):
        f = values @ ours.coefficients + ours.intercept
        assert np.abs(f - decisions).max() <= 1e-4 * max(1.0, np.abs(decisions).max())


def test_solution_is_feasible(case):
    K, y, upper, _ = case
    eta = PairwiseAscent(tol=1e-6).solve(K, y, upper).coefficients
    assert np.all(eta * y >= 0)
    assert np.all(eta * y <= upper)
    assert abs(eta.sum()) <= 1e-10 * np.abs(eta).sum()


def test_libsvm_behind_our_signature_solves_the_same_problem(case):
    K, y, upper, _ = case
    ours, theirs = PairwiseAscent(tol=1e-6).solve(K, y, upper), LibSVM(tol=1e-6).solve(K, y, upper)
    # LIBSVM keeps kernel values in float32, so its own gradient is off by that rounding.
    assert theirs.violation <= 2e-6 + 1e-7 * np.abs(theirs.coefficients).sum()
    f, g = (K @ solution.coefficients + solution.intercept for solution in (ours, theirs))
    assert np.abs(f - g).max() <= 1e-4 * max(1.0, np.abs(g).max())


def test_float32_gram_is_solved_to_the_same_function(case):
    K, y, upper, _ = case
    exact = PairwiseAscent(tol=1e-6).solve(K, y, upper)
    rounded = PairwiseAscent(tol=1e-6).solve(K.astype(np.float32), y, upper)
    assert rounded.coefficients.dtype == np.float64
    # Rounding K by 6e-8 moves f by that much times the coefficients, which reach C.
    slack = 1e-4 * max(1.0, np.abs(K @ exact.coefficients).max()) + 1e-7 * np.abs(exact.coefficients).sum()
    f, g = (K @ solution.coefficients + solution.intercept for solution in (exact, rounded))
    assert np.abs(f - g).max() <= slack


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
def test_warm_start_after_label_flips_ends_at_the_same_function(case, share):
    K, y, upper, _ = case
    solver = PairwiseAscent(tol=1e-6)
    before = solver.solve(K, y, upper)
    flipped = np.where(np.random.default_rng(4).random(len(y)) < share, -y, y)
    cold, warm = solver.solve(K, flipped, upper), solver.solve(K, flipped, upper, start=before.coefficients)
    dual = [terms(K, flipped, upper, found.coefficients, found.intercept)[0] for found in (cold, warm)]
    assert dual[1] == pytest.approx(dual[0], rel=1e-6)
    f, g = (K @ solution.coefficients for solution in (cold, warm))
    assert np.abs(f - g).max() <= 1e-4 * max(1.0, np.abs(f).max())


def test_warm_start_from_a_solution_takes_no_steps():
    X, y, upper = random_points(1.0)
    K, solver = rbf(X, X), PairwiseAscent(tol=1e-6)
    found = solver.solve(K, y, upper)
    assert solver.solve(K, y, upper, start=found.coefficients).n_iter <= 1


@pytest.mark.parametrize("seed", range(20))
def test_feasible_start_obeys_bounds_and_balance(seed):
    rng = np.random.default_rng(seed)
    y, upper = rng.choice([-1.0, 1.0], 30), rng.uniform(0.1, 2.0, 30)
    low, high = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    given = rng.normal(scale=2.0, size=30)
    kept = given.copy()
    start = feasible_start(given, low, high)
    assert np.array_equal(given, kept)
    assert np.all((low <= start) & (start <= high))
    assert abs(start.sum()) < 1e-12


def test_four_points_on_a_line_have_the_margin_one_expects():
    x, y = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    K = np.outer(x, x)
    solution = PairwiseAscent(tol=1e-9).solve(K, y, np.full(4, 10.0))
    assert solution.coefficients == pytest.approx([0, -0.5, 0.5, 0], abs=1e-9)
    assert solution.intercept == pytest.approx(0, abs=1e-9)
    dual, primal, _ = terms(K, y, np.full(4, 10.0), solution.coefficients, solution.intercept)
    assert dual == pytest.approx(0.5)
    assert primal == pytest.approx(0.5)


@pytest.mark.parametrize("C", [2.0, 100.0])
def test_identity_kernel_memorizes(C):
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    solution = PairwiseAscent(tol=1e-10).solve(np.eye(30), y, np.full(30, C))
    assert solution.intercept == pytest.approx(y.mean())
    assert solution.coefficients == pytest.approx(y - y.mean())
    assert solution.coefficients + solution.intercept == pytest.approx(y)


def test_intercept_is_the_midpoint_where_no_coefficient_is_free():
    # All four coefficients end at their bound 0.01, so any bias in the interval is optimal.
    x, y = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    solution = PairwiseAscent(tol=1e-9).solve(np.outer(x, x), y, np.full(4, 0.01))
    w = 0.01 * np.abs(x).sum()
    assert np.abs(solution.coefficients) == pytest.approx([0.01] * 4)
    assert -(1 - w) <= solution.intercept <= 1 - w
    assert solution.intercept == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_a_coefficient_that_rounding_left_off_its_bound_does_not_decide_the_intercept(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 5))
    K = rbf(X, X)
    y = np.where(rng.permutation(100) < 50, 1.0, -1.0)
    upper = np.full(100, 0.01)  # so small that every coefficient ends at its bound
    earlier = PairwiseAscent(1e-9).solve(K, rng.permutation(y), 0.3 * upper).coefficients
    found = PairwiseAscent(1e-9).solve(K, y, upper, start=earlier)
    assert np.all(np.abs(found.coefficients) == upper)
    assert found.intercept == pytest.approx(LibSVM(1e-9).solve(K, y, upper).intercept, abs=1e-9)


@pytest.mark.parametrize("solver", [PairwiseAscent(1e-6), LibSVM(1e-6)])
def test_negating_the_labels_negates_the_function(solver):
    X, y, upper = imbalanced()
    K = rbf(X, X)
    plus, minus = solver.solve(K, y, upper), solver.solve(K, -y, upper)
    assert K @ plus.coefficients + plus.intercept == pytest.approx(
        -(K @ minus.coefficients + minus.intercept), abs=1e-4
    )


def test_giving_up_early_is_reported():
    X, y, upper = random_points(1e3)
    solution = PairwiseAscent(tol=1e-6, max_iter=3).solve(rbf(X, X), y, upper)
    assert not solution.converged
    assert solution.n_iter == 3
    assert solution.violation > 1e-6


def test_the_printed_dual_of_the_paper_gives_the_same_function():
    """Eq. (7) has a variable for every sample and codeword, bounded by C * gamma; most bounds are zero."""
    rng = np.random.default_rng(5)
    n, n_codewords, C = 6, 3, 2.0
    X = rng.normal(size=(n, 2))
    column = np.array([1.0, -1.0, 1.0])  # one bit of the three codewords
    gamma = np.zeros((n_codewords, n))
    gamma[[0, 1, 2, 0, 1, 2], np.arange(n)] = 1.0
    K = rbf(X, X)
    signs = np.repeat(column, n)  # variables run over codewords first, then samples
    Q = np.outer(signs, signs) * np.tile(K, (n_codewords, n_codewords))
    printed = minimize(
        lambda alpha: alpha @ Q @ alpha / 2 - alpha.sum(),
        np.zeros(n * n_codewords),
        jac=lambda alpha: Q @ alpha - 1,
        bounds=[(0.0, bound) for bound in C * gamma.ravel()],
        constraints=LinearConstraint(signs, 0.0, 0.0),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    alpha = printed.x.reshape(n_codewords, n)
    f_without_bias = K @ (column[:, None] * alpha).sum(axis=0)
    ours = PairwiseAscent(tol=1e-10).solve(K, column @ gamma, np.full(n, C))
    assert np.abs(K @ ours.coefficients - f_without_bias).max() < 1e-5
    # The bias follows from the margins of free variables, as in any SVM.
    g, sample = np.argwhere((alpha > 1e-3) & (alpha < C - 1e-3))[0]
    assert ours.intercept == pytest.approx(column[g] - f_without_bias[sample], abs=1e-4)
