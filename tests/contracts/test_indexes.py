"""What every index promises: the answers of a brute-force search, whatever was added and removed before."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from starshl.codes import BinaryCodes
from starshl.index import BucketIndex, FlatIndex, MultiIndex, load_index, make_index

INDEXES = [FlatIndex, BucketIndex, MultiIndex]


class BruteForce:
    """The index as a dictionary from id to signs: slow, and evidently right."""

    def __init__(self, n_bits):
        self.n_bits = n_bits
        self.items = {}

    def ranked(self, signs, allowed=None, scores=None):
        found = []
        for item, code in self.items.items():
            if allowed is None or item in allowed:
                distance = int(np.sum(code != signs))
                tie = 0.0
                if scores is not None:
                    differing = code != signs
                    tie = float(sum((scores * signs)[differing].tolist()))
                found.append((distance, tie, item))
        return [(item, distance) for distance, _, item in sorted(found)]


def as_pairs(ids, distances):
    return list(zip(ids.tolist(), distances.tolist(), strict=True))


def random_signs(rng, n_codes, n_bits, n_different=None):
    if n_different is None:
        return rng.choice([-1, 1], size=(n_codes, n_bits))
    pool = rng.choice([-1, 1], size=(n_different, n_bits))
    return pool[rng.integers(n_different, size=n_codes)]


class IndexMachine(RuleBasedStateMachine):
    """Random additions, removals, files and searches on one index and on the brute-force model."""

    index_class = None

    @initialize(n_bits=st.sampled_from([3, 16, 64, 70]), seed=st.integers(0, 2**16))
    def start(self, n_bits, seed):
        self.rng = np.random.default_rng(seed)
        self.index = self.index_class(n_bits, n_jobs=2)
        self.model = BruteForce(n_bits)

    @rule(n=st.integers(0, 40), n_different=st.sampled_from([1, 3, 1000]), own_ids=st.booleans())
    def add(self, n, n_different, own_ids):
        signs = random_signs(self.rng, n, self.model.n_bits, n_different)
        free = [i for i in range(-50, 400) if i not in self.model.items]
        ids = None if own_ids else self.rng.permutation(free)[:n]
        if ids is not None:
            signs = signs[: len(ids)]
        given = self.index.add(BinaryCodes.from_signs(signs), ids)
        assert ids is None or given.tolist() == ids.tolist()
        assert not set(given.tolist()) & set(self.model.items)
        self.model.items.update(zip(given.tolist(), signs, strict=True))

    @precondition(lambda self: self.model.items)
    @rule(share=st.sampled_from([0.05, 0.5, 1.0]))
    def remove(self, share):
        known = self.rng.permutation(sorted(self.model.items))
        gone = known[: max(1, int(share * len(known)))]
        self.index.remove(gone)
        for item in gone.tolist():
            del self.model.items[item]

    @precondition(lambda self: self.model.items)
    @rule()
    def refuse_what_is_wrong_and_change_nothing(self):
        taken = sorted(self.model.items)[0]
        codes = BinaryCodes.from_signs(random_signs(self.rng, 2, self.model.n_bits))
        with pytest.raises(ValueError, match="already in the index"):
            self.index.add(codes, [10_000, taken])
        with pytest.raises(KeyError, match="10001 is not in the index"):
            self.index.remove([taken, 10_001])

    @precondition(lambda self: self.model.items)
    @rule(k=st.integers(1, 50), filtered=st.booleans(), scored=st.booleans())
    def search(self, k, filtered, scored):
        k = min(k, len(self.model.items))
        signs = random_signs(self.rng, 3, self.model.n_bits)
        signs[0] = self.model.items[sorted(self.model.items)[-1]]
        allowed = {i for i in self.model.items if i % 3} if filtered else None
        where = sorted(allowed) if filtered else None
        scores = self.rng.integers(-4, 5, size=signs.shape) / 2 if scored else None
        found = self.index.search(BinaryCodes.from_signs(signs), k, where=where, scores=scores)
        for q in range(3):
            expected = self.model.ranked(signs[q], allowed, None if scores is None else scores[q])
            assert as_pairs(found.ids[q], found.distances[q]) == expected[:k]

    @rule(radius=st.integers(0, 80), filtered=st.booleans())
    def search_radius(self, radius, filtered):
        signs = random_signs(self.rng, 3, self.model.n_bits)
        allowed = {i for i in self.model.items if i % 3} if filtered else None
        where = (lambda ids: ids % 3 != 0) if filtered else None
        found = self.index.search_radius(BinaryCodes.from_signs(signs), radius, where=where)
        for q in range(3):
            expected = [pair for pair in self.model.ranked(signs[q], allowed) if pair[1] <= radius]
            assert as_pairs(*found.of(q)) == expected

    @rule(memory_map=st.booleans())
    def save_and_load(self, memory_map):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "codes.index"
            self.index.save(path)
            self.index = load_index(path, memory_map=memory_map, n_jobs=2)
        assert type(self.index) is self.index_class

    @invariant()
    def hold_the_same_items(self):
        if not hasattr(self, "index"):
            return
        assert len(self.index) == len(self.model.items)
        assert sorted(self.index.ids.tolist()) == sorted(self.model.items)
        known = sorted(self.model.items)
        if known:
            signs = self.index.reconstruct(known[::-1]).to_signs()
            assert np.array_equal(signs, [self.model.items[item] for item in known[::-1]])


def machine_for(index_class):
    machine = type(f"{index_class.__name__}Machine", (IndexMachine,), {"index_class": index_class})
    case = machine.TestCase
    case.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
    return case


TestFlatIndexAgainstBruteForce = machine_for(FlatIndex)
TestBucketIndexAgainstBruteForce = machine_for(BucketIndex)
TestMultiIndexAgainstBruteForce = machine_for(MultiIndex)


@pytest.fixture
def codes():
    return BinaryCodes.from_signs(random_signs(np.random.default_rng(0), 50, 20, n_different=9))


@pytest.mark.parametrize("index_class", INDEXES)
class TestBadInput:
    def test_codes_of_another_length_are_refused(self, index_class, codes):
        index = index_class.from_codes(codes)
        other = BinaryCodes.from_signs(np.ones((1, 21)))
        for call in (index.add, index.search, lambda c: index.search_radius(c, 1)):
            with pytest.raises(ValueError, match="21 bits; this index holds codes of 20"):
                call(other)
        assert len(index) == 50

    def test_plain_arrays_are_refused(self, index_class, codes):
        with pytest.raises(TypeError, match=r"ndarray; it must be BinaryCodes.*hasher.encode"):
            index_class.from_codes(codes).search(codes.packed)

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            ([1, 1], "1 is given more than once"),
            ([1.5, 2.5], "dtype float64"),
            ([1], "1 ids for 2 codes"),
            (np.array([1, 2**63], np.uint64), "does not fit in 64 signed bits"),
            ([[1, 2]], r"shape \(1, 2\)"),
        ],
    )
    def test_bad_ids_are_refused_and_nothing_is_added(self, index_class, codes, ids, message):
        index = index_class(20)
        with pytest.raises(ValueError, match=message):
            index.add(codes[:2], ids)
        assert len(index) == 0

    def test_ids_run_out_at_the_top_of_64_bits(self, index_class, codes):
        index = index_class(20)
        index.add(codes[0], [np.iinfo(np.int64).max])
        with pytest.raises(ValueError, match="No 1 ids are left"):
            index.add(codes[1])

    def test_k_beyond_the_collection_is_refused(self, index_class, codes):
        with pytest.raises(ValueError, match="k is 51, but the index holds 50 items"):
            index_class.from_codes(codes).search(codes, k=51)

    @pytest.mark.parametrize("k", [0, -1, 2.0, True])
    def test_k_must_be_a_positive_integer(self, index_class, codes, k):
        with pytest.raises(ValueError, match="k is"):
            index_class.from_codes(codes).search(codes, k=k)

    def test_negative_radius_is_refused(self, index_class, codes):
        with pytest.raises(ValueError, match="radius is -1"):
            index_class.from_codes(codes).search_radius(codes, -1)

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            (np.ones(49, bool), r"shape \(49,\); it must be an array of ids or of 50"),
            (np.ones(50), "dtype float64"),
            (lambda ids: ids, "it must be an array of ids or of 50 booleans"),
            (["a", "b"], "dtype <U1"),
        ],
    )
    def test_bad_filters_are_refused(self, index_class, codes, where, message):
        with pytest.raises(ValueError, match=message):
            index_class.from_codes(codes).search(codes, where=where)

    def test_filter_by_unknown_id_is_refused(self, index_class, codes):
        with pytest.raises(KeyError, match="77 is not in the index"):
            index_class.from_codes(codes).search(codes, where=[1, 77])

    def test_scores_of_the_wrong_shape_are_refused(self, index_class, codes):
        with pytest.raises(ValueError, match=r"scores has shape \(50, 3\).*\(50, 20\)"):
            index_class.from_codes(codes).search(codes, scores=np.zeros((50, 3)))


@pytest.mark.parametrize("index_class", INDEXES)
def test_a_filter_that_leaves_fewer_than_k_returns_those(index_class, codes):
    index = index_class.from_codes(codes)
    assert index.search(codes[:2], 10, where=[3, 4, 5]).ids.shape == (2, 3)
    assert index.search(codes[:2], 10, where=[]).ids.shape == (2, 0)


@pytest.mark.parametrize("index_class", INDEXES)
def test_ids_cannot_be_changed_from_outside(index_class, codes):
    with pytest.raises(ValueError, match="read-only"):
        index_class.from_codes(codes).ids[0] = 7


@pytest.mark.parametrize("index_class", INDEXES)
def test_large_ties_fall_to_the_lowest_ids(index_class):
    rng = np.random.default_rng(0)
    codes = BinaryCodes.from_signs(random_signs(rng, 5000, 64, n_different=4))
    ids = rng.permutation(5000)
    index = index_class.from_codes(codes, ids)
    for k in (10, 3000):
        found = index.search(codes[:3], k)
        distances = codes[:3].distances(codes)
        for q in range(3):
            expected = np.lexsort((ids, distances[q]))[:k]
            assert found.ids[q].tolist() == ids[expected].tolist()


def test_make_index_groups_equal_codes_and_scans_different_ones():
    rng = np.random.default_rng(0)
    few = BinaryCodes.from_signs(random_signs(rng, 400, 32, n_different=200))
    many = BinaryCodes.from_signs(random_signs(rng, 400, 32))
    assert isinstance(make_index(few), BucketIndex)
    assert isinstance(make_index(many), FlatIndex)
    assert isinstance(make_index(many[:0]), FlatIndex)
    a, b = make_index(few).search(many, 20), FlatIndex.from_codes(few).search(many, 20)
    assert np.array_equal(a.ids, b.ids)
    assert np.array_equal(a.distances, b.distances)


LENGTHS = [4, 8, 16, 24, 32, 33, 40, 64, 65, 72, 96, 128]


def assert_memory_within_bounds(index):
    assert index.nbytes <= 1.3 * (8 + -(-index.n_bits // 8)) * len(index)


@pytest.mark.parametrize("n_bits", LENGTHS)
@pytest.mark.parametrize("index_class", [make_index, FlatIndex.from_codes, BucketIndex.from_codes])
def test_memory_stays_within_three_tenths_of_codes_and_ids(index_class, n_bits):
    rng = np.random.default_rng(0)
    for n_different in (50, 5000, 9000, 15_000, None):
        codes = BinaryCodes.from_signs(random_signs(rng, 20_000, n_bits, n_different))
        index = index_class(codes[:10_000])
        assert_memory_within_bounds(index)
        for start in range(10_000, 20_000, 1000):
            index.add(codes[slice(start, start + 1000)])
            assert_memory_within_bounds(index)
        index.remove(np.arange(3, 20_000, 2))
        assert_memory_within_bounds(index)


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_different_codes_after_equal_ones_stay_within_the_same_memory(n_bits):
    rng = np.random.default_rng(0)
    index = make_index(BinaryCodes.from_signs(random_signs(rng, 500, n_bits, n_different=10)))
    index.add(BinaryCodes.from_signs(random_signs(rng, 20_000, n_bits)))
    assert isinstance(index, BucketIndex)
    assert_memory_within_bounds(index)
