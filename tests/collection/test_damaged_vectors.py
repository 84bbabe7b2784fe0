"""Kept vectors that were damaged, cut or half written are noticed and never read."""

import os
import sqlite3

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.blocks import POSITIONS
from starshl.collection.columns import Column
from starshl.collection.store import Store
from starshl.exceptions import CollectionError, CollectionFormatError
from starshl.hashers.baselines import LSHash

from .kept_vectors import KINDS, vector_file
from .states import spoil_column


def test_a_change_that_fails_leaves_nothing_that_is_ever_read(kept, rows, monkeypatch):
    def die(*arguments, **options):
        raise KeyboardInterrupt

    with Collection(kept) as collection:
        before = collection.rows()
        monkeypatch.setattr(Store, "put", die)
        with pytest.raises(KeyboardInterrupt):
            collection.add(rows)
        monkeypatch.undo()
        assert vector_file(kept).stat().st_size == 2 * 60 * collection._session._state.vectors.layout.dtype.itemsize
        assert collection.rows() == before
    with Collection(kept) as collection:
        assert vector_file(kept).stat().st_size == 60 * collection._session._state.vectors.layout.dtype.itemsize
        assert collection.verify() == 60
        collection.add(rows[:3])
        assert (collection.vectors([60, 61, 62]) == collection.vectors([0, 1, 2])).all()


@pytest.mark.parametrize("step", ["assign", "set_meta"])
def test_a_compaction_that_fails_changes_nothing(kept, monkeypatch, step):
    def die(*arguments):
        raise KeyboardInterrupt

    with Collection(kept) as collection:
        collection.remove([3])
        before, name = collection.rows(), vector_file(kept).name
        monkeypatch.setattr(Store, step, die)
        with pytest.raises(KeyboardInterrupt):
            collection.compact()
        monkeypatch.undo()
        assert collection.rows() == before
        assert collection.verify() == 59
        collection.compact()
        assert collection.verify() == 59
        assert vector_file(kept).name != name


def test_a_disk_that_fails_or_is_full_stores_nothing_and_says_so(kept, rows, monkeypatch):
    real_write = os.pwrite

    def fail(handle, content, place):
        if len(content) > 100:
            real_write(handle, content[:50], place)
            raise OSError(28, "No space left on device")
        return real_write(handle, content, place)

    with Collection(kept) as collection:
        before, size = collection.rows(), vector_file(kept).stat().st_size
        monkeypatch.setattr(os, "pwrite", fail)
        with pytest.raises(CollectionError, match="No space left"):
            collection.add(rows)
        monkeypatch.undo()
        assert collection.rows() == before
        assert vector_file(kept).stat().st_size == size
        collection.add(rows)
        assert collection.verify() == 120


def test_vectors_are_on_the_disk_before_the_database_knows_them(kept, rows, monkeypatch):
    events = []
    real_fsync, real_put = os.fsync, Store.put
    number = vector_file(kept).stat().st_ino

    def fsync(handle):
        real_fsync(handle)
        if os.fstat(handle).st_ino == number:
            events.append(f"flushed {os.fstat(handle).st_size}")

    def put(store, added, **options):
        events.append("stored")
        real_put(store, added, **options)

    with Collection(kept) as collection:
        width = collection._session._state.vectors.layout.dtype.itemsize
        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(Store, "put", put)
        collection.add(rows[:10])
    assert events == [f"flushed {70 * width}", "stored"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_vector_is_refused_whenever_it_would_be_read(kept, rows, kind):
    path = vector_file(kept)
    content = bytearray(path.read_bytes())
    width = len(content) // 60
    content[7 * width + 9] ^= 4
    path.write_bytes(content)
    with Collection(kept) as collection:
        for read in (
            lambda: collection.vectors([3, 7]),
            lambda: collection.search(rows[:1], k=10),
            lambda: collection.verify(),
            lambda: collection.replace_hasher(LSHash(24, random_state=1).fit(rows)),
            lambda: (collection.remove([3]), collection.compact()),
        ):
            with pytest.raises(CollectionFormatError, match="item 7"):
                read()
        assert len(collection.search(rows[:1], k=10, rescore=False)[0]) == 10
        assert (collection.vectors([8]) == collection.vectors([8])).all()
        collection.upsert(rows[7:8], ids=[7])
        assert collection.verify() == 59


def test_vectors_that_change_places_are_noticed(kept):
    path = vector_file(kept)
    content = path.read_bytes()
    width = len(content) // 60
    path.write_bytes(content[width : 2 * width] + content[:width] + content[2 * width :])
    with Collection(kept) as collection, pytest.raises(CollectionFormatError, match="vector of item 0"):
        collection.vectors([0])


def test_a_cut_or_missing_file_of_vectors_is_refused_at_once(kept):
    path = vector_file(kept)
    content = path.read_bytes()
    for length in (0, 1, len(content) - 1):
        path.write_bytes(content[:length])
        for read_only in (True, False):
            with pytest.raises(CollectionFormatError, match=f"has {length} bytes.*{len(content)}"):
                Collection(kept, read_only=read_only)
    path.unlink()
    for read_only in (True, False):
        with pytest.raises(CollectionFormatError, match=r"vectors-0\.bin' is missing"):
            Collection(kept, read_only=read_only)


def test_a_file_that_is_cut_while_it_is_open_is_refused(kept):
    with Collection(kept) as collection:
        collection.vectors([59])
        os.truncate(vector_file(kept), 10)
        with pytest.raises(CollectionFormatError, match="has 10 bytes"):
            collection.vectors([59])


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE meta SET value = 'float64' WHERE name = 'vector_dtype'",
        "UPDATE meta SET value = 0 WHERE name = 'n_columns'",
        "UPDATE meta SET value = value + 1 WHERE name = 'n_columns'",
        "UPDATE meta SET value = 59 WHERE name = 'n_records'",
        "UPDATE meta SET value = 61 WHERE name = 'n_records'",
        "UPDATE meta SET value = '' WHERE name = 'vector_file'",
        "UPDATE meta SET value = '../x' WHERE name = 'vector_file'",
        "DELETE FROM meta WHERE name = 'vector_file'",
    ],
)
def test_damaged_meta_entries_are_refused_at_opening(kept, spoil):
    run(kept, spoil)
    with pytest.raises(CollectionFormatError, match="damaged"):
        Collection(kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vector positions", 5),
        ("vector checksums", 17),
        ("vector positions", None),
        ("classes", 3),
        ("models", "0123456789abcdef"),
        ("ids", 99),
    ],
)
def test_a_damaged_fact_is_refused_when_it_is_read(kept, rows, name, value):
    with Collection(kept, read_only=True) as collection:
        spoil_column(kept, name, 7, value)
        for read in (
            lambda: collection.get([7]),
            lambda: collection.search(rows[7:8], k=1),
            lambda: collection.rows(),
            lambda: collection.verify(),
        ):
            with pytest.raises(CollectionFormatError, match="damaged"):
                read()


def test_a_slot_that_cannot_be_is_reported_with_its_item(kept):
    with Collection(kept) as collection, collection._session.writing() as change:
        change.store.assign(np.array([7]), {POSITIONS: Column(np.array([-3]))})
    with (
        Collection(kept, read_only=True) as collection,
        pytest.raises(CollectionFormatError, match="vector of item 7"),
    ):
        collection.vectors([5, 7, 9])


def run(folder, statement):
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()
