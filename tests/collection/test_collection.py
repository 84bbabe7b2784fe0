"""A collection keeps what it was given, finds it again, and refuses what is wrong without half-doing it."""

import json
import os
import resource
import signal
import sqlite3
import threading
import time
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest

from starshl import StarSHL
from starshl.baselines import LSHash
from starshl.collection import Collection
from starshl.collection.store import Store
from starshl.exceptions import CollectionError, CollectionFormatError
from starshl.index import BucketIndex, FlatIndex


def spoil_file(folder, statement):
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()


def die(*arguments):
    raise KeyboardInterrupt


def nested(depth):
    """A dictionary with lists in it, so deep in all."""
    inner = 1
    for _ in range(depth - 1):
        inner = [inner]
    return {"a": inner}


def state_of(collection):
    return collection.rows(), sorted(collection.ids.tolist())


def test_search_agrees_with_brute_force_over_codes(folder, hasher, rows):
    with Collection(folder) as collection:
        found = collection.search(rows[:5], k=7)
        distances = hasher.encode(rows[:5]).distances(hasher.encode(rows))
        for q, hits in enumerate(found):
            order = np.argsort(distances[q], kind="stable")[:7]
            assert [(hit.id, hit.distance) for hit in hits] == [(i, distances[q, i]) for i in order]
        metadata = {"label": 0, "price": 0, "name": "no 0"}
        assert found[0][0] == (0, 0, "images/0.png", metadata, None, "vector", None)


def test_search_by_item_is_search_by_its_vector(folder, rows):
    with Collection(folder) as collection:
        assert collection.search(items=[3, 9], k=5) == collection.search(rows[[3, 9]], k=5)
        assert collection.search_radius(items=[3], radius=6) == collection.search_radius(rows[[3]], 6)


def test_scores_order_items_at_equal_distance(folder, hasher, rows):
    with Collection(folder) as collection:
        hits = collection.search(rows[:1], k=60, by_scores=True)[0]
    similarity = hasher.transform(rows) @ hasher.decision_function(rows[:1])[0]
    keys = [(hit.distance, -similarity[hit.id]) for hit in hits]
    assert all(a[0] < b[0] or a[1] <= b[1] + 1e-9 for a, b in pairwise(keys))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"label": 1}, [i for i in range(60) if i % 3 == 1]),
        ({"label": {"!=": 1}, "price": {">=": 50}}, [i for i in range(50, 60) if i % 3 != 1]),
        ({"price": {">": 5, "<": 8}}, [6, 7]),
        ({"name": {"in": ["no 4", "no 40"]}}, [4, 40]),
        ({"name": {">": 5}}, []),
        ({"name": "x' OR 1=1 --"}, []),
    ],
)
def test_filters_choose_by_metadata(folder, rows, where, expected):
    with Collection(folder) as collection:
        hits = collection.search(rows[:1], k=60, where=where)[0]
        assert sorted(hit.id for hit in hits) == expected
        near = collection.search_radius(rows[:1], 24, where=where)[0]
        assert near == hits


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"lable": 1}, r"'lable', but no item has .* Did you mean 'label'\? There are: label, name, price\."),
        ({"label": 1, "x') OR 1=1 --": 1}, "no item has metadata of that name. There are: label, name, price"),
        ({"missing": {"!=": 1}}, "'missing', but no item has metadata of that name"),
    ],
)
def test_a_filter_on_an_unknown_name_is_refused(folder, rows, where, message):
    with Collection(folder) as collection:
        with pytest.raises(ValueError, match=message):
            collection.search(rows[:1], where=where)
        with pytest.raises(ValueError, match=message):
            collection.search_radius(rows[:1], 24, where=where)


def test_a_filter_on_a_known_name_may_find_nothing(folder, tmp_path, hasher, rows):
    with Collection(folder) as collection:
        assert collection.search(rows[:2], where={"label": 77}) == [[], []]
    with Collection.create(tmp_path / "empty", hasher) as collection:
        assert collection.search(rows[:2], where={"label": 77}) == [[], []]


