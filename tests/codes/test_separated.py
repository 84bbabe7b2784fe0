"""Codewords that lie far apart."""

import numpy as np
import pytest

from starshl.codes import hadamard_matrix, minimum_distance, random_codewords, separated_codewords


def useful_columns(codewords):
    """Columns that are neither equal nor complementary to another."""
    return np.unique(codewords * codewords[:1], axis=1).shape[1]


@pytest.mark.parametrize("order", [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 44, 60, 76, 128])
def test_hadamard_rows_are_orthogonal_signs(order):
    matrix = hadamard_matrix(order)
    assert set(np.unique(matrix)) <= {-1, 1}
    assert np.array_equal(matrix.astype(int) @ matrix.T, order * np.eye(order))
    assert np.all(matrix[:, 0] == 1)


@pytest.mark.parametrize("order", [0, 3, 6, 52])
def test_hadamard_refuses_orders_it_cannot_build(order):
    with pytest.raises(ValueError, match=f"order {order}"):
        hadamard_matrix(order)


@pytest.mark.parametrize(
    ("n_codewords", "n_bits", "distance"),
    [
        *[(10, n_bits, distance) for n_bits, distance in ((8, 4), (10, 5), (12, 6), (15, 8), (16, 8), (20, 10))],
        *[(10, 24, 12), (10, 32, 16), (26, 16, 8), (26, 32, 16)],
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_separated_codewords_reach_the_best_known_distances(n_codewords, n_bits, distance, seed):
    codewords = separated_codewords(n_codewords, n_bits, np.random.RandomState(seed))
    assert minimum_distance(codewords) >= distance


@pytest.mark.parametrize("n_codewords", [2, 3, 4, 5, 7, 10, 26, 100])
@pytest.mark.parametrize("n_bits", [1, 2, 4, 5, 7, 9, 13, 25, 45])
def test_separated_codewords_waste_nothing(n_codewords, n_bits):
    codewords = separated_codewords(n_codewords, n_bits, np.random.RandomState(0))
    assert codewords.shape == (n_codewords, n_bits)
    assert codewords.dtype == np.int8
    assert not np.any(np.abs(codewords.sum(axis=0)) == n_codewords)
    assert len(np.unique(codewords, axis=0)) == min(n_codewords, 2**n_bits)
    assert useful_columns(codewords) == min(n_bits, 2 ** (n_codewords - 1) - 1)


@pytest.mark.parametrize(("n_codewords", "n_bits"), [(10, 4), (10, 8), (16, 4), (26, 5), (2, 32), (3, 2), (10, 64)])
def test_random_codewords_have_distinct_rows_and_no_constant_column(n_codewords, n_bits):
    for seed in range(20):
        codewords = random_codewords(n_codewords, n_bits, np.random.RandomState(seed))
        assert len(np.unique(codewords, axis=0)) == n_codewords
        assert not np.any(np.abs(codewords.sum(axis=0)) == n_codewords)


def test_random_codewords_of_the_paper_may_collide():
    drawn = [random_codewords(10, 4, np.random.RandomState(seed), distinct=False) for seed in range(50)]
    n_distinct = np.array([len(np.unique(codewords, axis=0)) for codewords in drawn])
    # Ten i.i.d. words of four bits collide with probability 0.974.
    assert 40 <= np.sum(n_distinct < 10) <= 50


def test_one_codeword_is_no_problem():
    assert separated_codewords(1, 8, np.random.RandomState(0)).shape == (1, 8)
    assert random_codewords(1, 8, np.random.RandomState(0)).shape == (1, 8)


def test_same_seed_gives_the_same_codewords():
    first, second = (separated_codewords(10, 25, np.random.RandomState(3)) for _ in range(2))
    assert np.array_equal(first, second)
