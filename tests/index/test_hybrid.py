"""HybridIndex answers like a sort of all distances, for any class field, weight, filter and radius."""

import numpy as np
import pytest

from starshl import BinaryCodes, make_index
from starshl.exceptions import IndexFormatError
from starshl.hashers.baselines import LSHash
from starshl.index import HybridIndex, load_index
from starshl.index.files import write_index_file
from starshl.testing import check_index


def random_codes(n_codes, n_bits, seed):
    """Random codes, many of them equal."""
    rng = np.random.default_rng(seed)
    pool = rng.choice([-1, 1], size=(40, n_bits))
    return BinaryCodes.from_signs(pool[rng.integers(40, size=n_codes)])


def distances_by_hand(queries, items, class_bits, weight, first):
    unequal = queries.to_signs()[:, None] != items.to_signs()[None]
    near, differs = unequal[..., class_bits:].sum(axis=2), unequal[..., :class_bits].any(axis=2)
    distances = near + weight * differs
    for q in range(len(queries) if first else 0):
        of_class = np.sort(near[q][~differs[q]])
        if len(of_class):
            distances[q][differs[q]] = np.maximum(distances[q][differs[q]], of_class[:first][-1] + 1)
    return distances


RULES = [(8, 3, 2, 0), (11, 1, 4, 0), (32, 4, 5, 0), (32, 4, 0, 0), (64, 2, 100, 0), (80, 16, 3, 0), (5, 5, 1, 0)]
RULES += [(8, 3, 0, 10), (32, 4, 2, 10), (32, 2, 0, 1), (64, 3, 5, 30), (80, 1, 1, 1000), (5, 5, 1, 2)]


@pytest.fixture(params=RULES)
def case(request):
    """Index, its codes and ids, and queries with the distances to all items."""
    n_bits, class_bits, weight, first = request.param
    codes, queries = random_codes(150, n_bits, 0), random_codes(12, n_bits, 1)
    queries = BinaryCodes(np.concatenate([codes.packed[:6], queries.packed]), n_bits)
    ids = np.random.default_rng(2).permutation(500)[:150] - 40
    index = HybridIndex.from_codes(codes, ids, class_bits=class_bits, class_weight=weight, class_first=first)
    return index, codes, ids, queries, distances_by_hand(queries, codes, class_bits, weight, first)


def assert_nearest(found, distances, ids, k):
    for q, row in enumerate(distances):
        order = np.lexsort((ids, row))[:k]
        assert found.distances[q].tolist() == row[order].tolist()
        assert found.ids[q].tolist() == ids[order].tolist()


def test_consecutive_ids_take_no_memory_and_others_take_eight_bytes():
    codes = BinaryCodes.from_signs(np.ones((1000, 64)))
    rule = {"class_bits": 3, "class_weight": 2}
    assert HybridIndex.from_codes(codes, **rule).nbytes == 8000 + 16
    assert HybridIndex.from_codes(codes, np.arange(1000) * 2, **rule).nbytes == 16000


@pytest.mark.parametrize("k", [1, 10, 150, 1000])
def test_search_gives_what_a_sort_of_all_distances_gives(case, k):
    index, _, ids, queries, distances = case
    assert_nearest(index.search(queries, k), distances, ids, k)


@pytest.mark.parametrize(("n_bits", "class_bits", "first"), [(64, 2, 10), (40, 8, 10), (32, 4, 0), (130, 3, 50)])
def test_many_codes_are_sorted_like_few(n_bits, class_bits, first):
    rng = np.random.default_rng(n_bits)
    codes = BinaryCodes.from_signs(rng.choice([-1, 1], size=(20_000, n_bits)).astype(np.int8))
    queries = codes[[3, 19_000]]
    index = HybridIndex.from_codes(codes, class_bits=class_bits, class_weight=3, class_first=first)
    distances = distances_by_hand(queries, codes, class_bits, 3, first)
    assert_nearest(index.search(queries, 30), distances, np.arange(20_000), 30)


def test_search_among_some_ids_gives_what_a_sort_of_theirs_gives(case):
    index, codes, ids, queries, _ = case
    for chosen in (np.arange(0, 150, 3), np.arange(2), np.arange(0)):
        distances = distances_by_hand(queries, codes[chosen], index.class_bits, index.class_weight, index.class_first)
        assert_nearest(index.search(queries, 20, among=ids[chosen]), distances, ids[chosen], 20)