def test_among_and_where_combine(folder, rows):
    def ids(collection, **filters):
        hits = collection.search(rows[:1], k=60, **filters)[0]
        assert collection.search_radius(rows[:1], 24, **filters)[0] == hits
        return sorted(hit.id for hit in hits)

    with Collection(folder) as collection:
        assert ids(collection, among=[5, 3, 3, 9]) == [3, 5, 9]
        assert ids(collection, among=[5, 3, 9], where={"label": 0}) == [3, 9]
        assert ids(collection, among=[]) == []
        assert ids(collection, among=[3, 777]) == [3]


def test_a_search_for_more_items_than_there_are_returns_them_all(folder, tmp_path, hasher, rows):
    with Collection(folder) as collection:
        assert collection.search(rows[:2], k=1000) == collection.search(rows[:2], k=60)
    with Collection.create(tmp_path / "empty", hasher) as collection:
        assert collection.search(rows[:2], k=3) == [[], []]
        assert collection.search_radius(rows[:2], 3) == [[], []]


def test_a_search_by_scores_encodes_once(folder, rows, monkeypatch):
    calls = []
    real = LSHash.decision_function
    monkeypatch.setattr(LSHash, "decision_function", lambda self, X: calls.append(len(X)) or real(self, X))
    with Collection(folder) as collection:
        calls.clear()
        collection.search(rows[:4], by_scores=True)
    assert calls == [4]


@pytest.mark.parametrize(
    "name",
    ["é", "日本", "🙂", "a\\b", "\\u00e9", "a\nb", "\t", "\x7f", "a/b", "a.b", "[0]", "$", "a'b", "half \ud800"],
)
def test_filters_find_every_name_that_metadata_can_have(folder, rows, name):
    def found(collection, where):
        return sorted(hit.id for hit in collection.search(rows[:1], k=60, where=where)[0])

    with Collection(folder) as collection:
        collection.update([4, 5, 6], [{name: 1, "other": 0}, {name: 2}, {"other": 1}])
        assert found(collection, {name: 1}) == [4]
        assert found(collection, {name: {"!=": 1}}) == [5]
        assert found(collection, {name: {">": 0}}) == [4, 5]
        assert found(collection, {name: {"in": [2, 3]}}) == [5]


