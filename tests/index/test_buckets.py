"""Few codes of many items: the tables that find the nearest buckets answer like a sort of all distances."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.codes.hamming import to_planes
from starshl.exceptions import UnknownIdError
from starshl.index import BucketIndex, load_index
from starshl.index.files import write_index_file


def items_and_queries(n_codes, n_bits, n_items=60_000, n_queries=12):
    """Return codes that take few values under shuffled ids, and queries of which some equal a stored code."""
    rng = np.random.default_rng(n_codes * n_bits)
    pool = rng.choice([-1, 1], size=(n_codes, n_bits))
    codes = BinaryCodes.from_signs(pool[rng.integers(n_codes, size=n_items)])
    queries = np.concatenate([rng.choice([-1, 1], size=(n_queries, n_bits)), pool[:4]])
    return codes, rng.permutation(n_items) - 1000, BinaryCodes.from_signs(queries)


def brute_force(codes, ids, queries, k, allowed=None):
    distances = queries.distances(codes)
    if allowed is not None:
        distances = np.where(allowed, distances, codes.n_bits + 1)
    order = np.array([np.lexsort((ids, of_query))[:k] for of_query in distances])
    return ids[order], np.take_along_axis(distances, order, axis=1)


def assert_same(found, expected):
    assert np.array_equal(found.ids, expected[0])
    assert np.array_equal(found.distances, expected[1])


@pytest.mark.parametrize("n_bits", [6, 17, 32, 50, 64, 80])
@pytest.mark.parametrize("n_codes", [1, 2, 64, 65, 128, 129, 256])
def test_the_nearest_of_few_codes_are_those_of_a_sort(n_codes, n_bits):
    codes, ids, queries = items_and_queries(n_codes, n_bits)
    index = BucketIndex.from_codes(codes, ids)
    nearest, distances = brute_force(codes, ids, queries, 10)
    for k in (1, 10):
        assert_same(index.search(queries, k), (nearest[:, :k], distances[:, :k]))


@pytest.mark.parametrize("k", [300, 2000])
def test_more_items_than_the_nearest_buckets_hold_come_from_the_next_ones(k):
    codes, ids, queries = items_and_queries(100, 64)
    index = BucketIndex.from_codes(codes, ids)
    assert_same(index.search(queries, k), brute_force(codes, ids, queries, k))


def test_buckets_of_very_different_size_are_merged_by_id():
    signs = np.array([[1] * 64, [-1] + [1] * 63, [1, -1] + [1] * 62, [1, 1, -1] + [1] * 61])
    which = np.repeat([0, 1, 2, 3], [30_000, 3, 20_000, 12])
    ids = np.random.default_rng(0).permutation(len(which))
    codes = BinaryCodes.from_signs(signs[which])
    queries = BinaryCodes.from_signs(np.array([[-1, -1, -1] + [1] * 61, [1, 1, 1, -1] + [1] * 60, [-1, -1] + [1] * 62]))
    index = BucketIndex.from_codes(codes, ids)
    for k in (1, 10, 40):
        assert_same(index.search(queries, k), brute_force(codes, ids, queries, k))


def test_the_largest_id_of_all_is_merged_like_any_other():
    signs = np.repeat([[-1] + [1] * 63, [1, -1] + [1] * 62], [30_000, 12], axis=0)
    ids = np.concatenate([np.arange(30_000), [np.iinfo(np.int64).max], np.arange(-11, 0)])
    index = BucketIndex.from_codes(BinaryCodes.from_signs(signs), ids)
    query = BinaryCodes.from_signs(np.ones((1, 64)))
    assert index.search(query, 13).ids[0].tolist() == [*range(-11, 0), 0, 1]
    found = index.search(query, 12, among=np.append(np.arange(-11, 0), np.iinfo(np.int64).max))
    assert found.ids[0].tolist() == [*range(-11, 0), np.iinfo(np.int64).max]


@pytest.mark.parametrize("share", [0.9, 0.5, 0.02, 0.0005])
@pytest.mark.parametrize("n_bits", [32, 80])
def test_a_filter_hides_items_of_few_codes(share, n_bits):
    codes, ids, queries = items_and_queries(100, n_bits)
    index = BucketIndex.from_codes(codes, ids)
    allowed = np.random.default_rng(1).random(len(ids)) < share
    found = index.search(queries, 10, among=ids[allowed])
    assert_same(found, brute_force(codes, ids, queries, 10, allowed))


def test_threads_and_files_do_not_change_a_bit_of_the_result(tmp_path):
    codes, ids, queries = items_and_queries(200, 64, n_queries=10_000)
    index = BucketIndex.from_codes(codes, ids, n_jobs=1)
    index.save(tmp_path / "codes.index")
    one = index.search(queries, 10)
    three = load_index(tmp_path / "codes.index", memory_map=True, n_jobs=3).search(queries, 10)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, three, strict=True))
    assert_same(index.search(queries[:50], 10), (one.ids[:50], one.distances[:50]))


def test_additions_and_removals_renew_the_tables():
    codes, ids, queries = items_and_queries(100, 64)
    more, more_ids, _ = items_and_queries(101, 64, n_items=30_000)
    index = BucketIndex.from_codes(codes, ids)
    index.add(more, more_ids + 100_000)
    index.remove(ids[:50_000])
    kept = BinaryCodes(np.concatenate([codes.packed[50_000:], more.packed]), 64)
    expected = brute_force(kept, np.concatenate([ids[50_000:], more_ids + 100_000]), queries, 10)
    assert_same(index.search(queries, 10), expected)


@pytest.mark.parametrize("n_bits", [4, 64])
def test_tables_take_at_most_three_tenths_of_codes_and_ids(n_bits):
    for n_codes in (1, 16, 1000):
        codes, ids, _ = items_and_queries(min(n_codes, 2**n_bits), n_bits)
        for n_items in (300, 8000, 27_000, 60_000):
            index = BucketIndex.from_codes(codes[:n_items], ids[:n_items])
            assert index.nbytes <= 1.3 * (codes[:n_items].nbytes + 8 * n_items)


@pytest.mark.parametrize("n_bits", [16, 24, 40, 64])
def test_items_that_are_not_grouped_are_found_like_all_others(n_bits, tmp_path):
    """Few of the codes are equal, so that grouping would not pay; then most of the different ones are removed."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], size=(3000, n_bits))
    signs[2900:] = signs[:100]
    codes, ids = BinaryCodes.from_signs(signs), rng.permutation(3000) - 500
    queries = BinaryCodes.from_signs(np.concatenate([signs[:5], rng.choice([-1, 1], size=(5, n_bits))]))
    index = BucketIndex(n_bits)
    for some in (slice(0, 2000), slice(2000, 3000)):
        index.add(codes[some], ids[some])
    n_different = len(np.unique(codes.packed, axis=0))
    for one in (index, saved_and_loaded(index, tmp_path)):
        assert one.n_buckets == n_different
        assert_same(one.search(queries, 30), brute_force(codes, ids, queries, 30))
        allowed = rng.random(3000) < 0.3
        assert_same(one.search(queries, 30, among=ids[allowed]), brute_force(codes, ids, queries, 30, allowed))
        ball = one.search_radius(queries, n_bits // 4)
        for q in range(len(queries)):
            assert ball.of(q).ids.tolist() == ball_by_hand(codes, ids, queries[q], n_bits // 4)
        assert one.reconstruct(ids[:50]) == codes[:50]
    index.remove(ids[100:2900])
    assert index.n_buckets == len(np.unique(codes.packed[:100], axis=0))
    rest = BinaryCodes.from_signs(np.concatenate([signs[:100], signs[2900:]]))
    rest_ids = np.concatenate([ids[:100], ids[2900:]])
    assert_same(index.search(queries, 30), brute_force(rest, rest_ids, queries, 30))


def saved_and_loaded(index, folder):
    index.save(folder / "codes.index")
    return load_index(folder / "codes.index", memory_map=True)


def ball_by_hand(codes, ids, query, radius):
    distances = query.distances(codes)[0]
    order = np.lexsort((ids, distances))
    return ids[order[distances[order] <= radius]].tolist()


@pytest.mark.parametrize("n_equal", [0, 2])
def test_files_whose_buckets_mostly_hold_one_item_load(n_equal, tmp_path):
    """An index would not group codes of which so few are equal, but a file may."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], size=(500, 24))
    pool = np.r_[np.arange(500), np.arange(n_equal)]
    codes, ids = BinaryCodes.from_signs(signs[pool]), np.arange(500 + n_equal)
    order = np.argsort(pool, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(pool))]).astype(np.int32)
    arrays = {"planes": to_planes(BinaryCodes.from_signs(signs)), "starts": starts, "ids": ids[order]}
    write_index_file(tmp_path / "codes.index", {"kind": "buckets", "n_bits": 24, "space_id": None}, arrays)
    for memory_map in (False, True):
        index = load_index(tmp_path / "codes.index", memory_map=memory_map)
        assert index.n_buckets == 500
        assert_same(index.search(codes[:20], 7), brute_force(codes, ids, codes[:20], 7))
        assert index.search_radius(codes[0], 0).ids.tolist() == [0, 500][: 2 if n_equal else 1]
        index.add(codes[0], [1000])
        assert index.search(codes[0], 1 + min(n_equal, 1)).distances.max() == 0


@pytest.mark.parametrize("n_items", [500, 70_000])
def test_items_are_found_by_ids_of_any_size_and_in_any_order(n_items):
    """Ids that end alike are told apart, also where there are more of them than endings."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.concatenate([np.arange(n_items // 2) << 40, ~np.arange(n_items // 2)]))
    codes = BinaryCodes(rng.integers(0, 256, (n_items, 2), np.uint8), 16)
    index = BucketIndex.from_codes(codes, ids)
    wanted = rng.permutation(n_items)
    assert index.reconstruct(ids[wanted]) == codes[wanted]
    assert index.reconstruct(ids[:1]) == codes[:1]
    with pytest.raises(UnknownIdError):
        index.reconstruct([1 << 41 | 1])
