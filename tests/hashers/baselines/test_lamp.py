"""LAMP: the convex step against generic solvers, the convex-concave descent, and what decides a bit."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits, make_blobs

from starshl.hashers.baselines import LAMP
from starshl.hashers.baselines.lamp import (
    Multipliers,
    PartitionProblem,
    _inverse_root,
    _reweighted,
    convex_step,
    find_partition,
)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def made_problem(seed=0, n_rows=25, n_pairs=12, limit=0.1, row_cost=0.2, pair_cost=0.5):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.standard_normal((n_rows, 3)), np.ones(n_rows)])
    rows[:, :3] -= rows[:, :3].mean(axis=0)
    ends = np.array([rng.choice(n_rows, 2, replace=False) for _ in range(n_pairs)])
    similarity = np.where(rng.random(n_pairs) < 0.5, 1.0, -1.0)
    costs = pair_cost * (0.5 + rng.random(n_pairs))
    return PartitionProblem(rows, np.arange(n_rows), row_cost, ends, similarity, costs, limit)


def test_difference_of_absolute_values_is_the_smaller_score_signed():
    u, v = np.random.default_rng(0).standard_normal((2, 100))
    assert np.allclose(np.abs(u + v) - np.abs(u - v), 2 * np.sign(u * v) * np.minimum(abs(u), abs(v)))


@pytest.mark.parametrize("limit", [0.0, 0.1, 10.0])
def test_convex_step_solves_the_quadratic_program(limit):
    problem = made_problem(1, limit=limit)
    sides = problem.sides(np.array([1.0, -0.5, 0.3, 0.0]))
    w, gap = convex_step(problem, Multipliers.none(*sides), tol=1e-9, max_sweeps=20_000)
    assert gap <= 1e-9
    # The program written out with one slack a row and a pair.
    n_rows, n_pairs = len(problem.rows), len(problem.ends)
    signs, end_signs = sides
    A = np.vstack(
        [
            signs[:, None] * problem.rows,
            *(2 * end_signs[:, [e]] * problem.rows[problem.ends[:, e]] for e in (0, 1)),
        ]
    )
    slack_of = np.r_[np.arange(n_rows), n_rows + np.tile(np.arange(n_pairs), 2)]
    costs = np.r_[np.full(n_rows, problem.row_cost), problem.pair_costs]
    selector = np.eye(n_rows + n_pairs)[slack_of]
    found = minimize(
        lambda z: z[:4] @ z[:4] / 2 + costs @ z[4:],
        np.r_[w * 0, np.full(n_rows + n_pairs, 5.0)],
        jac=lambda z: np.r_[z[:4], costs],
        bounds=[(None, None)] * 3 + [(-limit, limit)] + [(0, None)] * (n_rows + n_pairs),
        constraints={
            "type": "ineq",
            "fun": lambda z: A @ z[:4] + selector @ z[4:] - 1,
            "jac": lambda z: np.hstack([A, selector]),
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert problem.convex_objective(w, *sides) == pytest.approx(found.fun, rel=1e-6)
    assert np.allclose(w, found.x[:4], atol=1e-3)
    assert abs(w[-1]) <= limit


def test_convex_objective_bounds_the_true_one_and_touches_it():
    problem = made_problem(2)
    rng = np.random.default_rng(2)
    w = np.append(rng.standard_normal(3), 0.05)
    sides = problem.sides(w)
    assert problem.convex_objective(w, *sides) == pytest.approx(problem.objective(w))
    for _ in range(50):
        other = rng.standard_normal(4)
        assert problem.convex_objective(other, *sides) >= problem.objective(other) - 1e-12


def test_weights_follow_from_the_multipliers():
    problem = made_problem(3)
    multipliers = Multipliers.none(*problem.sides(np.ones(4)))
    w, _ = convex_step(problem, multipliers, tol=1e-8, max_sweeps=5000)
    assert np.allclose(multipliers.weights(problem), w, atol=1e-4)
    assert multipliers.rows.max() <= problem.row_cost + 1e-15
    assert (multipliers.pairs.sum(axis=1) <= problem.pair_costs + 1e-12).all()


def test_warm_start_leads_to_the_same_solution():
    problem = made_problem(4)
    old = Multipliers.none(*problem.sides(np.array([1.0, 0, 0, 0])))
    convex_step(problem, old)
    sides = problem.sides(np.array([0.8, -0.9, 0.4, 0]))
    cold, _ = convex_step(problem, Multipliers.none(*sides), tol=1e-9, max_sweeps=20_000)
    warm, _ = convex_step(problem, old.moved(*sides), tol=1e-9, max_sweeps=20_000)
    assert np.allclose(cold, warm, atol=1e-4)


def test_descent_never_raises_the_objective():
    for seed in range(5):
        problem = made_problem(seed, row_cost=1.0)
        start = np.append(np.random.default_rng(seed).standard_normal(3), 0.0)
        found = find_partition(problem, start)
        assert (np.diff(found.objectives) <= 0).all()
        assert found.objectives[-1] == pytest.approx(problem.objective(found.w))


def test_fitted_objectives_never_rise(digits):
    history = LAMP(6, random_state=0).fit(digits[0][:500], digits[1][:500]).objective_histories_
    steps = np.diff(history, axis=1)
    assert (steps[~np.isnan(steps)] <= 0).all()
    assert (history[:, 1] < history[:, 0]).all()


def test_margin_alone_separates_two_blobs():
    X, blob = make_blobs(200, centers=[[-4, 0], [4, 0]], cluster_std=0.5, random_state=0)
    for seed in range(4):
        # Pairs cost nothing, so the labels that they were drawn from play no part.
        hasher = LAMP(1, pair_cost=0.0, margin_cost=10.0, random_state=seed)
        bit = hasher.fit(X, np.arange(200) % 2).transform(X)[:, 0] > 0
        if np.array_equal(bit, blob == 1) or np.array_equal(bit, blob == 0):
            return
    pytest.fail("No random start led to the partition with the widest margin.")


def test_pairs_decide_where_the_margin_cannot():
    # Four blobs on a square: left against right and top against bottom have the same margin.
    corners = [[-3, -3], [-3, 3], [3, -3], [3, 3]]
    X, blob = make_blobs(200, centers=corners, cluster_std=0.3, random_state=1)
    for y in (np.isin(blob, (0, 1)), np.isin(blob, (0, 2))):
        bit = LAMP(1, pair_cost=100.0, random_state=0).fit(X, y.astype(int)).transform(X)[:, 0] > 0
        assert np.array_equal(bit, y) or np.array_equal(bit, ~y)


def test_mean_score_stays_within_the_balance(digits):
    X, y = digits[0][:500], digits[1][:500]
    for balance in (0.0, 0.1):
        hasher = LAMP(6, balance=balance, random_state=0).fit(X, y)
        assert np.abs(hasher.decision_function(X).mean(axis=0)).max() <= balance + 1e-7


def test_wrong_pairs_gain_weight():
    right = np.array([1.0, 1.0, 1.0, -1.0])
    weights = _reweighted(np.ones(4), right)
    assert weights.mean() == pytest.approx(1.0)
    # AdaBoost's law: after the update the bit is no better than chance.
    assert weights @ right == pytest.approx(0.0)
    assert np.array_equal(_reweighted(np.ones(4), -right), np.ones(4))


def test_whitened_support_rows_reproduce_the_kernel():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 3))
    kernel = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 6)
    coordinates = kernel @ _inverse_root(kernel)
    assert np.allclose(coordinates @ coordinates.T, kernel, atol=1e-4)


def test_pairs_stand_in_for_labels(digits):
    X = digits[0][:50]
    pairs = (np.arange(20), np.arange(20, 40), np.tile([1, -1], 10))
    plain, poisoned = (LAMP(3, random_state=0).fit(X, y, pairs=pairs) for y in (None, np.full(50, np.nan)))
    assert np.array_equal(plain.dual_coef_, poisoned.dual_coef_)


def test_equal_rows_are_hashed():
    X = np.ones((10, 3))
    assert LAMP(2, random_state=0).fit(X, np.arange(10) % 2).transform(X).shape == (10, 2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"margin_cost": 0, "pair_cost": 0}, "both 0"),
        ({"balance": -0.1}, "balance is -0.1"),
        ({"n_anchors": 0}, "n_anchors is 0"),
    ],
)
def test_bad_settings_are_refused(params, message, digits):
    with pytest.raises(ValueError, match=message):
        LAMP(4, **params).fit(*digits)


def test_missing_labels_point_to_methods_that_need_none(digits):
    with pytest.raises(ValueError, match="needs no labels"):
        LAMP(4).fit(digits[0])
