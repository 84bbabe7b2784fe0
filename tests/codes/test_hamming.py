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


def assert_both_agree_with_a_sort(codes, queries, k, radius, mask=None, n_jobs=None):
    """Compare both searches with a stable sort of all distances, computed byte by byte."""
    planes, query_planes, n_bits = to_planes(codes), to_planes(queries), codes.n_bits
    allowed = np.arange(len(codes)) if mask is None else np.flatnonzero(mask)
    rows, distances = nearest(planes, query_planes, k, n_bits, mask=mask, n_jobs=n_jobs)
    starts, ball_rows, ball_distances = within(planes, query_planes, radius, n_bits, mask=mask, n_jobs=n_jobs)
    for q, query in enumerate(queries.packed):
        expected = np.bitwise_count(codes.packed[allowed] ^ query).sum(axis=1, dtype=np.int64)
        order = np.argsort(expected, kind="stable")
        assert np.array_equal(rows[q, : len(order)], allowed[order[:k]])
        assert np.array_equal(distances[q, : len(order)], expected[order[:k]])
        assert (rows[q, len(order) :] == -1).all()
        inside, ball = order[expected[order] <= radius], slice(starts[q], starts[q + 1])
        assert np.array_equal(ball_rows[ball], allowed[inside])
        assert np.array_equal(ball_distances[ball], expected[inside])


def hard_codes(kind, n_rows, n_bits=64):
    codes = random_codes(n_rows, n_bits)
    packed = codes.packed.copy()
    if kind == "all equal":
        packed[:] = packed[0]
    elif kind == "few different":
        packed[:] = packed[np.random.default_rng(1).integers(5, size=n_rows)]
    elif kind != "random":
        order = np.argsort(np.bitwise_count(packed ^ packed[0]).sum(axis=1), kind="stable")
        packed = packed[order if kind == "nearest first" else order[::-1]]
    return BinaryCodes(packed, n_bits)


@pytest.mark.parametrize("kind", ["random", "all equal", "few different", "nearest first", "farthest first"])
@pytest.mark.parametrize(("n_rows", "k"), [(65_535, 256), (65_536, 255), (65_536, 256), (65_700, 5_000)])
def test_large_k_is_exact_on_hard_data_whether_or_not_a_sample_is_taken_first(kind, n_rows, k):
    codes = hard_codes(kind, n_rows)
    queries = BinaryCodes(np.concatenate([codes.packed[:1], random_codes(2, 64, seed=1).packed]), 64)
    assert_both_agree_with_a_sort(codes, queries, k, radius=24)


@pytest.mark.parametrize("share", [None, 0.002, 0.5])
@pytest.mark.parametrize("near", [slice(0, 100), slice(64, 400), slice(65_000, 65_700)])
def test_rows_are_found_where_a_sample_promised_more_near_ones_than_there_are(near, share):
    # Only one stretch of rows is near: a sample that meets it expects hundreds of times as many.
    packed = np.full((70_000, 8), 255, np.uint8)
    packed[near] = 0
    packed[:, 0] ^= np.arange(70_000).astype(np.uint8)
    mask = None if share is None else np.random.default_rng(0).random(len(packed)) < share
    queries = BinaryCodes(np.zeros((2, 8), np.uint8), 64)
    assert_both_agree_with_a_sort(BinaryCodes(packed, 64), queries, k=300, radius=20, mask=mask)


@pytest.mark.parametrize("n_bits", [192, 256, 320, 512, 1088])
@pytest.mark.parametrize("n_rows", [100, 2048, 2049, 17_500])
def test_long_codes_are_compared_to_their_last_word_and_row(n_bits, n_rows):
    codes = hard_codes("few different" if n_rows == 2049 else "random", n_rows, n_bits)
    queries = BinaryCodes(np.concatenate([codes.packed[-1:], random_codes(2, n_bits, seed=1).packed]), n_bits)
    mask = np.random.default_rng(2).random(n_rows) < 0.03
    assert_both_agree_with_a_sort(codes, queries, k=12, radius=n_bits // 2 - 5)
    assert_both_agree_with_a_sort(codes, queries, k=12, radius=n_bits // 2, mask=mask)


@pytest.mark.parametrize("radius", [0, 1, 40, 64])
@pytest.mark.parametrize("kind", ["all equal", "nearest first", "farthest first"])
def test_balls_of_any_share_of_the_rows_are_complete(kind, radius):
    codes = hard_codes(kind, 50_000)
    queries = BinaryCodes(np.concatenate([codes.packed[:2], ~codes.packed[:1]]), 64)
    assert_both_agree_with_a_sort(codes, queries, k=10, radius=radius)


@pytest.mark.parametrize("n_bits", [(1 << 18) - 8, 1 << 18, (1 << 18) + 64])
def test_codes_of_a_quarter_of_a_million_bits_have_true_distances(n_bits):
    packed = np.random.default_rng(0).integers(256, size=(6, n_bits // 8), dtype=np.uint8)
    packed[3], packed[4] = ~packed[0], packed[0]
    codes = BinaryCodes(packed, n_bits)
    assert_both_agree_with_a_sort(codes, codes[:2], k=6, radius=n_bits)


@pytest.mark.parametrize("n_queries", [1, 7, 8, 63, 64])
def test_any_number_of_threads_finds_the_same_whatever_is_cut(n_queries):
    n_rows = 3 * (1 << 20) // n_queries + 5  # as many distances as occupy three threads
    codes, queries = random_codes(n_rows, 16), random_codes(n_queries, 16, seed=1)
    planes, query_planes = to_planes(codes), to_planes(queries)
    for k in (3, 2_000):
        one, *others = (nearest(planes, query_planes, k, 16, n_jobs=n_jobs) for n_jobs in (1, 2, 3, 8))
        assert all(np.array_equal(a, b) for other in others for a, b in zip(one, other, strict=True))
    one, *others = (within(planes, query_planes, 3, 16, n_jobs=n_jobs) for n_jobs in (1, 2, 3, 8))
    assert all(np.array_equal(a, b) for other in others for a, b in zip(one, other, strict=True))
    assert_both_agree_with_a_sort(codes, queries[:1], k=2_000, radius=3)
