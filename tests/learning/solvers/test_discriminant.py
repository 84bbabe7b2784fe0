"""Discriminant analysis of class scores: what it mends, when it stays away, and that no row judges itself."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from starshl.learning.solvers.discriminant import ScoreSums, fit_discriminant


def masked_scores(n_per_class, seed=0):
    """Scores of three classes on a line: linear regression never gives the class in the middle the largest one."""
    rng = np.random.default_rng(seed)
    index = np.repeat(np.arange(3), n_per_class)
    x = index - 1 + 0.1 * rng.standard_normal(len(index))
    scores = np.column_stack([1 / 3 - x / 2, np.full(len(x), 1 / 3), 1 / 3 + x / 2])
    return scores + 0.02 * rng.standard_normal(scores.shape), index


def test_a_class_between_two_others_is_found():
    scores, index = masked_scores(60)
    assert np.mean(scores.argmax(axis=1) == index) < 0.9
    found = fit_discriminant(scores, index, np.ones(len(index)))
    assert np.mean((scores @ found.matrix + found.shift).argmax(axis=1) == index) > 0.99
    assert np.mean(found.crossed.argmax(axis=1) == index) > 0.99


def test_little_shrinkage_is_linear_discriminant_analysis():
    rng = np.random.default_rng(1)
    index = np.repeat(np.arange(3), 50)
    scores = np.eye(3)[index] + rng.standard_normal((150, 3)) @ rng.standard_normal((3, 3))
    matrix, shift = ScoreSums.of(scores, index, np.ones(150)).discriminant(1e-9)
    expected = LinearDiscriminantAnalysis(solver="lsqr").fit(scores, index).decision_function(scores)
    reached = scores @ matrix + shift
    reached, expected = (values - values.mean(axis=1, keepdims=True) for values in (reached, expected))
    np.testing.assert_allclose(reached / reached.std(), expected / expected.std(), atol=1e-6)


def test_nearly_full_shrinkage_keeps_the_order_of_the_scores():
    scores, index = masked_scores(20)
    matrix, shift = ScoreSums.of(scores, index, np.ones(60)).discriminant(1 - 1e-9)
    assert np.array_equal((scores @ matrix + shift).argsort(axis=1), scores.argsort(axis=1))


def test_a_row_is_judged_by_the_map_of_other_rows():
    scores, index = masked_scores(60)
    found = fit_discriminant(scores, index, np.ones(180))
    changed = scores.copy()
    changed[7, 2] += 1e-3  # not the score of its own class, which says who is in which fold
    again = fit_discriminant(changed, index, np.ones(180))
    step = (again.crossed[7] - found.crossed[7]) / 1e-3
    assert again.shrinkage == found.shrinkage
    same_fold = np.flatnonzero(np.all(np.abs(again.crossed - found.crossed) < 1e-9, axis=1))
    assert len(same_fold) == 180 / 5 - 1  # the other folds learned from the row
    refit = np.linalg.lstsq(np.c_[scores[same_fold], np.ones(35)], found.crossed[same_fold], rcond=None)[0]
    np.testing.assert_allclose(step, refit[2], rtol=1e-4)


@pytest.mark.parametrize("n_rows", [60, 10_000])  # one tile, and three
def test_sums_are_those_of_whole_matrices(n_rows):
    rng = np.random.default_rng(3)
    scores = (5 + rng.standard_normal((n_rows, 4))).astype(np.float32)
    index, weights = rng.integers(0, 4, n_rows), rng.uniform(0.5, 2.0, n_rows)
    exact, targets = scores.astype(np.float64), np.eye(4)[index]
    found = ScoreSums.of(scores, index, weights)
    np.testing.assert_allclose(found.counts, weights @ targets, rtol=1e-12)
    np.testing.assert_allclose(found.sums, (targets * weights[:, None]).T @ exact, rtol=1e-12)
    np.testing.assert_allclose(found.squares, exact.T @ (weights[:, None] * exact), rtol=1e-12)


def test_the_order_of_the_rows_does_not_matter():
    scores, index = masked_scores(40)
    order = np.random.default_rng(5).permutation(120)
    one, other = (fit_discriminant(scores[rows], index[rows], np.ones(120)) for rows in (np.arange(120), order))
    np.testing.assert_allclose(one.crossed[order], other.crossed, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n_per_class", [3, 9])
def test_few_rows_stay_as_they_are(n_per_class):
    scores, index = masked_scores(n_per_class)
    assert fit_discriminant(scores, index, np.ones(len(index))) is None


def test_many_rows_of_little_weight_count_as_few():
    scores, index = masked_scores(60)
    weights = np.full(180, 1e-6)
    weights[::20] = 1.0
    assert fit_discriminant(scores, index, weights) is None


def test_noise_and_independent_classes_stay_as_they_are():
    rng = np.random.default_rng(2)
    index = np.repeat(np.arange(4), 50)
    noise = rng.standard_normal((200, 4))
    for scores in (noise, np.eye(4)[index] + 0.4 * noise):
        assert fit_discriminant(scores, index, np.ones(200)) is None


def test_what_being_left_out_does_to_the_own_class_is_not_learned():
    """Without itself, a row's class has fewer rows, and so a lower score: this tells nothing about new rows."""
    rng = np.random.default_rng(3)
    index = np.repeat(np.arange(4), 15)
    scores = 0.25 - 0.02 * np.eye(4)[index] + 0.01 * rng.standard_normal((60, 4))
    assert fit_discriminant(scores, index, np.ones(60)) is None


def test_rows_of_a_class_that_are_all_equal_do_no_harm():
    index = np.repeat(np.arange(3), 20)
    found = fit_discriminant(np.eye(3)[index], index, np.ones(60))
    assert found is None or np.isfinite(found.crossed).all()
