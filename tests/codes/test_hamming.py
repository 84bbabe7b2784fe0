"""The compiled scan against distances computed by NumPy, one by one."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.codes.hamming import from_planes, nearest, score_penalties, to_planes, within, word_type


def random_codes(n_codes, n_bits, seed=0):
    signs = np.random.default_rng(seed).choice([-1, 1], size=(n_codes, n_bits))
    return BinaryCodes.from_signs(signs)


@pytest.mark.parametrize("n_bits", [1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 80, 96, 128, 129, 200])
def test_planes_give_the_codes_back(n_bits):
    codes = random_codes(20, n_bits)
    assert from_planes(to_planes(codes), n_bits) == codes


def test_planes_and_ids_weigh_at_most_a_quarter_more_than_packed_codes_and_ids():
    for n_bits in range(1, 300):
        packed = -(-n_bits // 8)
        item = word_type(n_bits)().itemsize
        held = -(-packed // item) * item
        assert held + 8 <= 1.25 * (packed + 8)


@pytest.mark.parametrize("n_bits", [5, 16, 64, 70, 128])
@pytest.mark.parametrize("n_rows", [1, 127, 128, 129, 1000])
def test_nearest_agrees_with_a_stable_sort_of_all_distances(n_bits, n_rows):
    codes, queries = random_codes(n_rows, n_bits), random_codes(6, n_bits, seed=1)
    expected = queries.distances(codes)
    for k in {1, min(7, n_rows), n_rows}:
        rows, distances = nearest(to_planes(codes), to_planes(queries), k, n_bits)
        order = np.argsort(expected, axis=1, kind="stable")[:, :k]
        assert np.array_equal(rows, order)
        assert np.array_equal(distances, np.take_along_axis(expected, order, axis=1))


@pytest.mark.parametrize("n_bits", [5, 64, 70])
@pytest.mark.parametrize("radius", [0, 2, 20, 64])
def test_within_finds_every_row_of_the_ball_in_order(n_bits, radius):
    codes, queries = random_codes(1000, n_bits), random_codes(6, n_bits, seed=1)
    expected = queries.distances(codes)
    starts, rows, distances = within(to_planes(codes), to_planes(queries), radius, n_bits)
    for q, of_query in enumerate(expected):
        order = np.argsort(of_query, kind="stable")
        order = order[of_query[order] <= radius]
        assert rows[starts[q] : starts[q + 1]].tolist() == order.tolist()
        assert distances[starts[q] : starts[q + 1]].tolist() == of_query[order].tolist()


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("n_queries", [3, 40, 70])
def test_a_mask_hides_rows_from_both_searches(share, n_queries):
    codes, queries = random_codes(40_000, 64), random_codes(n_queries, 64, seed=1)
    mask = np.random.default_rng(2).random(len(codes)) < share
    allowed = np.flatnonzero(mask)
    planes, query_planes = to_planes(codes), to_planes(queries)
    expected = queries.distances(codes)[:, allowed]
    rows, _ = nearest(planes, query_planes, 20, 64, mask=mask)
    order = np.argsort(expected, axis=1, kind="stable")[:, :20]
    assert np.array_equal(rows, allowed[order])
    starts, rows, _ = within(planes, query_planes, 18, 64, mask=mask)
    for q in range(n_queries):
        found = rows[starts[q] : starts[q + 1]]
        assert sorted(found.tolist()) == allowed[expected[q] <= 18].tolist()


@pytest.mark.parametrize("n_queries", [2, 70])
def test_threads_and_tiles_do_not_change_a_bit_of_the_result(n_queries):
    codes, queries = random_codes(150_000, 64), random_codes(n_queries, 64, seed=1)
    planes, query_planes = to_planes(codes), to_planes(queries)
    one, three = (nearest(planes, query_planes, 10, 64, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))
    expected = queries.distances(codes)
    order = np.argsort(expected, axis=1, kind="stable")[:, :10]
    assert np.array_equal(one[0], order)
    one, three = (within(planes, query_planes, 16, 64, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))
    assert len(one[1]) == np.count_nonzero(expected <= 16)


def test_penalty_sums_the_weights_of_the_bits_that_differ():
    codes = BinaryCodes.from_signs(np.array([[1, 1, 1], [-1, 1, -1], [-1, -1, -1]]))
    query = to_planes(BinaryCodes.from_signs(np.array([[1, 1, 1]])))[:, 0].copy()
    penalties = score_penalties(to_planes(codes), np.arange(3), query, np.array([1.0, 10.0, 0.5]))
    assert penalties.tolist() == [0.0, 1.5, 11.5]