def test_text_that_looks_like_an_escaped_nul_is_no_nul(folder, rows):
    metadata = {"a": r"\u0000", r"\u0000": r"\\u0000"}
    with Collection(folder) as collection:
        collection.update([4], [metadata])
        assert collection.get([4])[0].metadata == metadata
        assert [hit.id for hit in collection.search(rows[:1], where={"a": r"\u0000"})[0]] == [4]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({}, "it must be a dictionary"),
        ("label = 1", "it must be a dictionary"),
        ({"label": {"like": 1}}, "uses 'like'; comparisons are =, !="),
        ({"label": {}}, "is empty"),
        ({"label": {"in": []}}, "give a list of values"),
        ({"label": None}, "with a NoneType"),
        ({'la"bel': 1}, "cannot name a metadata field"),
        ({"label": 2**70}, "does not fit in 64 bits"),
        ({"la\0bel": 1}, "without double quotes or NUL"),
        ({"label": "a\0b"}, "cannot contain NUL characters"),
        ({"label": {"in": ["a", "\0"]}}, "cannot contain NUL characters"),
        ({"label": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_bad_filters_are_refused(folder, rows, where, message):
    with Collection(folder) as collection, pytest.raises(ValueError, match=message):
        collection.search(rows[:1], where=where)


def test_upsert_replaces_and_adds(folder, rows):
    with Collection(folder) as collection:
        collection.upsert(rows[[1, 2]], ids=[0, 100], metadata=[{"label": 7}, {"label": 8}])
        assert len(collection) == 61
        assert [item.metadata for item in collection.get([100, 0])] == [{"label": 8}, {"label": 7}]
        assert collection.codes([0, 100]) == collection.codes([1, 2])
    with Collection(folder) as collection:
        assert collection.search(rows[1:2], k=2)[0][0].id == 0


class CallableHashers:
    """A hasher that learned with a function, which no file can hold."""

    @staticmethod
    def kernel(a, b):
        return np.asarray(a) @ np.asarray(b).T

    @classmethod
    def fitted(cls, rows):
        return StarSHL(24, kernels=[cls.kernel], random_state=0).fit(rows, np.arange(len(rows)) % 3)


def test_a_hasher_that_cannot_be_loaded_again_gets_no_collection(tmp_path, rows):
    hasher = CallableHashers.fitted(rows)
    with pytest.raises(ValueError, match="kernels given as functions"):
        Collection.create(tmp_path / "items", hasher)
    assert list(tmp_path.iterdir()) == []
    with Collection.create(tmp_path / "items", hasher, kernels=[CallableHashers.kernel]) as collection:
        collection.add(rows)
        assert collection.codes([7]) == hasher.encode(rows[7:8])
    with Collection(tmp_path / "items", kernels=[CallableHashers.kernel]) as collection:
        assert collection.verify() == 60


def test_a_hasher_that_cannot_be_loaded_again_replaces_none(folder, rows):
    other = CallableHashers.fitted(rows)
    with Collection(folder) as collection:
        before, files = state_of(collection), sorted(folder.iterdir())
        with pytest.raises(ValueError, match="kernels given as functions"):
            collection.replace_hasher(other, np.arange(60), rows)
        assert state_of(collection) == before
        assert sorted(folder.iterdir()) == files
        collection.replace_hasher(other, np.arange(60), rows, kernels=[CallableHashers.kernel])
        assert collection.codes(np.arange(60)) == other.encode(rows)
        assert collection.search(rows[:1], k=3) == collection.search(items=[0], k=3)


def test_items_get_database_codes_and_queries_get_query_codes(tmp_path, rows, monkeypatch):
    hasher = LSHash(24, random_state=0).fit(rows)
    monkeypatch.setattr(LSHash, "encode_database", lambda self, X, y=None: self.encode(-X))
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows, labels=np.arange(60) % 3)
        assert collection.codes(np.arange(60)) == hasher.encode(-rows)
        assert collection.search(-rows[:5], k=1) == collection.search(items=np.arange(5), k=1)


def test_metadata_change_without_encoding_again(folder, rows):
    with Collection(folder) as collection:
        before = collection.codes([4, 5])
        collection.update([5, 4], [{"label": "new"}, {"label": "class"}])
        assert collection.codes([4, 5]) == before
        hits = collection.search(rows[:1], k=60, where={"label": {"in": ["new", "class"]}})[0]
        assert sorted((hit.id, hit.reference) for hit in hits) == [(4, "images/4.png"), (5, "images/5.png")]


def test_a_new_hasher_takes_all_items_along(folder, rows):
    other = LSHash(40, random_state=1).fit(rows)
    with Collection(folder) as collection:
        with pytest.raises(ValueError, match=r"every item exactly once"):
            collection.replace_hasher(other, np.arange(59), rows[:59])
        assert collection.n_bits == 24
        collection.replace_hasher(other, np.arange(60), rows)
        assert collection.n_bits == 40
    with Collection(folder) as collection:
        assert collection.codes(np.arange(60)) == other.encode(rows)
        assert collection.get([7])[0].metadata["price"] == 7
    assert len(list(folder.glob("hasher-*.star"))) == 1


def test_a_hasher_is_not_replaced_between_encoding_and_storing(folder, rows, monkeypatch):
    other = LSHash(24, random_state=1).fit(rows)
    with Collection(folder) as collection:
        replacing = threading.Thread(target=collection.replace_hasher, args=(other, np.arange(60), rows))
        real_encode = LSHash.encode_database

        def encode_slowly(encoder, *arguments):
            codes = real_encode(encoder, *arguments)
            if encoder is not other and not replacing.ident:
                # Encoding holds no lock: the other thread gets its turn in the middle of it.
                replacing.start()
                replacing.join(60)
            return codes

        monkeypatch.setattr(LSHash, "encode_database", encode_slowly)
        collection.upsert(rows[:1], ids=[7])
        assert collection.codes([7, 8]) == other.encode(rows[[0, 8]])


def test_removed_items_are_gone_and_compact_shrinks_the_file(folder, hasher, rows):
    with Collection(folder) as collection:
        ids = collection.add(np.repeat(rows, 40, axis=0), metadata=[{"text": "x" * 500}] * 2400)
        collection.compact()
        size = (folder / "items.sqlite").stat().st_size
        collection.remove(ids)
        collection.compact()
        assert (folder / "items.sqlite").stat().st_size < size / 5
        assert collection.ids.tolist() == list(range(60))
        assert collection.verify() == 60


def test_a_reader_sees_what_a_writer_has_stored(folder, rows):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        assert len(reader) == 60
        writer.add(rows[:3], ids=[1000, 1001, 1002])
        writer.remove([0])
        assert len(reader) == 62
        assert reader.search(rows[1:2], k=2)[0][1].id == 1001
        with pytest.raises(CollectionError, match="read-only"):
            reader.remove([1])


def refuse_to_read_all(monkeypatch, reader):
    def fail(store):
        raise AssertionError("the reader read every item again")

    monkeypatch.setattr(reader._session, "_read", fail)


def assert_reads_like_a_new_reader(folder, reader, rows):
    with Collection(folder, read_only=True) as fresh:
        assert reader.ids.tolist() == fresh.ids.tolist()
        assert reader.codes(reader.ids) == fresh.codes(fresh.ids)
        assert reader.search(rows[:5], k=7) == fresh.search(rows[:5], k=7)


def test_a_reader_reads_only_what_a_writer_has_changed(folder, rows, monkeypatch):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        refuse_to_read_all(monkeypatch, reader)
        writer.add(rows[:3], ids=[1000, 1001, -5])
        assert_reads_like_a_new_reader(folder, reader, rows)
        writer.remove([0, 1000])
        writer.upsert(rows[[7, 8]], ids=[1001, 2000])
        writer.update([3], [{"label": "new"}])
        writer.add(rows[:1], ids=[0])
        assert_reads_like_a_new_reader(folder, reader, rows)
        writer.remove(writer.ids)
        assert len(reader) == 0
        assert reader.get([]) == []


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE changes SET id = id + 1 WHERE id = 1001",
        "DELETE FROM changes WHERE id = 1001",
        "UPDATE facts SET value = value + 2 WHERE name = 'log_start'",
        "UPDATE facts SET value = value - 1 WHERE name = 'log_start'",
        "UPDATE facts SET value = value - 1 WHERE name = 'log_end'",
        "DELETE FROM facts WHERE name = 'log_sum'",
        "UPDATE facts SET value = 'x' WHERE name = 'log_sum'",
    ],
)
def test_a_damaged_log_is_refused(folder, rows, spoil):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        writer.add(rows[:3], ids=[1000, 1001, 1002])
        spoil_file(folder, spoil)
        with pytest.raises(CollectionFormatError, match="damaged"):
            len(reader)
        with pytest.raises(CollectionFormatError, match="damaged"):
            Collection(folder, read_only=True)


