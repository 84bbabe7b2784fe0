"""PostgreSQL with pgvector and Milvus, each a real one, against the flat index."""

import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.exceptions import SpaceMismatchError
from starshl.index import FlatIndex

from .conftest import HAND_DISTANCES, HAND_ORDER

SHOP = "x\" or 1 == 1 or shop == '\\"


@pytest.fixture(params=["pgvector", "milvus"])
def open_index(request):
    """A function that opens an index of one database, with a table of its own."""
    name = f"codes_{time.time_ns()}"
    opened = []

    def open_one(n_bits, name=name, **options):
        if request.param == "pgvector":
            uri = request.getfixturevalue("postgres").get_uri()
            from starshl.index.adapters import PgvectorIndex

            opened.append(PgvectorIndex(uri, n_bits, table=name, **options))
        else:
            file = request.getfixturevalue("milvus_file")
            from starshl.index.adapters import MilvusIndex

            opened.append(MilvusIndex(file, n_bits, name=name, **options))
        return opened[-1]

    yield open_one
    for index in opened:
        index.close()


def test_database_computes_the_distances_counted_by_hand(open_index, hand_codes):
    index = open_index(11)
    index.add(hand_codes)
    distances, ids = index.search(hand_codes[0], k=6)
    assert ids.tolist() == [HAND_ORDER]
    assert distances.tolist() == [[HAND_DISTANCES[i] for i in HAND_ORDER]]
    assert index.search_radius(hand_codes[0], 1).of(0).ids.tolist() == [0, 1, 2, 3]
    assert index.reconstruct([5, 4, 1]) == hand_codes[[5, 4, 1]]


def test_database_gives_the_answers_of_the_flat_index(open_index, random_codes):
    index, flat = open_index(11), FlatIndex(11)
    ids = np.random.default_rng(1).permutation(1000)[:300]
    for one in (index, flat):
        one.add(random_codes, ids)
        one.remove(ids[:50])
        one.add(random_codes[:10])
    assert index.ids.tolist() == flat.ids.tolist()
    assert len(index) == 260
    queries = random_codes[:4]
    for among in (None, ids[60:100]):
        found, expected = (one.search(queries, 25, among=among) for one in (index, flat))
        assert np.array_equal(found.ids, expected.ids)
        assert np.array_equal(found.distances, expected.distances)
        found, expected = (one.search_radius(queries, 3, among=among) for one in (index, flat))
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert index.reconstruct(flat.ids) == flat.reconstruct(flat.ids)


def test_database_filters_by_metadata(open_index, random_codes):
    index = open_index(11)
    index.add(random_codes, metadata=[{"label": i % 3, "shop": SHOP} for i in range(300)])
    _, ids = index.search(random_codes[:1], 200, where={"label": 1})
    assert sorted(ids[0].tolist()) == list(range(1, 300, 3))
    assert index.search(random_codes[:1], 10, where={"shop": SHOP, "label": 2}).ids.shape == (1, 10)
    assert index.search(random_codes[:1], 10, where={"shop": 'y" or 1 == 1'}).ids.shape == (1, 0)
    assert index.search(random_codes[:1], 10, where={"label": "1"}).ids.shape == (1, 0)


def test_database_filters_by_any_text(open_index, random_codes):
    texts = ["é", "e", "日本", "\U0001f600", 'a"b', "a\\b", "a'b", "\\u00e9", "\\", SHOP, "%", ""]
    index = open_index(11)
    index.add(random_codes[: len(texts)], metadata=[{"text": text} for text in texts])
    for number, text in enumerate(texts):
        assert index.search(random_codes[:1], len(texts), where={"text": text}).ids.tolist() == [[number]]


def test_database_refuses_filters_that_would_find_nothing_for_the_wrong_reason(open_index, random_codes):
    index = open_index(11)
    index.add(random_codes[:3], metadata=[{"price": 1.5}] * 3)
    with pytest.raises(ValueError, match="finite numbers"):
        index.search(random_codes[:1], 3, where={"price": float("nan")})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("abc", r"metadata\[1\] is a str"),
        (["a"], r"metadata\[1\] is a list"),
        ({3: 1}, "key 3"),
        ({"a": float("nan")}, "cannot be stored"),
        ({"a": {1}}, "a set is not JSON"),
        ({"a": "\ud800"}, "surrogate pair"),
    ],
)
def test_database_refuses_metadata_that_is_no_json(open_index, random_codes, entry, message):
    index = open_index(11)
    with pytest.raises(ValueError, match=message):
        index.add(random_codes[:2], metadata=[{}, entry])
    assert len(index) == 0


def test_database_takes_numbers_of_numpy(open_index, random_codes):
    index = open_index(11)
    index.add(random_codes[:2], metadata=[{"label": label} for label in np.array([3, 4])])
    assert index.search(random_codes[:1], 2, where={"label": np.int64(4)}).ids.tolist() == [[1]]


