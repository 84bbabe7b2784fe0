"""Minimal loss hashing: exact inference, the bound, its gradient and the descent."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.hashers.baselines import MLH
from starshl.hashers.baselines._mlh_loops import descend_once, infer_codes
from starshl.hashers.baselines.mlh import hinge_losses

QUICK = {"max_iter": 6, "n_pairs": 5000, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def brute_maximum(u, v, losses):
    codes = [np.array(code) for code in product((-1, 1), repeat=len(u))]
    return max(losses[(g != h).sum()] + g @ u + h @ v for g in codes for h in codes)


def bound(u, v, losses):
    return infer_codes(u, v, losses, np.empty(len(u)), np.empty(len(u))) - abs(u).sum() - abs(v).sum()


def test_inference_of_a_worked_example():
    u, v = np.array([0.5, -0.2, 1.0]), np.array([0.4, 0.3, -0.1])
    similar, dissimilar = np.array([[0.0, 1.0, 2.0, 3.0], [2.0, 1.0, 0.0, 0.0]])
    g, h = np.empty(3), np.empty(3)
    assert infer_codes(u, v, similar, g, h) == pytest.approx(4.7)
    assert (g != h).sum() == 3
    assert bound(u, v, similar) == pytest.approx(2.2)
    assert infer_codes(u, v, dissimilar, g, h) == pytest.approx(3.9)
    assert (g != h).sum() == 0
    assert bound(u, v, dissimilar) == pytest.approx(1.4)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("n_bits", [1, 3, 4])
def test_inference_equals_the_maximum_over_all_codes(kind, n_bits):
    rng = np.random.default_rng(n_bits)
    for radius in range(n_bits + 1):
        losses = hinge_losses(n_bits, radius)[kind]
        for _ in range(10):
            u, v = rng.standard_normal((2, n_bits))
            g, h = np.empty(n_bits), np.empty(n_bits)
            found = infer_codes(u, v, losses, g, h)
            assert found == pytest.approx(brute_maximum(u, v, losses))
            assert found == pytest.approx(losses[(g != h).sum()] + g @ u + h @ v)


def test_bound_is_never_below_the_loss():
    rng = np.random.default_rng(0)
    losses = hinge_losses(8, 3)
    for u, v in rng.standard_normal((200, 2, 8)):
        distance = ((u >= 0) != (v >= 0)).sum()
        for kind in (0, 1):
            assert bound(u, v, losses[kind]) >= losses[kind][distance] - 1e-12


def test_one_step_follows_the_gradient_of_the_bound():
    rng = np.random.default_rng(1)
    rows, weights = rng.standard_normal((2, 4)), rng.standard_normal((3, 4))
    losses = hinge_losses(3, 1)
    first, second, kinds = np.array([0]), np.array([1]), np.array([0])

    def objective(w):
        return bound(w @ rows[0], w @ rows[1], losses[0])

    numeric = np.zeros_like(weights)
    for index in np.ndindex(weights.shape):
        shift = np.zeros_like(weights)
        shift[index] = 1e-6
        numeric[index] = (objective(weights + shift) - objective(weights - shift)) / 2e-6
    moved = weights.copy()
    mean = descend_once(rows, first, second, losses, kinds, moved, np.zeros_like(weights), 0.5, 0.9, 0.01, 10)
    assert mean == pytest.approx(objective(weights))
    assert np.allclose(moved, weights - 0.5 * (numeric + 0.01 * weights), atol=1e-7)


def test_momentum_adds_the_last_step():
    rng = np.random.default_rng(2)
    rows, weights = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    speed = rng.standard_normal((2, 3))
    # With no rate the old speed is all that moves.
    moved, faded = weights.copy(), speed.copy()
    pair = np.array([0]), np.array([1])
    descend_once(rows, *pair, hinge_losses(2, 1), np.array([1]), moved, faded, 0.0, 0.5, 0.0, 1)
    assert np.allclose(moved, weights + 0.5 * speed)


def test_losses_are_scaled_to_one():
    losses = hinge_losses(8, 3)
    assert losses[0, -1] == losses[1, 0] == 1.0
    assert losses[0, 2] == losses[1, 4] == 0.0


def test_mean_bound_falls_during_training(digits):
    history = MLH(16, **QUICK).fit(*digits).objective_history_
    assert history[-1] < 0.7 * history[0]


def test_training_puts_similar_pairs_within_the_radius(digits):
    X, y = digits
    hasher = MLH(16, **QUICK).fit(X, y)
    codes = hasher.transform(X[:300]).astype(int)
    distances = (16 - codes @ codes.T) / 2
    same = y[:300, None] == y[None, :300]
    assert distances[same].mean() < hasher.radius_ < distances[~same].mean()


def test_automatic_radius_holds_three_tenths_of_the_similar_pairs(digits):
    radii = [MLH(n_bits, **QUICK).fit(*digits).radius_ for n_bits in (8, 32)]
    assert 0 < radii[0] < radii[1] < 16


def test_length_of_the_rows_does_not_matter(digits):
    X, y = digits
    hasher = MLH(8, **QUICK).fit(X, y)
    stretched = X.mean(axis=0) + 3.0 * (X - X.mean(axis=0))
    assert np.array_equal(hasher.transform(stretched), hasher.transform(X))


def test_pairs_stand_in_for_labels(digits):
    X = digits[0][:50]
    pairs = (np.arange(20), np.arange(20, 40), np.tile([1, -1], 10))
    plain, poisoned = (MLH(4, **QUICK).fit(X, y, pairs=pairs) for y in (None, np.full(50, np.nan)))
    assert np.array_equal(plain.components_, poisoned.components_)


@pytest.mark.parametrize("kind", [1, -1])
def test_pairs_of_one_kind_are_enough(kind, digits):
    pairs = (np.arange(20), np.arange(20, 40), np.full(20, kind))
    assert MLH(4, **QUICK).fit(digits[0][:50], pairs=pairs).transform(digits[0]).shape == (1797, 4)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"radius": 5}, "radius is 5"),
        ({"similar_share": 1.5}, "similar_share is 1.5"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"learning_rate": 0}, "learning_rate is 0"),
    ],
)
def test_bad_settings_are_refused(params, message, digits):
    with pytest.raises(ValueError, match=message):
        MLH(4, **params).fit(*digits)


def test_missing_labels_point_to_methods_that_need_none(digits):
    with pytest.raises(ValueError, match="needs no labels"):
        MLH(4).fit(digits[0])