def test_the_index_is_chosen_again_when_a_collection_has_doubled(tmp_path, hasher, rows, monkeypatch):
    folder = tmp_path / "items"
    few = np.repeat(rows[:4], 50, axis=0)
    with Collection.create(folder, hasher) as writer, Collection(folder, read_only=True) as reader:
        refuse_to_read_all(monkeypatch, reader)
        writer.add(rows)
        assert isinstance(writer._session._snapshot.index, FlatIndex)
        writer.add(few, ids=1000 - np.arange(200))
        assert isinstance(writer._session._snapshot.index, BucketIndex)
        assert len(reader) == 260
        assert isinstance(reader._session._snapshot.index, BucketIndex)
        assert_reads_like_a_new_reader(folder, reader, rows)
        assert_reads_like_a_new_reader(folder, writer, rows)


def test_a_full_log_starts_again(tmp_path, hasher, rows, monkeypatch):
    monkeypatch.setattr("starshl.collection.changelog._ROOM", 10)
    folder = tmp_path / "items"
    with Collection.create(folder, hasher) as writer, Collection(folder, read_only=True) as reader:
        for first in range(1000, 1060, 6):
            writer.add(rows[:6], ids=np.arange(first, first + 6))
            if first % 4 == 0:
                assert_reads_like_a_new_reader(folder, reader, rows)
        writer.add(rows[:20], ids=np.arange(2000, 2020))
        assert_reads_like_a_new_reader(folder, reader, rows)
        n_logged = writer._session._writer.connection.execute("SELECT count(*) FROM changes").fetchone()[0]
        assert n_logged <= 10


