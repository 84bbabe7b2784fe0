"""Semantic hashing: the machines, the gradient of the unrolled network, and the codes."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import load_digits

from starshl.hashers.baselines import SemanticHashing
from starshl.hashers.baselines.semantic import (
    adam_step,
    finetune,
    layer_views,
    n_parameters,
    reconstruction_loss,
    train_rbm,
    unroll,
)

RBM = {"batch_size": 10, "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 2e-4}
TINY = {"hidden_sizes": (30,), "pretrain_max_iter": 5, "max_iter": 5, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)[0][:500]


def test_gradient_of_the_unrolled_network_matches_finite_differences():
    rng = np.random.default_rng(0)
    sizes = (6, 5, 3, 5, 6)
    parameters = rng.standard_normal(n_parameters(sizes))
    rows, noise = rng.random((7, 6)), rng.standard_normal((7, 3))
    _, gradient = reconstruction_loss(parameters, sizes, rows, noise)
    numeric = approx_fprime(parameters, lambda p: reconstruction_loss(p, sizes, rows, noise)[0], 1e-7)
    assert np.allclose(gradient, numeric, atol=1e-5)


def test_loss_is_the_cross_entropy_written_out():
    rng = np.random.default_rng(1)
    sizes, parameters = (4, 2, 4), rng.standard_normal(n_parameters((4, 2, 4)))
    rows, noise = rng.random((5, 4)), rng.standard_normal((5, 2))
    (up, up_bias), (down, down_bias) = layer_views(parameters, sizes)
    code = 1 / (1 + np.exp(-(rows @ up + up_bias + noise)))
    output = 1 / (1 + np.exp(-(code @ down + down_bias)))
    expected = -(rows * np.log(output) + (1 - rows) * np.log(1 - output)).sum() / 5
    assert reconstruction_loss(parameters, sizes, rows, noise)[0] == pytest.approx(expected)


def test_machine_learns_two_repeated_patterns():
    patterns = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=np.float64)
    rows = np.tile(patterns, (50, 1))
    *_, errors = train_rbm(rows, 4, np.random.RandomState(0), n_epochs=50, **RBM)
    assert errors[-1] < 0.05 < errors[0]


def test_unrolled_stack_mirrors_the_machines():
    rng = np.random.RandomState(0)
    first = (rng.rand(5, 4), rng.rand(5), rng.rand(4))
    second = (rng.rand(4, 2), rng.rand(4), rng.rand(2))
    sizes, parameters = unroll([first, second])
    assert sizes == (5, 4, 2, 4, 5)
    layers = layer_views(parameters, sizes)
    assert np.array_equal(layers[1][0], second[0])
    assert np.array_equal(layers[2][0], second[0].T)
    assert np.array_equal(layers[3][0], first[0].T)
    assert np.array_equal(layers[3][1], first[1])


def test_adam_step_is_the_published_update():
    rng = np.random.default_rng(2)
    parameters, first, second = rng.random(8), np.zeros(8), np.zeros(8)
    expected, m, v = parameters.copy(), np.zeros(8), np.zeros(8)
    for step in range(1, 4):
        gradient = rng.standard_normal(8)
        adam_step(parameters, gradient, first, second, 0.1, step)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        expected -= 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    assert np.allclose(parameters, expected, rtol=1e-5)


def test_finetuning_on_all_rows_at_once_lowers_the_loss_each_time():
    rng = np.random.default_rng(3)
    sizes, rows = (6, 4, 2, 4, 6), rng.random((20, 6))
    parameters = 0.1 * rng.standard_normal(n_parameters(sizes))
    noise = rng.standard_normal((20, 2))
    # Full batches and a small step make Adam a descent method here.
    losses = finetune(
        parameters,
        sizes,
        rows,
        noise,
        np.random.RandomState(0),
        n_epochs=50,
        batch_size=20,
        learning_rate=1e-3,
    )
    assert (np.diff(losses) < 0).all()


def test_noise_drives_the_code_units_apart(digits):
    quiet, noisy = (
        SemanticHashing(8, **TINY | {"max_iter": 60}, noise_variance=variance).fit(digits) for variance in (0.0, 16.0)
    )
    size = [np.median(np.abs(hasher.decision_function(digits))) for hasher in (quiet, noisy)]
    assert size[1] > 1.5 * size[0]


def test_finetuning_loss_and_pretraining_error_fall(digits):
    hasher = SemanticHashing(8, hidden_sizes=(50, 30), random_state=0).fit(digits)
    assert hasher.pretrain_errors_.shape == (3, 50)
    assert (hasher.pretrain_errors_[:, -1] < hasher.pretrain_errors_[:, 0]).all()
    assert hasher.objective_history_[-1] < hasher.objective_history_[0]


def test_median_threshold_balances_every_bit(digits):
    hasher = SemanticHashing(8, threshold="median", **TINY).fit(digits)
    assert (np.abs(hasher.bit_balance_ - 0.5) < 0.01).all()
    share = (hasher.transform(digits) > 0).mean(axis=0)
    assert np.allclose(share, hasher.bit_balance_, atol=2 / len(digits))


def test_codes_are_those_of_the_half_activation(digits):
    hasher = SemanticHashing(8, **TINY).fit(digits)
    visible = np.clip((digits - hasher.offset_) * hasher.factor_, 0, 1)
    for weights, biases in layer_views(hasher.encoder_, hasher.layer_sizes_):
        visible = 1 / (1 + np.exp(-(visible @ weights + biases)))
    assert np.array_equal(hasher.transform(digits), np.where(visible >= 0.5, 1, -1))


def test_affine_change_of_the_features_is_absorbed(digits):
    codes = SemanticHashing(8, **TINY).fit_transform(digits)
    assert np.array_equal(SemanticHashing(8, **TINY).fit_transform(4.0 * digits - 8.0), codes)


def test_labels_are_not_read(digits):
    plain, poisoned = (SemanticHashing(4, **TINY).fit(digits, y) for y in (None, np.full(500, np.nan)))
    assert np.array_equal(plain.encoder_, poisoned.encoder_)


def test_unscaled_rows_outside_the_unit_interval_are_refused(digits):
    with pytest.raises(ValueError, match="entries from 0 to 16"):
        SemanticHashing(4, scale="none").fit(digits)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"hidden_sizes": (5, 0)}, "hidden_sizes is 0"),
        ({"max_iter": -1}, "max_iter is -1"),
        ({"threshold": "mean"}, "threshold is 'mean'"),
        ({"noise_variance": -1.0}, "noise_variance is -1.0"),
    ],
)
def test_bad_settings_are_refused(params, message, digits):
    with pytest.raises(ValueError, match=message):
        SemanticHashing(4, **params).fit(digits)
