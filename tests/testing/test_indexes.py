"""What every index promises: the answers of a brute-force search, whatever was added and removed before."""

import ast
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import starshl.testing
from starshl import BinaryCodes, make_index
from starshl.codes.binary import n_bytes
from starshl.exceptions import UnsupportedOperationError
from starshl.index import CAPABILITIES, BucketIndex, FlatIndex, HammingIndex, MultiIndex, load_index
from starshl.testing import check_index, index_checks

INDEXES = [FlatIndex, BucketIndex, MultiIndex]


SERVERS = [pytest.param(name, marks=pytest.mark.server) for name in ("pgvector", "milvus")]


@pytest.fixture(params=["flat", "buckets", "multi", "faiss", *SERVERS])
def make_empty(request):
    """A function of the code length that makes a new index; adapters skip where library or server is absent."""
    opened = []

    def make(n_bits):
        name = f"codes_{time.time_ns()}"
        if request.param == "faiss":
            pytest.importorskip("faiss")
            from starshl.index.adapters import FaissIndex

            return FaissIndex(n_bits)
        if request.param == "pgvector":
            uri = request.getfixturevalue("postgres").get_uri()
            from starshl.index.adapters import PgvectorIndex

            opened.append(PgvectorIndex(uri, n_bits, table=name))
        elif request.param == "milvus":
            path = request.getfixturevalue("milvus_file")
            from starshl.index.adapters import MilvusIndex

            opened.append(MilvusIndex(path, n_bits, name=name))
        else:
            return {index.kind: index for index in INDEXES}[request.param](n_bits)
        return opened[-1]

    yield make
    for index in opened:
        index.close()


@pytest.mark.parametrize("name", [name for name, _ in index_checks(FlatIndex)])
def test_every_index_keeps_the_contract(make_empty, name):
    dict(index_checks(make_empty))[name]()


class Broken(FlatIndex):
    """An index that passes unless one of its faults is switched on."""

    fault = None

    def _search(self, queries, k, wanted):
        result = super()._search(queries, k, wanted)
        if self.fault == "swapped":
            return result._replace(ids=result.distances.astype(np.int64), distances=result.ids.astype(np.int32))
        if self.fault == "unfiltered":
            return super()._search(queries, k, replace(wanted, among=None))
        if self.fault == "padded" and k > len(self) > 0:
            return result._replace(ids=np.full((len(queries), k), -1), distances=np.zeros((len(queries), k), np.int32))
        return result

    def _remove(self, ids):
        super()._remove(ids[np.isin(ids, self.ids)] if self.fault == "lenient" else ids)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("swapped", "distances is"),
        ("unfiltered", "search among"),
        ("padded", r"k=100 gave shape|k=90"),
        ("lenient", "nothing was raised; KeyError"),
    ],
)
def test_check_index_notices_a_broken_index(fault, message):
    broken = type("Broken", (Broken,), {"fault": fault, "supports": FlatIndex.supports - {"save"}})
    with pytest.raises(AssertionError, match=message):
        check_index(broken)


def test_no_check_vanishes_under_optimized_python():
    files = list(Path(starshl.testing.__file__).parent.glob("*.py"))
    assert len(files) > 3
    for file in files:
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(file.read_text()))), file.name


def test_check_index_notices_a_capability_that_does_not_exist():
    with pytest.raises(AssertionError, match="supports names"):
        check_index(type("Boastful", (FlatIndex,), {"supports": FlatIndex.supports | {"flying"}}))


def test_what_an_index_does_not_declare_raises_one_clear_error():
    plain = type("Plain", (FlatIndex,), {"supports": frozenset()})(8)
    assert issubclass(type(plain), HammingIndex)
    with pytest.raises(UnsupportedOperationError, match="'remove'"):
        plain.remove([1])
    assert all(index.supports <= set(CAPABILITIES) for index in INDEXES)


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
        with pytest.raises(KeyError, match="10001 is not"):
            self.index.remove([taken, 10_001])

    @precondition(lambda self: self.model.items)
    @rule(k=st.integers(1, 50), filtered=st.booleans(), scored=st.booleans())
    def search(self, k, filtered, scored):
        signs = random_signs(self.rng, 3, self.model.n_bits)
        signs[0] = self.model.items[sorted(self.model.items)[-1]]
        allowed = {i for i in self.model.items if i % 3} if filtered else None
        among = sorted(allowed) if filtered else None
        scores = self.rng.integers(-4, 5, size=signs.shape) / 2 if scored else None
        found = self.index.search(BinaryCodes.from_signs(signs), k, among=among, scores=scores)
        for q in range(3):
            expected = self.model.ranked(signs[q], allowed, None if scores is None else scores[q])
            assert as_pairs(found.ids[q], found.distances[q]) == expected[:k]

    @rule(radius=st.integers(0, 80), filtered=st.booleans())
    def search_radius(self, radius, filtered):
        signs = random_signs(self.rng, 3, self.model.n_bits)
        allowed = {i for i in self.model.items if i % 3} if filtered else None
        among = self.index.ids % 3 != 0 if filtered else None
        found = self.index.search_radius(BinaryCodes.from_signs(signs), radius, among=among)
        for q in range(3):
            expected = [pair for pair in self.model.ranked(signs[q], allowed) if pair[1] <= radius]
            assert as_pairs(found.of(q).ids, found.of(q).distances) == expected

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
    assert index.nbytes <= 1.3 * (8 + n_bytes(index.n_bits)) * len(index)


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
