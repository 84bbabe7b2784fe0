"""Shards on workers: the answers of one index, or of one collection, that holds everything."""

import os
import signal

import numpy as np
import pytest

pytest.importorskip("distributed", reason="the extra dask is not installed")

from starshl import BinaryCodes, Collection
from starshl.distributed import ShardedCollection, ShardedIndex, encode
from starshl.hashers.baselines import LSHash
from starshl.index import FlatIndex
from starshl.testing import check_index


def test_a_sharded_index_keeps_the_contract_of_every_index(client):
    check_index(lambda n_bits: ShardedIndex(n_bits, client))


def test_an_index_of_encoded_files_gives_the_answers_of_one_index(client, tmp_path):
    X = np.random.default_rng(0).standard_normal((20_000, 4)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    hasher = LSHash(10, random_state=0).fit(X)  # many equal codes, so that ties decide
    encode(hasher, tmp_path / "rows.npy", tmp_path / "codes", client=client, partition_rows=8192)
    index, queries = ShardedIndex.open(tmp_path / "codes", client, shard_partitions=1), hasher.encode(X[:20])
    whole = FlatIndex.from_codes(hasher.encode(X))
    for among in (None, np.arange(0, 20_000, 7)):
        found, expected = (each.search(queries, 50, among=among) for each in (index, whole))
        np.testing.assert_array_equal(found.distances, expected.distances)
        np.testing.assert_array_equal(found.ids, expected.ids)
        found, expected = (each.search_radius(queries, 2, among=among) for each in (index, whole))
        np.testing.assert_array_equal(found.starts, expected.starts)
        np.testing.assert_array_equal(found.ids, expected.ids)
    for process in client.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)  # all shards are lost, and read again
    np.testing.assert_array_equal(index.search(queries, 5).ids, whole.search(queries, 5).ids)


def test_a_folder_that_is_not_complete_is_not_searched(client, tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": "starshl-codes", "version": 1, "complete": false}')
    with pytest.raises(ValueError, match="are not complete"):
        ShardedIndex.open(tmp_path, client)
    with pytest.raises(FileNotFoundError, match="There are no codes"):
        ShardedIndex.open(tmp_path / "absent", client)


@pytest.fixture(scope="module")
def collections(digits, tmp_path_factory):
    """All digits in one collection, and the same items in three."""
    X, y = digits
    X, y = X[:600], y[:600]
    folder, hasher = tmp_path_factory.mktemp("collections"), LSHash(12, random_state=0).fit(X)
    metadata = [{"page": number // 100} for number in range(len(X))]
    for name, rows in {"all": slice(0, 600), "a": slice(0, 250), "b": slice(250, 260), "c": slice(260, 600)}.items():
        with Collection.create(folder / name, hasher, fields={"page": int}) as collection:
            collection.add(X[rows], labels=y[rows], ids=np.arange(600)[rows], metadata=metadata[rows])
    return folder, hasher


def test_a_sharded_collection_gives_the_answers_of_one_collection(client, collections, digits):
    folder, _ = collections
    X = digits[0][600:610]
    sharded = ShardedCollection([folder / name for name in "abc"], client)
    assert len(sharded) == 600
    with Collection(folder / "all", read_only=True) as whole:
        for filters in ({}, {"where": {"page": {"<": 4}}}, {"labels": [3, 5]}, {"among": [1, 255, 300, 599]}):
            assert sharded.search(X, 30, **filters) == whole.search(X, 30, **filters)
            assert sharded.search_radius(X, 3, **filters) == whole.search_radius(X, 3, **filters)


def test_items_that_are_added_later_are_found(client, collections, digits, tmp_path):
    _, hasher = collections
    X = digits[0]
    with Collection.create(tmp_path / "growing", hasher) as growing:
        growing.add(X[:50], ids=np.arange(50))
        sharded = ShardedCollection([tmp_path / "growing"], client)
        assert sharded.search(X[700:701], 1)[0][0].id < 50
        growing.add(X[700:701], ids=[700])
        assert (700, 0) in [(hit.id, hit.distance) for hit in sharded.search(X[700:701], 51)[0]]


def test_collections_that_do_not_belong_together_are_refused(client, collections, digits, tmp_path):
    folder, _ = collections
    with pytest.raises(ValueError, match="0 is in several"):
        ShardedCollection([folder / "all", folder / "a"], client)
    Collection.create(tmp_path / "other", LSHash(12, random_state=1).fit(digits[0])).close()
    with pytest.raises(ValueError, match="hold codes of 2 spaces"):
        ShardedCollection([folder / "a", tmp_path / "other"], client)
    with pytest.raises(ValueError, match="no folders"):
        ShardedCollection([], client)
    with pytest.raises(TypeError, match="'shop' is not an option"):
        ShardedCollection([folder / "a"], client).search(digits[0][:1], shop=1)


def test_codes_of_another_space_are_refused(client):
    codes = BinaryCodes.from_signs(np.ones((2, 5)), "0" * 16)
    index = ShardedIndex(5, client)
    index.add(codes)
    with pytest.raises(ValueError, match="space"):
        index.search(BinaryCodes.from_signs(np.ones((1, 5)), "f" * 16))