def test_a_reader_follows_to_a_new_hasher(folder, rows):
    other = LSHash(40, random_state=1).fit(rows)
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        writer.replace_hasher(other, np.arange(60), rows)
        assert reader.n_bits == 40
        assert_reads_like_a_new_reader(folder, reader, rows)


def test_a_reader_interrupted_on_the_way_to_a_new_hasher_gets_there(folder, rows, monkeypatch):
    other = LSHash(40, random_state=1).fit(rows)
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        writer.replace_hasher(other, np.arange(60), rows)
        monkeypatch.setattr(Store, "read_codes", die)
        with pytest.raises(KeyboardInterrupt):
            len(reader)
        assert reader._session._snapshot.hasher.n_bits == reader._session._snapshot.index.n_bits == 24
        monkeypatch.undo()
        assert reader.n_bits == 40
        assert_reads_like_a_new_reader(folder, reader, rows)


def test_a_damaged_change_is_refused_by_a_reader(folder, rows):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        writer.add(rows[:3], ids=[1000, 1001, 1002])
        spoil_file(folder, "UPDATE items SET code = x'000000' WHERE id = 1001")
        with pytest.raises(CollectionFormatError, match=r"1001 .* does not match its checksum"):
            reader.search(rows[:1])


def test_a_second_writer_is_refused(folder):
    with Collection(folder), pytest.raises(CollectionError, match="Another process is writing"):
        Collection(folder)
    Collection(folder).close()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda c, X: c.add(X[:2], ids=[100, 3]), ValueError, "3 is already in the collection"),
        (lambda c, X: c.add(X[:2], ids=[100, 100]), ValueError, "more than once"),
        (lambda c, X: c.add(X[:2], metadata=[{}]), ValueError, "1 dictionaries of metadata for 2 items"),
        (lambda c, X: c.add(X[:1], metadata=[{"a": object()}]), ValueError, "cannot be stored"),
        (lambda c, X: c.add(X[:1], metadata=[{"a": float("nan")}]), ValueError, "cannot be stored"),
        (lambda c, X: c.add(X[:1], metadata=[{"a\0b": 1}]), ValueError, "the NUL character"),
        (lambda c, X: c.update([1], [{"a": ["b\0"]}]), ValueError, "the NUL character"),
        (lambda c, X: c.update([1], [{"a": "\\\0"}]), ValueError, "the NUL character"),
        (lambda c, X: c.add(X[:1], references=[3]), ValueError, "references must hold 1 strings"),
        (lambda c, X: c.add(), ValueError, "either X or codes"),
        (lambda c, X: c.add(X[:1, :5]), ValueError, "5 features"),
        (lambda c, X: c.remove([1, 777]), KeyError, "777 is not in the collection; nothing was removed"),
        (lambda c, X: c.update([777], [{}]), KeyError, "777 is not in the collection"),
        (lambda c, X: c.search(X[:1], k=0), ValueError, "k is 0"),
        (lambda c, X: c.add(X[:1], metadata=[nested(101)]), ValueError, "nested more than 100 deep"),
        (lambda c, X: c.update([1], [nested(100_000)]), ValueError, "nested more than 100 deep"),
        (lambda c, X: c.search_radius(X[:1], -1), ValueError, "radius is -1"),
        (lambda c, X: c.search(items=[777]), KeyError, "777"),
        (lambda c, X: c.export("items.txt"), ValueError, r"ends in '.txt'"),
    ],
)
def test_bad_input_changes_nothing(folder, rows, change, error, message):
    with Collection(folder) as collection:
        before = state_of(collection)
        with pytest.raises(error, match=message):
            change(collection, rows)
        assert state_of(collection) == before
        assert collection.verify() == 60


