"""Distances to codewords and the assignment step, against plain sums and brute force."""

from itertools import product

import numpy as np
import pytest

from starshl.learning.solvers.objective import hamming_distances, hinge_distances, nearest_codewords, reassign


def plain_hinge(scores, codewords):
    return np.array(
        [[sum(max(0, 1 - m * f) for m, f in zip(mu, row, strict=True)) for mu in codewords] for row in scores]
    )


@pytest.fixture
def scores_and_codewords():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 5)), rng.choice([-1, 1], (6, 5)).astype(np.int8)


def test_hinge_distances_are_sums_of_hinges(scores_and_codewords):
    scores, codewords = scores_and_codewords
    assert hinge_distances(scores, codewords) == pytest.approx(plain_hinge(scores, codewords))


def test_hamming_distances_count_wrong_signs(scores_and_codewords):
    scores, codewords = scores_and_codewords
    signs = np.where(scores >= 0, 1, -1)
    assert np.array_equal(hamming_distances(scores, codewords), (signs[:, None] != codewords[None]).sum(2))


def test_hamming_distance_never_exceeds_the_hinge_distance(scores_and_codewords):
    scores, codewords = scores_and_codewords
    scores[::3, ::2] = 0.0  # a score of zero is a wrong bit for one sign and costs hinge 1 for both
    assert np.all(hamming_distances(scores, codewords) <= hinge_distances(scores, codewords))


def test_zero_scores_count_as_plus():
    assert hamming_distances(np.zeros((1, 3)), np.array([[1, 1, 1], [-1, -1, -1]])).tolist() == [[0, 3]]
    assert hinge_distances(np.zeros((1, 3)), np.array([[1, 1, 1], [-1, -1, -1]])).tolist() == [[3, 3]]


def test_nearest_codeword_by_hamming_then_hinge_then_index():
    codewords = np.array([[1, 1], [1, -1], [-1, -1], [1, 1]])
    assert nearest_codewords(np.array([[2.0, -1.0]]), codewords).tolist() == [1]
    # (+, +) would be at Hamming distance 1 from both neighbors; the hinge prefers the weaker bit.
    apart = np.array([[-1, 1], [1, -1]])
    assert nearest_codewords(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]), apart).tolist() == [1, 0, 0]
    assert nearest_codewords(np.array([[1.0, 1.0]]), codewords).tolist() == [0]


def test_hinge_prefers_the_codeword_of_the_hand_example():
    codewords = np.array([[1, 1], [1, -1], [-1, -1]])
    assert hinge_distances(np.array([[2.0, -1.0]]), codewords).tolist() == [[2, 0, 3]]
    assignments = np.array([0])
    assert reassign(np.array([[2.0, -1.0]]), codewords, assignments, np.array([0]), np.zeros(3, bool)) == 1
    assert assignments.tolist() == [1]


def total(scores, codewords, assignments):
    return plain_hinge(scores, codewords)[np.arange(len(scores)), assignments].sum()


def test_unprotected_step_is_the_exact_minimizer():
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores, codewords = rng.normal(size=(4, 3)), rng.choice([-1, 1], (3, 3))
        assignments = rng.integers(0, 3, 4)
        free = np.array([0, 2, 3])
        fixed = assignments[1]
        reassign(scores, codewords, assignments, free, np.zeros(3, bool))
        choices = (np.array([a, fixed, b, c]) for a, b, c in product(range(3), repeat=3))
        assert assignments[1] == fixed
        assert total(scores, codewords, assignments) == pytest.approx(
            min(total(scores, codewords, choice) for choice in choices)
        )


def test_protected_codewords_are_never_emptied_and_the_loss_never_rises():
    rng = np.random.default_rng(2)
    for _ in range(200):
        n_rows, n_codewords = int(rng.integers(3, 9)), int(rng.integers(2, 5))
        scores = rng.normal(size=(n_rows, 3)) + 2.0  # pulls all rows to one codeword
        codewords = rng.choice([-1, 1], (n_codewords, 3))
        assignments = rng.integers(0, n_codewords, n_rows)
        protected = np.bincount(assignments, minlength=n_codewords) > 0
        before = total(scores, codewords, assignments)
        old = assignments.copy()
        n_moved = reassign(scores, codewords, assignments, np.arange(n_rows), protected)
        assert np.all(np.bincount(assignments, minlength=n_codewords)[protected] > 0)
        assert n_moved == np.sum(assignments != old)
        assert total(scores, codewords, assignments) <= before - (1e-12 if n_moved else 0)


def test_the_row_that_gains_most_moves_first():
    codewords = np.array([[1], [-1]])
    scores, assignments = np.array([[-0.5], [-3.0], [-1.0]]), np.zeros(3, int)
    assert reassign(scores, codewords, assignments, np.arange(3), np.array([True, True])) == 2
    assert assignments.tolist() == [0, 1, 1]


def test_rows_stay_on_ties():
    assignments = np.array([1, 0])
    codewords = np.array([[1, 1], [1, 1]])
    assert reassign(np.ones((2, 2)), codewords, assignments, np.arange(2), np.zeros(2, bool)) == 0
    assert reassign(np.zeros((2, 2)), np.array([[1, 1], [-1, -1]]), assignments, np.arange(2), np.zeros(2, bool)) == 0
    assert assignments.tolist() == [1, 0]
