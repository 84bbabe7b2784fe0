"""Codewords, kernel weights and assignments that users may give, and those that are refused."""

import numpy as np
import pytest

from starshl.hashers.star.star_training import check_assignments, initial_codewords, initial_weights


def rng(seed=0):
    return np.random.RandomState(seed)


@pytest.mark.parametrize("codewords", ["separated", "random"])
def test_words_give_signs(codewords):
    signs = initial_codewords(codewords, np.arange(5), 8, rng(), distinct=True)
    assert signs.shape == (5, 8)
    assert set(np.unique(signs)) == {-1, 1}
    assert len(np.unique(signs, axis=0)) == 5


def test_given_codewords_are_copied():
    given = np.array([[1, -1], [-1, 1]])
    signs = initial_codewords(given, np.arange(2), 2, rng(), distinct=True)
    signs[:] = 1
    assert given.tolist() == [[1, -1], [-1, 1]]
    assert initial_codewords(given.tolist(), np.arange(2), 2, rng(), distinct=True).dtype == np.int8


@pytest.mark.parametrize(
    "codewords", [np.ones((2, 3)), np.zeros((2, 2)), np.array([["a", "b"]] * 2), [[1, np.nan]] * 2]
)
def test_codewords_of_another_shape_or_value_are_refused(codewords):
    with pytest.raises(ValueError, match=r"codewords has shape .* \(2, 2\)"):
        initial_codewords(codewords, np.arange(2), 2, rng(), distinct=True)


def test_unknown_word_is_refused():
    with pytest.raises(ValueError, match="'hadamard'"):
        initial_codewords("hadamard", np.arange(2), 2, rng(), distinct=True)


def test_equal_codewords_are_warned_of():
    with pytest.warns(UserWarning, match="equal"):
        initial_codewords(np.ones((2, 2)), np.arange(2), 2, rng(), distinct=True)


@pytest.mark.parametrize("p", [1.0, 2.0, 7.0, np.inf])
def test_equal_weights_lie_on_the_sphere(p):
    weights = initial_weights(None, 3, 5, p, rng())
    assert np.ptp(weights) == 0
    assert np.linalg.norm(weights[0], ord=p) == pytest.approx(1)


def test_random_weights_sum_to_one():
    weights = initial_weights("random", 4, 6, 2.0, rng())
    assert weights.sum(axis=1) == pytest.approx(np.ones(4))
    assert np.all(weights > 0)
    assert len(np.unique(weights, axis=0)) == 4


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((2, 2)), "1.41"),
        ([[0.5, -0.1], [0.5, 0.5]], "negative"),
        ([[0.5, np.nan], [0.5, 0.5]], "negative|norm"),
        ([[0.0, 0.0], [0.5, 0.5]], "zeros"),
        (np.full((2, 3), 0.1), r"shape \(2, 3\)"),
        ("equal", "'equal'"),
    ],
)
def test_weights_outside_the_ball_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        initial_weights(weights, 2, 2, 2.0, rng())


def test_given_assignments_fill_the_unlabeled_rows():
    labels = np.array([0, -1, 2, -1])
    assert check_assignments([9, 1, -5, 0], labels, 3).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("given", [[0, 3, 0, 0], [0, -1, 0, 0], [0, 1.0, 0, 0], [0, 1]])
def test_assignments_to_no_codeword_are_refused(given):
    with pytest.raises(ValueError, match="initial_assignments"):
        check_assignments(given, np.array([0, -1, 2, -1]), 3)