@pytest.mark.parametrize("key", ["id", "code", "n_bits", "$meta"])
def test_milvus_refuses_metadata_that_would_overwrite_its_own_fields(milvus_file, random_codes, key):
    from starshl.index.adapters import MilvusIndex

    index = MilvusIndex(milvus_file, 11, name="reserved")
    with pytest.raises(ValueError, match="field of the Milvus collection"):
        index.add(random_codes[:1], metadata=[{key: 5}])
    index.add(random_codes[:1], [7])
    with pytest.raises(ValueError, match="cannot name a metadata field"):
        index.search(random_codes[:1], 1, where={key: 7})
    index.remove([7])
    index.close()


def test_milvus_says_that_it_cannot_compare_control_characters(milvus_file, random_codes):
    from starshl.index.adapters import MilvusIndex

    index = MilvusIndex(milvus_file, 11, name="control_characters")
    index.add(random_codes[:1], metadata=[{"text": "two\nlines"}])
    with pytest.raises(ValueError, match="cannot compare control characters"):
        index.search(random_codes[:1], 1, where={"text": "two\nlines"})
    index.close()


def test_database_refuses_what_is_wrong_and_changes_nothing(open_index, random_codes):
    index = open_index(11)
    index.add(random_codes)
    with pytest.raises(ValueError, match="nothing was added"):
        index.add(random_codes[:3], [1000, 1001, 7])
    with pytest.raises(KeyError, match="999 is not"):
        index.remove([1, 999])
    with pytest.raises(KeyError, match="999 is not"):
        index.reconstruct([1, 999])
    with pytest.raises(ValueError, match="more than once"):
        index.add(random_codes[:2], [2000, 2000])
    with pytest.raises(ValueError, match="1 dictionaries of metadata"):
        index.add(random_codes[:2], metadata=[{}])
    with pytest.raises(ValueError, match="radius is -1"):
        index.search_radius(random_codes[:1], -1)
    with pytest.raises(ValueError, match=r"20 bits; .*codes of 11"):
        index.add(BinaryCodes.from_signs(np.ones((1, 20))))
    with pytest.raises(ValueError, match=r"holds .*20|holds .*11|holds .*16"):
        open_index(20)
    assert index.ids.tolist() == list(range(300))


def test_database_handles_more_ids_than_one_request_returns(open_index):
    codes = BinaryCodes.from_signs(np.random.default_rng(0).choice([-1, 1], size=(20_000, 11)))
    index = open_index(11)
    index.add(codes)
    assert index.reconstruct(np.arange(20_000)) == codes
    for taken in (0, 16_390, 19_999):
        with pytest.raises(ValueError, match=f"id {taken} is already"):
            index.add(codes, np.r_[np.arange(100_000, 119_999), taken])
    with pytest.raises(KeyError, match="20000 is not"):
        index.remove(np.arange(20_001))
    assert len(index) == 20_000
    index.remove(np.arange(1, 20_000))
    assert index.ids.tolist() == [0]


@pytest.mark.parametrize("emptied", [False, True])
def test_database_refuses_another_length_of_as_many_bytes(open_index, random_codes, emptied):
    index = open_index(11)
    index.add(random_codes[:5])
    if emptied:
        index.remove(index.ids)
    for n_bits in (8, 9, 10, 12, 16, 17):
        with pytest.raises(ValueError, match=rf"holds .*11.*, not .*{n_bits}"):
            open_index(n_bits)
    assert len(open_index(11)) == (0 if emptied else 5)


def test_database_takes_a_collection_in_one_call(open_index, collection):
    opened = open_index(13)
    place = {"table": opened.table} if hasattr(opened, "table") else {"name": opened.name}
    uri = opened.uri
    index = type(opened).from_collection(uri, collection, **place)
    query = collection.codes([70])
    assert index.ids.tolist() == collection.ids.tolist()
    for where in (None, {"label": 3}):
        expected = collection.search(items=[70], k=10, where=where)[0]
        assert index.search(query, 10, where=where).ids[0].tolist() == [hit.id for hit in expected]
    assert index.search(query, 10, where={"reference": "5.png"}).ids.tolist() == [[35]]
    with pytest.raises(ValueError, match="nothing was added"):
        type(opened).from_collection(uri, collection, **place)
    index.close()


def test_database_keeps_the_space_of_its_codes(open_index, random_codes):
    index, codes = open_index(11), replace(random_codes[:5], space_id="a" * 16)
    index.add(codes)
    place = {"table": index.table} if hasattr(index, "table") else {"name": index.name}
    again = type(index)(index.uri, 11, **place)
    assert again.space_id == "a" * 16
    with pytest.raises(SpaceMismatchError):
        again.add(replace(codes, space_id="b" * 16), [10, 11, 12, 13, 14])
    again.close()


@pytest.mark.parametrize(
    ("module", "library"),
    [("faiss_index", "faiss"), ("pgvector_index", "psycopg"), ("milvus_index", "pymilvus")],
)
def test_a_missing_library_is_named(module, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"starshl.index.adapters.{module}", raising=False)
    with pytest.raises(ImportError, match=f"library '{library}'"):
        __import__(f"starshl.index.adapters.{module}")
