"""Heads by hand, and the precision by which item codes are softened against that of the evaluation."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.evaluation import precision_at
from starshl.hashers.star.posterior import (
    bit_scores,
    choose_database_temperature,
    linear_bit_scores,
    posterior,
    precision_among,
)

CODEWORDS = np.array([[1, 1, -1], [-1, 1, 1]], dtype=np.int8)


def test_posterior_is_the_softmax_and_survives_large_scores():
    np.testing.assert_allclose(posterior(np.array([[0.0, np.log(3) / 2]]), 2.0), [[0.25, 0.75]])
    assert posterior(np.array([[1e6, 0.0]], dtype=np.float32), 100.0).tolist() == [[1.0, 0.0]]


def test_bits_are_expected_codeword_bits():
    scores = np.array([[0.0, np.log(3)]])
    np.testing.assert_allclose(bit_scores(scores, CODEWORDS, 1.0), [[-0.5, 1.0, 0.5]])
    np.testing.assert_allclose(linear_bit_scores(np.array([[0.8, 0.1]]), CODEWORDS), [[0.7, 0.9, -0.7]])


@pytest.mark.parametrize("n_bits", [1, 5, 16])
def test_precision_among_rows_equals_the_evaluation_without_each_query(n_bits):
    rng = np.random.default_rng(n_bits)
    queries, items = rng.random((12, n_bits)) < 0.5, rng.random((40, n_bits)) < 0.5
    index = rng.integers(0, 3, 40)
    expected = []
    for row in range(12):
        others = np.delete(np.arange(40), row)
        codes = [BinaryCodes.from_signs(bits) for bits in (queries[row : row + 1], items[others])]
        expected.append(precision_at(*codes, index[row : row + 1], index[others]))
    assert precision_among(queries, items, np.eye(3)[index]) == pytest.approx(np.mean(expected))


def test_precision_among_rows_of_unknown_class_is_the_mean_over_classes():
    rng = np.random.default_rng(3)
    queries, items = rng.random((6, 4)) < 0.5, rng.random((30, 4)) < 0.5
    shares = rng.dirichlet(np.ones(3), 30)
    draws = [precision_among(queries, items, rng.multinomial(1, shares)) for _ in range(3000)]
    assert precision_among(queries, items, shares) == pytest.approx(np.mean(draws), abs=4 * np.std(draws) / 3000**0.5)


def test_item_codes_are_softer_where_that_raises_precision():
    rng = np.random.default_rng(0)
    index = rng.integers(0, 4, 800)
    scores = 0.5 * np.eye(4)[index] + 0.3 * rng.standard_normal((800, 4))
    codewords = np.array([[1, 1, 1, -1, -1, -1], [1, -1, -1, 1, 1, -1], [-1, 1, -1, 1, -1, 1], [-1, -1, 1, -1, 1, 1]])
    chosen = choose_database_temperature(scores, index, np.ones(800, bool), codewords, 8.0, seed=0)
    assert 8.0 / 9.6 <= chosen < 8.0
    precisions = [
        precision_among(
            bit_scores(scores, codewords, 8.0) >= 0, bit_scores(scores, codewords, t) >= 0, np.eye(4)[index]
        )
        for t in (8.0, chosen)
    ]
    assert precisions[1] > precisions[0]


def test_unlabeled_items_are_softened_more_beside_many_labeled_ones():
    rng = np.random.default_rng(0)
    index = rng.integers(0, 4, 800)
    scores = 0.5 * np.eye(4)[index] + 0.3 * rng.standard_normal((800, 4))
    codewords = np.array([[1, 1, 1, -1, -1, -1], [1, -1, -1, 1, 1, -1], [-1, 1, -1, 1, -1, 1], [-1, -1, 1, -1, 1, 1]])
    half, few = np.arange(800) < 400, np.arange(800) < 4
    chosen = [choose_database_temperature(scores, index, some, codewords, 8.0, seed=0) for some in (half, few)]
    assert 1.3 <= chosen[0] <= chosen[1] < 8.0


def test_one_class_has_nothing_to_soften():
    known = np.ones(300, bool)
    found = choose_database_temperature(np.zeros((300, 1)), np.zeros(300, int), known, np.ones((1, 4)), 5.0, seed=0)
    assert found == 5.0