@pytest.mark.parametrize(
    "use",
    [
        lambda c, X: len(c),
        lambda c, X: c.hasher,
        lambda c, X: c.get([1]),
        lambda c, X: c.search(X[:1]),
        lambda c, X: c.add(X[:1]),
        lambda c, X: c.update([1], [{}]),
        lambda c, X: c.remove([1]),
        lambda c, X: c.verify(),
        lambda c, X: c.compact(),
        lambda c, X: c.rows(),
    ],
)
def test_a_closed_collection_says_so(folder, rows, use):
    collection = Collection(folder)
    collection.close()
    collection.close()
    with pytest.raises(CollectionError, match=r"was closed\. Make a new Collection object"):
        use(collection, rows)


def test_a_full_disk_loses_nothing_and_says_so(folder, rows):
    with Collection(folder) as collection:
        before = state_of(collection)
        connection = collection._session._writer.connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(CollectionError, match=r"disk is full\. Free some space\. Nothing of this"):
            collection.add(np.repeat(rows, 40, axis=0), metadata=[{"text": "x" * 500}] * 2400)
        assert state_of(collection) == before
        assert collection.verify() == 60


def test_an_error_in_the_middle_of_a_batch_leaves_nothing_of_it(folder, rows, monkeypatch):
    with Collection(folder) as collection:
        before = state_of(collection)
        monkeypatch.setattr(Store, "_count", die)
        with pytest.raises(KeyboardInterrupt):
            collection.add(rows)
        monkeypatch.undo()
        assert state_of(collection) == before


@pytest.mark.parametrize("step", ["acknowledge", "checkpoint"])
def test_a_change_interrupted_once_it_is_stored_is_not_forgotten(folder, rows, monkeypatch, step):
    with Collection(folder) as collection:
        owner = "acknowledged" if step == "acknowledge" else "connection.Connection"
        monkeypatch.setattr(f"starshl.collection.{owner}.{step}", die)
        with pytest.raises(KeyboardInterrupt):
            collection.upsert(rows[50:51], ids=[0])
        monkeypatch.undo()
        collection.upsert(rows[51:52], ids=[1])
        assert collection.codes([0, 1]) == collection.codes([50, 51])
        assert_reads_like_a_new_reader(folder, collection, rows)


def test_an_interrupted_removal_is_not_forgotten(folder, rows, monkeypatch):
    with Collection(folder) as collection:
        monkeypatch.setattr("starshl.collection.connection.Connection.checkpoint", die)
        with pytest.raises(KeyboardInterrupt):
            collection.remove([59])
        monkeypatch.undo()
        assert collection.add(rows[:1]).tolist() == [59]
        assert_reads_like_a_new_reader(folder, collection, rows)


def test_a_reader_interrupted_while_it_catches_up_stays_where_it_was(folder, rows, monkeypatch):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        before = reader._session._snapshot
        writer.upsert(rows[50:51], ids=[0])
        monkeypatch.setattr(FlatIndex, "add", die)
        with pytest.raises(KeyboardInterrupt):
            len(reader)
        monkeypatch.undo()
        assert reader._session._snapshot is before
        assert_reads_like_a_new_reader(folder, reader, rows)


def test_a_snapshot_stays_the_same_while_changes_follow(folder, rows):
    with Collection(folder) as collection, collection._session.reading() as (snapshot, store):
        ids, codes, stored = (
            snapshot.index.ids.copy(),
            snapshot.index.reconstruct(np.arange(60)),
            list(store.all_rows()),
        )
        nearest = snapshot.index.search(codes, 10)
        collection.add(rows[:5])
        collection.add(rows[5:9], ids=[-4, -3, -2, -1])
        collection.upsert(rows[20:21], ids=[3])
        collection.remove([7, 60])
        assert snapshot.index.ids.tolist() == ids.tolist()
        assert snapshot.index.reconstruct(np.arange(60)) == codes
        assert snapshot.index.search(codes, 10).ids.tolist() == nearest.ids.tolist()
        assert list(store.all_rows()) == stored
        assert len(collection) == 67


