"""Readers beside a writer: they see what is stored, read only what changed, and keep their state."""

import json
import os
import sqlite3
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.store import Store
from starshl.exceptions import CollectionError, CollectionFormatError
from starshl.hashers.baselines import LSHash
from starshl.index import BucketIndex, FlatIndex

from .states import assert_reads_like_a_new_reader, die


def spoil_file(folder, statement):
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()


def test_a_reader_sees_what_a_writer_has_stored(folder, rows):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        assert len(reader) == 60
        writer.add(rows[:3], ids=[1000, 1001, 1002])
        writer.remove([0])
        assert len(reader) == 62
        assert reader.search(rows[1:2], k=2)[0][1].id == 1001
        with pytest.raises(CollectionError, match="read-only"):
            reader.remove([1])


def catch_up(reader):
    """Let a reader read what has changed; fail if it reads every item again."""

    def fail(store):
        raise AssertionError("the reader read every item again")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "read_codes", fail)
        len(reader)


def test_a_reader_reads_only_what_a_writer_has_changed(folder, rows):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        writer.add(rows[:3], ids=[1000, 1001, -5])
        catch_up(reader)
        assert_reads_like_a_new_reader(folder, reader, rows)
        writer.remove([0, 1000])
        writer.upsert(rows[[7, 8]], ids=[1001, 2000])
        writer.update([3], [{"label": "new"}])
        writer.add(rows[:1], ids=[0])
        catch_up(reader)
        assert_reads_like_a_new_reader(folder, reader, rows)
        writer.remove(writer.ids)
        catch_up(reader)
        assert len(reader) == 0
        assert reader.get([]) == []


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE changes SET id = id + 1 WHERE id = 1001",
        "DELETE FROM changes WHERE id = 1001",
        "UPDATE meta SET value = value + 2 WHERE name = 'log_start'",
        "UPDATE meta SET value = value - 1 WHERE name = 'log_start'",
        "UPDATE meta SET value = value - 1 WHERE name = 'log_end'",
        "DELETE FROM meta WHERE name = 'log_sum'",
        "UPDATE meta SET value = 'x' WHERE name = 'log_sum'",
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


def test_the_index_is_chosen_again_when_a_collection_has_doubled(tmp_path, hasher, rows):
    folder = tmp_path / "items"
    few = np.repeat(rows[:4], 50, axis=0)
    with Collection.create(folder, hasher) as writer, Collection(folder, read_only=True) as reader:
        writer.add(rows)
        assert isinstance(writer._session._state.index, FlatIndex)
        writer.add(few, ids=1000 - np.arange(200))
        assert isinstance(writer._session._state.index, BucketIndex)
        catch_up(reader)
        assert len(reader) == 260
        assert isinstance(reader._session._state.index, BucketIndex)
        assert_reads_like_a_new_reader(folder, reader, rows)
        assert_reads_like_a_new_reader(folder, writer, rows)


def test_a_full_log_starts_again(tmp_path, hasher, rows, monkeypatch):
    monkeypatch.setattr("starshl.collection.store.LOG_CAPACITY", 10)
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
        assert reader._session._state.hasher.n_bits == reader._session._state.index.n_bits == 24
        monkeypatch.undo()
        assert reader.n_bits == 40
        assert_reads_like_a_new_reader(folder, reader, rows)


def test_a_damaged_change_is_refused_by_a_reader(folder, rows):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        writer.add(rows[:3], ids=[1000, 1001, 1002])
        spoil_file(folder, "UPDATE blocks SET content = zeroblob(length(content)) WHERE name = 'codes'")
        with pytest.raises(CollectionFormatError, match="block of 'codes' that cannot be read"):
            reader.search(rows[:1])


def test_a_reader_interrupted_while_it_catches_up_stays_where_it_was(folder, rows, monkeypatch):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        before = reader._session._state
        writer.upsert(rows[50:51], ids=[0])
        monkeypatch.setattr(FlatIndex, "add", die)
        with pytest.raises(KeyboardInterrupt):
            len(reader)
        monkeypatch.undo()
        assert reader._session._state is before
        assert_reads_like_a_new_reader(folder, reader, rows)


def test_a_state_stays_the_same_while_changes_follow(folder, rows):
    with Collection(folder) as collection, collection.reading() as (state, store):
        ids, codes, stored = (
            state.index.ids.copy(),
            state.index.reconstruct(np.arange(60)),
            list(store.all_rows()),
        )
        nearest = state.index.search(codes, 10)
        collection.add(rows[:5])
        collection.add(rows[5:9], ids=[-4, -3, -2, -1])
        collection.upsert(rows[20:21], ids=[3])
        collection.remove([7, 60])
        assert state.index.ids.tolist() == ids.tolist()
        assert state.index.reconstruct(np.arange(60)) == codes
        assert state.index.search(codes, 10).ids.tolist() == nearest.ids.tolist()
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
    with pytest.raises(CollectionError, match=r"Permission denied.*read-only"):
        Collection(folder)
    with Collection(folder, read_only=True) as collection:
        assert len(collection.search(rows[:1], k=3)[0]) == 3


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
