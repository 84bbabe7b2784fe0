"""Approximate search with lists of FAISS: what it promises, and that it is exact where it says so."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.exceptions import InputError, UnknownIdError
from starshl.index import FlatIndex

pytest.importorskip("faiss")

N_ITEMS = 12_000


def clustered_codes(n_codes, seed):
    """Codes of 64 bits around 200 centers, a tenth of their bits flipped."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(0).choice([-1, 1], size=(200, 64))
    flips = np.where(rng.random((n_codes, 64)) < 0.1, -1, 1)
    return BinaryCodes.from_signs(centers[rng.integers(200, size=n_codes)] * flips)


@pytest.fixture
def make():
    from starshl.index.adapters import FaissIndex

    return FaissIndex.from_codes


def test_it_finds_most_of_the_nearest_items_at_their_true_distances_in_order(make):
    codes, queries = clustered_codes(N_ITEMS, 1), clustered_codes(50, 2)
    index = make(codes, np.arange(N_ITEMS) * 3, kind="ivf")
    assert index.n_lists == 128
    found, exact = index.search(queries), FlatIndex.from_codes(codes).search(queries)
    assert (found.distances <= exact.distances[:, -1:]).mean() > 0.9
    for q in range(len(queries)):
        expected = queries[q : q + 1].distances(codes[found.ids[q] // 3])[0]
        assert found.distances[q].tolist() == expected.tolist()
        pairs = list(zip(found.distances[q], found.ids[q], strict=True))
        assert pairs == sorted(pairs)


def test_more_probes_find_more_and_all_of_them_everything(make):
    codes, queries = clustered_codes(N_ITEMS, 1), clustered_codes(50, 2)
    exact = FlatIndex.from_codes(codes).search(queries)
    recalls = []
    for n_probes in (1, 4, 128, 10_000):
        index = make(codes, kind="ivf", n_probes=n_probes)
        recalls.append((index.search(queries).distances <= exact.distances[:, -1:]).mean())
    assert recalls[0] < recalls[1] < 1
    assert recalls[2:] == [1, 1]
    assert np.array_equal(index.search(queries).distances, exact.distances)


def test_few_items_are_scanned_and_lists_begin_at_ten_thousand(make):
    codes = clustered_codes(10_000, 1)
    index, exact = make(codes[:9_999], kind="ivf"), FlatIndex.from_codes(codes[:9_999])
    assert index.n_lists == 1
    found = index.search(codes[:20])
    assert np.array_equal(found.ids, exact.search(codes[:20]).ids)
    index.add(codes[9_999:])
    assert index.n_lists > 1
    assert len(index) == 10_000
    assert index.ids.tolist() == list(range(10_000))


def test_lists_are_learned_anew_when_there_are_four_times_as_many_items(make):
    codes = clustered_codes(44_000, 1)
    index = make(codes[:11_000], kind="ivf")
    before = index.n_lists
    index.add(codes[11_000:43_000])
    assert index.n_lists == before
    index.add(codes[43_000:])
    assert index.n_lists > before
    assert index.search(codes[43_500:43_501], k=1).distances.tolist() == [[0]]


def test_items_can_be_removed_and_given_back(make):
    codes, ids = clustered_codes(N_ITEMS, 1), np.random.default_rng(3).permutation(N_ITEMS) + 5
    index = make(codes, ids, kind="ivf")
    assert index.reconstruct(ids[[7, 3]]) == codes[[7, 3]]
    index.remove(ids[:100])
    assert len(index) == N_ITEMS - 100
    assert not np.isin(index.search(codes[:20], k=50).ids, ids[:100]).any()
    with pytest.raises(UnknownIdError):
        index.remove(ids[:1])
    with pytest.raises(ValueError, match="already in the index"):
        index.add(codes[:1], ids[200:201])


def test_it_returns_as_many_items_as_asked_for(make):
    codes = clustered_codes(N_ITEMS, 1)
    index = make(codes, kind="ivf", n_probes=1)
    found = index.search(codes[:3], k=5_000)
    assert found.ids.shape == (3, 5_000)
    assert np.array_equal(found.distances, FlatIndex.from_codes(codes).search(codes[:3], k=5_000).distances)
    assert all(len(set(line)) == 5_000 for line in found.ids.tolist())
    assert index.search(codes[:2], k=2 * N_ITEMS).ids.shape == (2, N_ITEMS)


def test_codes_that_are_all_equal_are_all_found(make):
    codes = clustered_codes(1, 1)[np.zeros(N_ITEMS, int)]
    found = make(codes, kind="ivf").search(codes[:2], k=100)
    assert (found.distances == 0).all()
    assert all(len(set(line)) == 100 for line in found.ids.tolist())


def test_a_search_among_items_is_exact(make):
    codes, queries = clustered_codes(N_ITEMS, 1), clustered_codes(5, 2)
    some = np.arange(0, N_ITEMS, 7)
    index, exact = make(codes, kind="ivf", n_probes=1), FlatIndex.from_codes(codes)
    assert np.array_equal(index.search(queries, among=some).ids, exact.search(queries, among=some).ids)


def test_a_ball_holds_true_members_in_order_and_all_of_them_with_every_list(make):
    codes, queries = clustered_codes(N_ITEMS, 1), clustered_codes(5, 2)
    exact = FlatIndex.from_codes(codes).search_radius(queries, 14)
    few = make(codes, kind="ivf", n_probes=2).search_radius(queries, 14)
    every = make(codes, kind="ivf", n_probes=128).search_radius(queries, 14)
    assert [part.tolist() for part in every] == [part.tolist() for part in exact]
    for q in range(5):
        found = few.of(q).ids.tolist()
        assert found == [item for item in exact.of(q).ids.tolist() if item in set(found)]


def test_the_same_codes_make_the_same_answers(make):
    codes, queries = clustered_codes(N_ITEMS, 1), clustered_codes(50, 2)
    first, second = (make(codes, kind="ivf").search(queries) for _ in range(2))
    assert np.array_equal(first.ids, second.ids)


def test_files_of_faiss_with_lists_can_be_read_back(make, tmp_path):
    import faiss

    from starshl.index.adapters import from_faiss

    codes, ids = clustered_codes(N_ITEMS, 1), np.arange(N_ITEMS)[::-1] * 2
    faiss.write_index_binary(make(codes, ids, kind="ivf").faiss_index, str(tmp_path / "codes.faiss"))
    found, held = from_faiss(faiss.read_index_binary(str(tmp_path / "codes.faiss")), 64)
    assert held.tolist() == sorted(ids.tolist())
    assert found == codes[::-1]


@pytest.mark.parametrize("settings", [{"kind": "hnsw"}, {"kind": None}, {"n_probes": 0}, {"n_probes": 1.5}])
def test_settings_are_checked(make, settings):
    with pytest.raises((InputError, TypeError)) as caught:
        make(clustered_codes(3, 0), **settings)
    assert next(iter(settings)) in str(caught.value)
