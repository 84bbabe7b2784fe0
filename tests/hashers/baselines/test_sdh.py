from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.codes import minimum_distance
from starshl.hashers.baselines import SDH
from starshl.hashers.baselines.sdh import ClassesFromCodes, CodesFromClasses

VARIANTS = ["sdh", "fsdh", "hadamard"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture
def small_problem():
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=7)
    Y, H = np.eye(3)[classes], np.sign(rng.standard_normal((7, 4)))
    return Y, H, rng.standard_normal((4, 3)), 0.3 * rng.standard_normal((7, 4))


@pytest.mark.parametrize("n_anchors", [100, None])
@pytest.mark.parametrize("variant", ["sdh", "fsdh"])
def test_objective_never_rises(digits, variant, n_anchors):
    X, y = digits[0][:400], digits[1][:400]
    # A stiff regression that weighs much keeps the blocks from agreeing after one round.
    settings = {"code_penalty": 5.0, "regularization": 30.0, "random_state": 0}
    history = SDH(12, variant=variant, n_anchors=n_anchors, **settings).fit(X, y).objective_history_
    assert len(history) == 15
    assert history[-1] < history[0]
    assert np.all(np.diff(history) <= 1e-9 * history[0])


def test_every_column_of_the_discrete_step_is_the_exhaustive_minimum(small_problem):
    Y, H, W, pull = small_problem
    found = ClassesFromCodes(max_iter=50).best_codes(Y, H, W, pull)

    def cost(row, code):
        return np.sum((Y[row] - code @ W) ** 2) - 2 * code @ pull[row]

    for row, column in product(range(7), range(4)):
        flipped = found[row].copy()
        flipped[column] *= -1
        assert cost(row, found[row]) <= cost(row, flipped)


def test_closed_form_codes_are_the_exhaustive_minimum(small_problem):
    Y, H, W, pull = small_problem
    found = CodesFromClasses().best_codes(Y, H, W.T[:, :4], pull)
    for row in range(7):
        costs = {
            code: np.sum((np.array(code) - Y[row] @ W.T) ** 2) - 2 * np.array(code) @ pull[row]
            for code in product((-1.0, 1.0), repeat=4)
        }
        assert tuple(found[row]) == min(costs, key=costs.get)


def test_hadamard_codewords_of_fifteen_bits_lie_eight_apart(digits):
    hasher = SDH(15, variant="hadamard", n_anchors=50, random_state=0).fit(*digits)
    assert minimum_distance(hasher.codewords_) == 8


@pytest.mark.parametrize("variant", VARIANTS)
def test_held_out_digits_are_retrieved(digits, variant):
    X, y = digits
    hasher = SDH(16, variant=variant, n_anchors=500, random_state=0).fit(X[:1000], y[:1000])
    distances = hasher.encode(X[1000:]).distances(hasher.encode(X[:1000]))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
    # The writers of the last digits are others than those of the first: .95 here, .99 on a shuffled split.
    assert np.mean(y[:1000][nearest] == y[1000:, None]) > 0.92


def test_all_rows_as_anchors_are_regularized_as_kernel_ridge(digits):
    X, y = digits[0][:300], digits[1][:300]
    hasher = SDH(8, variant="hadamard", n_anchors=None, regularization=0.1, random_state=0).fit(X, y)
    K = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / hasher.scale_) + 1
    expected = K @ np.linalg.solve(K + 0.1 * np.eye(300), hasher.codewords_[y])
    np.testing.assert_allclose(hasher.decision_function(X), expected, atol=1e-8)


def test_mean_width_follows_the_unit_of_the_features(digits):
    X, y = digits[0][:300], digits[1][:300]
    codes = [SDH(8, n_anchors=100, random_state=0).fit(c * X, y).transform(c * X) for c in (1, 256)]
    assert np.array_equal(*codes)


def test_classes_may_be_strings(digits):
    X, y = digits[0][:200], digits[1][:200]
    named = np.array([f"digit {label}" for label in y])
    codes = [SDH(8, random_state=0).fit(X, labels).transform(X) for labels in (y, named)]
    assert np.array_equal(*codes)


def test_missing_labels_point_to_methods_that_need_none(digits):
    X, y = digits[0][:50], digits[1][:50].copy()
    with pytest.raises(ValueError, match="SDH requires y"):
        SDH(8).fit(X)
    y[3] = -1
    with pytest.raises(ValueError, match=r"1 of 50 rows unlabeled"):
        SDH(8).fit(X, y)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"variant": "hard"}, "variant is 'hard'"),
        ({"sigma": "median"}, "sigma is 'median'"),
        ({"n_anchors": 0}, "n_anchors is 0"),
        ({"regularization": 0}, "regularization is 0"),
        ({"code_penalty": -1}, "code_penalty is -1"),
    ],
)
def test_bad_parameters_are_named(digits, params, match):
    with pytest.raises(ValueError, match=match):
        SDH(4, **params).fit(digits[0][:50], digits[1][:50])


def test_model_of_all_rows_outlives_a_change_of_the_training_rows(digits):
    X, y = digits[0][:100].copy(), digits[1][:100]
    hasher = SDH(4, variant="hadamard", n_anchors=None, random_state=0).fit(X, y)
    before = hasher.decision_function(digits[0][100:110])
    X[:] = 0
    assert np.array_equal(hasher.decision_function(digits[0][100:110]), before)
