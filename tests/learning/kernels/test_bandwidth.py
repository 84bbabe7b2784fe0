"""The median distance: a plain median, and weights that count as repetitions."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from starshl.learning.kernels.distances import distinct_rows
from starshl.learning.kernels.vectors import median_distance, merge_equal_rows


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(31, 4))


def test_median_is_that_of_all_pairs(rows):
    distances = np.sort(pdist(rows))
    assert distances[len(distances) // 2 - 1] <= median_distance(rows) <= distances[len(distances) // 2]


def test_weights_count_as_repetitions(rows):
    weights = np.random.default_rng(1).integers(0, 4, len(rows))
    assert median_distance(rows, weights) == median_distance(np.repeat(rows, weights, axis=0))


def test_equal_rows_do_not_pull_the_median_to_zero(rows):
    assert median_distance(np.vstack([rows[:2], np.tile(rows[0], (50, 1))])) == pytest.approx(
        np.linalg.norm(rows[0] - rows[1])
    )


@pytest.mark.parametrize("n_rows", [31, 2500])
def test_order_and_repetition_of_all_rows_change_nothing(n_rows):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(n_rows, 3))
    median = median_distance(rows)
    assert median_distance(rows[rng.permutation(n_rows)]) == median
    assert median_distance(np.tile(rows, (2, 1))) == median
    assert median_distance(rows, np.full(n_rows, 0.3)) == median


def test_median_of_many_rows_is_close_to_that_of_all_pairs():
    rows = np.random.default_rng(3).normal(size=(3000, 5))
    assert median_distance(rows) == pytest.approx(np.median(pdist(rows)), rel=0.01)


def test_float32_rows_have_the_median_of_float64_rows():
    rows = np.random.default_rng(4).normal(size=(900, 30)).astype(np.float32)
    assert median_distance(rows) == pytest.approx(median_distance(rows.astype(np.float64)), rel=1e-6)


@pytest.mark.parametrize("rows", [np.ones((4, 2)), np.ones((1, 2))])
def test_rows_without_a_positive_distance_give_one(rows):
    assert median_distance(rows) == 1.0


def test_merging_keeps_distinct_rows_of_positive_weight():
    rows, weights = merge_equal_rows(np.array([[2.0], [1.0], [2.0], [3.0]]), np.array([1.0, 0.5, 2.0, 0.0]))
    assert rows.tolist() == [[1], [2]]
    assert weights.tolist() == [0.5, 3]


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_distinct_rows_are_sorted_as_numbers(precision):
    rows = np.random.default_rng(5).choice([-3.0, -1e-30, -0.0, 0.0, 2.0, 1e9], (200, 3)).astype(precision)
    distinct, number = distinct_rows(rows)
    expected, expected_number = np.unique(rows, axis=0, return_inverse=True)
    assert np.array_equal(distinct, expected)
    assert distinct.dtype == np.float64
    assert np.array_equal(number, expected_number.ravel())


def test_rows_without_numbers_are_all_equal():
    distinct, number = distinct_rows(np.zeros((3, 0)))
    assert distinct.shape == (1, 0)
    assert number.tolist() == [0, 0, 0]