def test_searches_run_side_by_side_and_beside_a_change(folder, rows, monkeypatch):
    meeting = threading.Barrier(3, timeout=20)
    real_encode = LSHash.encode

    def encode(hasher, X):
        meeting.wait()
        return real_encode(hasher, X)

    def search():
        results.append(collection.search(rows[:5], k=7))

    with Collection(folder) as collection:
        expected, results = collection.search(rows[:5], k=7), []
        codes = collection.codes([0])
        monkeypatch.setattr(LSHash, "encode", encode)
        threads = [threading.Thread(target=search) for _ in range(2)]
        for thread in threads:
            thread.start()
        # Both searches wait inside for this change, which does not wait for them.
        while collection._session._idle or meeting.n_waiting < 2:
            time.sleep(0.001)
        collection.upsert(codes=codes, ids=[30])
        meeting.wait()
        for thread in threads:
            thread.join()
        assert results == [expected, expected]
        assert collection.codes([30]) == codes


def test_a_folder_without_write_permission_can_be_read(folder, rows, monkeypatch):
    real_open = os.open

    def refuse(path, flags, *mode, **options):
        if flags & os.O_RDWR and str(path).endswith("writer.lock"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CollectionError, match=r"Permission denied.*read_only=True"):
        Collection(folder)
    with Collection(folder, read_only=True) as collection:
        assert len(collection.search(rows[:1], k=3)[0]) == 3


def test_creating_over_something_is_refused(folder, hasher):
    with pytest.raises(FileExistsError, match="exists already"):
        Collection.create(folder, hasher)


def test_a_failed_creation_leaves_no_folder(tmp_path, hasher, monkeypatch):
    monkeypatch.setattr(type(hasher), "save", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Collection.create(tmp_path / "items", hasher)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_at_creation_is_told_and_nothing_is_left(tmp_path, hasher):
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, limits[1]))
    try:
        with pytest.raises(CollectionError, match=r"The disk may be full or failing\. The collection was not made\."):
            Collection.create(tmp_path / "items", hasher)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == []


def test_a_search_that_fails_does_not_speak_of_changes(folder, rows):
    where = {f"field {number}": 1 for number in range(1500)}
    with Collection(folder) as collection:
        with pytest.raises(CollectionError, match=r"Give a filter with fewer conditions\. Nothing was read\."):
            collection.search(rows[:1], where=where)
        assert len(collection.search(rows[:1], k=3)[0]) == 3


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (3, "format 3; this version of starshl reads up to 2"),
        (1, "tables of a collection"),
        (0, "format 0, and formats begin with 1"),
        (-1, "-1"),
    ],
)
def test_another_format_is_refused(folder, found, message):
    connection = sqlite3.connect(folder / "items.sqlite")
    connection.execute("UPDATE facts SET value = ? WHERE name = 'format'", [found])
    connection.commit()
    connection.close()
    with pytest.raises(CollectionFormatError, match=message):
        Collection(folder)


def test_a_changed_or_missing_model_is_refused(folder):
    model = next(folder.glob("hasher-*.star"))
    content = model.read_bytes()
    model.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CollectionFormatError, match="was changed"):
        Collection(folder)
    model.unlink()
    with pytest.raises(CollectionFormatError, match="is missing"):
        Collection(folder)
    with pytest.raises(FileNotFoundError, match="no collection"):
        Collection(folder / "nowhere")


def test_an_export_sees_one_state(folder, rows, tmp_path, monkeypatch):
    other = LSHash(40, random_state=1).fit(rows)
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        real_reading = Store.reading

        @contextmanager
        def reading(store):
            with real_reading(store):
                yield
            if store in reader_stores:
                writer.replace_hasher(other, np.arange(60), rows)

        reader_stores = reader._session._idle[:]
        monkeypatch.setattr(Store, "reading", reading)
        reader.export(tmp_path / "items.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert {(line["n_bits"], len(line["code"])) for line in lines} == {(24, 6)}


def test_json_lines_hold_every_item(folder, hasher, rows, tmp_path):
    with Collection(folder) as collection:
        assert collection.export(tmp_path / "items.jsonl") == 60
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert lines[5]["metadata"] == {"label": 2, "price": 5, "name": "no 5"}
    assert [line["code"] for line in lines] == [code.tobytes().hex() for code in hasher.encode(rows).packed]