def test_radius_gives_every_item_up_to_it(case):
    index, _, ids, queries, distances = case
    for radius in (0, 1, 3, 6, 40, 10**6):
        balls = index.search_radius(queries, radius)
        for q, row in enumerate(distances):
            order = np.lexsort((ids, row))
            order = order[row[order] <= radius]
            assert balls.of(q).ids.tolist() == ids[order].tolist()
            assert balls.of(q).distances.tolist() == row[order].tolist()


def test_removed_items_are_gone_and_come_back(case):
    index, codes, ids, queries, distances = case
    index.remove(ids[:50])
    fewer = distances_by_hand(queries, codes[50:], index.class_bits, index.class_weight, index.class_first)
    assert_nearest(index.search(queries, 15), fewer, ids[50:], 15)
    index.add(codes[:50], ids[:50])
    assert_nearest(index.search(queries, 15), distances, ids, 15)


def test_scores_order_items_at_equal_distance(case):
    index, codes, ids, queries, distances = case
    scores = np.random.default_rng(3).integers(-4, 5, size=(len(queries), codes.n_bits)) / 2
    found = index.search(queries, 15, scores=scores)
    agreement = scores @ codes.to_signs().T
    for q, row in enumerate(distances):
        assert found.ids[q].tolist() == ids[np.lexsort((ids, -agreement[q], row))[:15]].tolist()


def test_saved_index_keeps_its_rule(case, tmp_path):
    index, codes, _, queries, _ = case
    index.save(tmp_path / "codes.index")
    for memory_map in (False, True):
        loaded = load_index(tmp_path / "codes.index", memory_map=memory_map)
        for name in ("class_bits", "class_weight", "class_first"):
            assert getattr(loaded, name) == getattr(index, name)
        for ours, theirs in zip(loaded.search(queries, 20), index.search(queries, 20), strict=True):
            assert np.array_equal(ours, theirs)
        loaded.add(codes[:1], [10**6])
        assert len(loaded) == 151


def test_threads_change_no_answer(case):
    index, _, _, queries, _ = case
    alone = index.search(queries, 20)
    index.n_jobs = 3
    assert all(np.array_equal(a, b) for a, b in zip(index.search(queries, 20), alone, strict=True))


def test_one_class_bit_of_weight_one_keeps_the_contract_of_plain_codes():
    check_index(lambda n_bits: HybridIndex(n_bits, class_bits=1, class_weight=1))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ((8, 0, 1), "class_bits is 0"),
        ((8, 9, 1), "class_bits is 9"),
        ((64, 17, 1), "class_bits is 17"),
        ((8, 2, -1), "class_weight is -1"),
        ((8, "2", 1), "class_bits is '2'"),
        ((8, 2, 1.5), "class_weight is 1.5"),
        ((0, 1, 1), "n_bits is 0"),
    ],
)
def test_impossible_rules_are_refused(rule, message):
    with pytest.raises(ValueError, match=message):
        HybridIndex(*rule)


@pytest.mark.parametrize("rule", [[0, 1, 0], [9, 1, 0], [2, -1, 0], [2, 1, -1], [2, 1]])
def test_file_with_an_impossible_rule_is_refused(rule, stored, tmp_path):
    index = HybridIndex.from_codes(random_codes(5, 8, 0), class_bits=2, class_weight=1)
    arrays = stored(index) | {"rule": np.array(rule, np.int64)}
    write_index_file(tmp_path / "bad.index", {"kind": "hybrid", "n_bits": 8, "space_id": None}, arrays)
    with pytest.raises(IndexFormatError, match="complete index"):
        load_index(tmp_path / "bad.index")


def test_make_index_asks_a_hasher_that_has_an_index_of_its_own():
    class Hasher:
        space_id_ = None

        def make_index(self, codes, ids=None, *, n_jobs=None):
            return HybridIndex.from_codes(codes, ids, n_jobs=n_jobs, class_bits=2, class_weight=7)

    codes = random_codes(5, 8, 0)
    assert make_index(codes, hasher=Hasher()).class_weight == 7
    assert not isinstance(make_index(codes, hasher=LSHash(8).fit(np.eye(8))), HybridIndex)
