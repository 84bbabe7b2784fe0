"""Nearest-codeword and nearest-neighbor accuracy against plain counting."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.evaluation import codeword_accuracy, expected_precision, hamming_histograms, knn_accuracy


def test_codeword_accuracy_is_the_mean_over_random_choices_among_nearest_codewords():
    rng = np.random.default_rng(1)
    signs, codewords = rng.choice([-1, 1], (150, 4)), rng.choice([-1, 1], (5, 4))
    y, classes = rng.integers(0, 5, 150), np.array([0, 1, 2, 3, 3])
    distances = (signs[:, None] != codewords[None]).sum(axis=2)
    expected = []
    for label, row in zip(y, distances, strict=True):
        choices = np.flatnonzero(row == row.min())
        expected.append(np.mean(classes[choices] == label))
    found = codeword_accuracy(BinaryCodes.from_signs(signs), y, codewords, classes)
    assert found == pytest.approx(np.mean(expected))
    assert found == codeword_accuracy(BinaryCodes.from_signs(signs), y, BinaryCodes.from_signs(codewords), classes)


def test_codeword_accuracy_refuses_what_cannot_be_scored():
    codes = BinaryCodes.from_signs(np.ones((3, 4)))
    with pytest.raises(ValueError, match="one class per codeword"):
        codeword_accuracy(codes, [0, 0, 0], np.ones((2, 4)), [0])
    with pytest.raises(ValueError, match="unlabeled rows"):
        codeword_accuracy(codes, [0, -1, 0], np.ones((1, 4)), [0])


@pytest.mark.parametrize("k", [1, 4, 7, 60])
def test_knn_accuracy_splits_the_last_votes_among_ties(k):
    rng = np.random.default_rng(2)
    signs, y = rng.choice([-1, 1], (90, 5)), rng.integers(0, 3, 90)
    codes = BinaryCodes.from_signs(signs)
    expected = []
    for row, label in zip(codes[:30].distances(codes[30:]), y[:30], strict=True):
        reached = np.sort(row)[k - 1]
        weight = np.where(row < reached, 1.0, 0.0)
        weight[row == reached] = (k - (row < reached).sum()) / (row == reached).sum()
        votes = np.bincount(y[30:], weight, minlength=3)
        winners = np.flatnonzero(np.isclose(votes, votes.max()))
        expected.append((label in winners) / len(winners))
    found = knn_accuracy(codes[:30], codes[30:], y[:30], y[30:], k)
    assert found == pytest.approx(np.mean(expected))
    shuffled = rng.permutation(60)
    assert found == knn_accuracy(codes[:30], codes[30:][shuffled], y[:30], y[30:][shuffled], k, n_jobs=2)


def test_one_neighbor_without_ties_is_precision_at_one():
    signs = 2 * ((np.arange(8)[:, None] >> np.arange(3)) & 1) - 1
    codes = BinaryCodes.from_signs(signs)
    y_query, y_db = np.arange(8) % 2, np.arange(8) // 4
    histograms = hamming_histograms(codes, codes, y_query, y_db)
    assert knn_accuracy(codes, codes, y_query, y_db, 1) == expected_precision(histograms, 1).mean()


def test_knn_accuracy_refuses_bad_input():
    codes = BinaryCodes.from_signs(np.ones((3, 4)))
    with pytest.raises(ValueError, match="k is 0"):
        knn_accuracy(codes, codes, [0, 0, 1], [0, 0, 1], 0)
    with pytest.raises(ValueError, match="not label matrices"):
        knn_accuracy(codes, codes, np.eye(3), np.eye(3))
