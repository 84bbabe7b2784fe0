"""CGHash: the master problem, the score of a bit, its smooth surrogate and the generation."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linprog
from sklearn.datasets import load_digits

from starshl.hashers import triplets_from_labels
from starshl.hashers.baselines import CGHash
from starshl.hashers.baselines.cg_hash import best_plane, margins, score_matrix, smooth_score, solve_master


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture
def made():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = rng.standard_normal((30, 4)) + 1.5 * rng.standard_normal((3, 4))[y]
    triplets = triplets_from_labels(X, y, 2, 2)
    return X - X.mean(axis=0), triplets, rng


def test_margins_count_disagreements():
    bits = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    triplets = np.array([[0, 1, 2], [0, 2, 1], [0, 3, 1]])
    assert margins(bits, triplets).tolist() == [[1, -1], [-1, 1], [-1, 0]]


@pytest.mark.parametrize("C", [0.05, 0.5, 5.0])
def test_master_solves_the_primal_as_well(C, made):
    X, triplets, rng = made
    bits = np.where(X @ rng.standard_normal((4, 6)) >= 0, 1, -1)
    A = margins(bits, triplets)
    master = solve_master(A, C)
    n_triplets, n_bits = A.shape
    primal = linprog(
        np.r_[np.ones(n_bits), np.full(n_triplets, C)],
        np.hstack([-A, -np.eye(n_triplets)]),
        -np.ones(n_triplets),
    )
    assert master.primal == pytest.approx(primal.fun, abs=1e-7)
    assert master.primal - master.dual == pytest.approx(0, abs=1e-6)


def test_master_obeys_its_constraints_and_complementary_slackness(made):
    X, triplets, rng = made
    A = margins(np.where(X @ rng.standard_normal((4, 6)) >= 0, 1, -1), triplets)
    master = solve_master(A, 0.5)
    u, w = master.triplet_weights, master.bit_weights
    assert u.min() >= 0
    assert u.max() <= 0.5
    assert (A.T @ u <= 1 + 1e-7).all()
    assert np.allclose((A.T @ u)[w > 1e-7], 1, atol=1e-7)
    assert np.allclose(u[A @ w < 1 - 1e-7], 0.5)


def test_score_matrix_gives_the_weighted_margins(made):
    X, triplets, rng = made
    weights = rng.random(len(triplets))
    M = score_matrix(triplets, weights, len(X))
    for _ in range(5):
        bit = np.where(rng.standard_normal(len(X)) >= 0, 1.0, -1.0)
        assert bit @ (M @ bit) == pytest.approx(weights @ margins(bit, triplets))
    assert abs(M - M.T).max() == 0


def test_gradient_of_the_smooth_score_matches_finite_differences(made):
    X, triplets, rng = made
    M = score_matrix(triplets, rng.random(len(triplets)), len(X))
    plane = rng.standard_normal(5)
    numeric = approx_fprime(plane, lambda p: smooth_score(p, X, M)[0], 1e-7)
    assert np.allclose(smooth_score(plane, X, M)[1], numeric, atol=1e-4)


def test_smooth_score_approaches_the_score_of_the_bits(made):
    X, triplets, rng = made
    M = score_matrix(triplets, rng.random(len(triplets)), len(X))
    plane = rng.standard_normal(5)
    bit = np.where(X @ plane[:-1] + plane[-1] >= 0, 1.0, -1.0)
    assert -smooth_score(1e6 * plane, X, M)[0] == pytest.approx(bit @ (M @ bit))


def test_best_plane_scores_no_less_than_any_random_one(made):
    X, triplets, _ = made
    M = score_matrix(triplets, np.ones(len(triplets)), len(X))
    _, column = best_plane(X, M, 50, [], triplets, np.random.RandomState(3))
    directions = np.random.RandomState(3).standard_normal((50, 4))
    bits = np.where(X @ directions.T >= 0, 1, -1)
    assert column.sum() >= margins(bits, triplets).sum(axis=0).max()


def test_best_plane_repeats_no_column(made):
    X, triplets, _ = made
    M = score_matrix(triplets, np.ones(len(triplets)), len(X))
    known = []
    for _ in range(4):
        _, column = best_plane(X, M, 20, known, triplets, np.random.RandomState(0))
        assert not any(np.array_equal(column, other) for other in known)
        known.append(column)


def test_objective_never_rises_and_bits_are_added_for_a_reason(digits):
    hasher = CGHash(12, max_triplets=2000, random_state=0).fit(*digits)
    history = hasher.objective_history_
    assert (np.diff(history) <= 1e-7 * history[0]).all()
    # A violation above 1 is what makes the linear program profit from the bit.
    profit = np.diff(history) < -1e-6
    assert (hasher.violations_[1:][profit] > 1).all()
    assert profit.sum() >= 8


def test_more_bits_satisfy_more_triplets(digits):
    X, y = digits[0][:600], digits[1][:600]
    triplets = triplets_from_labels(X, y, 3, 3)
    shares = []
    for n_bits in (2, 8, 16):
        hasher = CGHash(n_bits, max_triplets=2000, random_state=0).fit(X, triplets=triplets)
        shares.append((margins(hasher.transform(X), triplets) @ hasher.bit_weights_ > 0).mean())
    assert shares[0] < shares[1] < shares[2]


def test_satisfied_triplets_do_not_end_the_code():
    # Two points: one bit satisfies everything, so the other three bits are not asked for.
    X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [5.1, 0.0]])
    hasher = CGHash(4, random_state=0).fit(X, [0, 0, 1, 1])
    codes = hasher.transform(X)
    assert np.array_equal(codes[0], codes[1])
    assert hasher.objective_history_[0] == pytest.approx(1.0)


def test_triplets_stand_in_for_labels(digits):
    X = digits[0][:50]
    triplets = np.column_stack([np.arange(15), np.arange(15, 30), np.arange(30, 45)])
    plain, poisoned = (CGHash(3, random_state=0).fit(X, y, triplets=triplets) for y in (None, np.full(50, np.nan)))
    assert np.array_equal(plain.components_, poisoned.components_)


@pytest.mark.parametrize(
    ("params", "message"),
    [({"C": 0}, "C is 0"), ({"k_pos": 0}, "k_pos is 0"), ({"n_starts": 0}, "n_starts is 0")],
)
def test_bad_settings_are_refused(params, message, digits):
    with pytest.raises(ValueError, match=message):
        CGHash(4, **params).fit(*digits)


def test_missing_labels_point_to_methods_that_need_none(digits):
    with pytest.raises(ValueError, match="needs no labels"):
        CGHash(4).fit(digits[0])
