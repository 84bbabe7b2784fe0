"""LSH with a learned metric: the Bregman projections, the metric and the collision law."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from starshl.hashers.baselines import LSHash, MetricLSH
from starshl.hashers.baselines.metric_lsh import learn_metric


def made_constraints(seed=0, n_constraints=12, n_features=3):
    rng = np.random.default_rng(seed)
    differences = rng.standard_normal((n_constraints, n_features))
    return differences, np.where(rng.random(n_constraints) < 0.5, 1, -1)


def test_one_hard_constraint_is_met_exactly():
    v = np.array([[3.0, 1.0, 0.0]])
    learned = learn_metric(v, np.array([1]), (2.0, 50.0), gamma=np.inf, tol=1e-12)
    assert v[0] @ learned.metric @ v[0] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 5.0])
def test_projections_reach_the_dual_optimum_of_a_generic_optimizer(gamma):
    differences, similarity = made_constraints()
    bounds = (0.5, 6.0)
    start = np.where(similarity > 0, *bounds)

    def negative_dual(duals):
        inverse = np.eye(3) + (differences.T * (similarity * duals)) @ differences
        slack = 1 / start - similarity * duals / gamma
        sign, logdet = np.linalg.slogdet(inverse)
        if sign <= 0 or (slack <= 0).any() or np.linalg.eigvalsh(inverse)[0] <= 0:
            return 1e6
        return -(logdet + gamma * np.log(slack * start).sum())

    found = minimize(
        negative_dual, np.full(12, 1e-3), bounds=[(0, None)] * 12, method="L-BFGS-B", options={"ftol": 1e-15}
    )
    learned = learn_metric(differences, similarity, bounds, gamma=gamma, tol=1e-12, max_iter=20_000)
    assert learned.objectives[-1] == pytest.approx(-found.fun, abs=1e-5)
    assert learned.objectives[-1] >= -found.fun - 1e-8


def test_metric_and_bounds_follow_from_the_multipliers():
    differences, similarity = made_constraints(1)
    learned = learn_metric(differences, similarity, (0.5, 6.0), gamma=2.0)
    inverse = np.eye(3) + (differences.T * (similarity * learned.duals)) @ differences
    assert np.allclose(np.linalg.inv(inverse), learned.metric)
    start = np.where(similarity > 0, 0.5, 6.0)
    assert np.allclose(1 / learned.bounds, 1 / start - similarity * learned.duals / 2.0)


def test_converged_metric_obeys_complementary_slackness():
    differences, similarity = made_constraints(2)
    learned = learn_metric(differences, similarity, (0.5, 6.0), tol=1e-10, max_iter=20_000)
    assert learned.converged
    distances = np.einsum("ci,ij,cj->c", differences, learned.metric, differences)
    excess = similarity * (distances - learned.bounds)
    assert (excess < 1e-5).all()
    assert np.abs(excess[learned.duals > 1e-6]).max() < 1e-5


def test_dual_objective_never_falls_and_the_metric_stays_positive():
    X, y = load_digits(return_X_y=True)
    hasher = MetricLSH(8, random_state=0).fit(X, y)
    history = hasher.objective_history_
    assert (np.diff(history) >= -1e-9 * np.abs(history[1:])).all()
    assert np.array_equal(hasher.metric_, hasher.metric_.T)
    assert np.linalg.eigvalsh(hasher.metric_)[0] > 0


def test_without_projections_it_is_plain_lsh():
    X, y = load_digits(return_X_y=True)
    unlearned = MetricLSH(16, max_iter=0, random_state=0).fit(X, y)
    assert np.array_equal(unlearned.metric_, np.eye(64))
    assert np.array_equal(unlearned.transform(X), LSHash(16, random_state=0).fit(X).transform(X))


def test_irrelevant_axis_loses_its_weight():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = np.column_stack([y + 0.05 * rng.standard_normal(200), 3 * rng.standard_normal(200)])
    metric = MetricLSH(8, random_state=0).fit(X, y).metric_
    assert metric[1, 1] < 0.2 * metric[0, 0]


def test_bits_collide_as_the_angle_in_the_learned_metric_says():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    hasher = MetricLSH(20_000, random_state=0).fit(X, y)
    agree = (hasher.transform(X[:1]) == hasher.transform(X[1:2])).mean()
    a, b = X[:2] - X.mean(axis=0)
    A = hasher.metric_
    angle = np.arccos(a @ A @ b / np.sqrt((a @ A @ a) * (b @ A @ b)))
    # Three standard errors of 20,000 independent bits.
    assert agree == pytest.approx(1 - angle / np.pi, abs=3 * 0.5 / np.sqrt(20_000))


def test_pairs_stand_in_for_labels():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 3))
    pairs = (np.arange(10), np.arange(10, 20), np.where(np.arange(10) < 5, 1, -1))
    from_pairs = MetricLSH(4, random_state=0).fit(X, pairs=pairs)
    poisoned = MetricLSH(4, random_state=0).fit(X, np.full(30, "junk"), pairs=pairs)
    assert np.array_equal(from_pairs.components_, poisoned.components_)


def test_principal_components_hold_the_metric_of_wide_rows():
    X, y = load_digits(return_X_y=True)
    hasher = MetricLSH(8, n_components=10, random_state=0).fit(X, y)
    assert hasher.metric_.shape == (10, 10)
    assert hasher.components_.shape == (8, 64)
    assert np.linalg.matrix_rank(hasher.components_) == 8


def test_equal_rows_are_hashed():
    X = np.vstack([np.zeros((10, 3)), np.ones((10, 3))])
    assert MetricLSH(4, random_state=0).fit(X, np.arange(20) % 2).transform(X).shape == (20, 4)


def test_unfinished_fit_warns_with_the_numbers():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="after 1 sweeps"):
        MetricLSH(4, max_iter=1, tol=1e-9, random_state=0).fit(X, y)


def test_missing_labels_point_to_methods_that_need_none():
    with pytest.raises(ValueError, match="needs no labels"):
        MetricLSH(4).fit(np.eye(5))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gamma": 0}, "gamma is 0"),
        ({"percentiles": (95, 5)}, r"percentiles is \(95, 5\)"),
        ({"n_pairs": 0}, "n_pairs is 0"),
        ({"n_components": 0}, "n_components is 0"),
    ],
)
def test_bad_settings_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        MetricLSH(4, **params).fit(np.eye(6), [0, 0, 1, 1, 2, 2])
