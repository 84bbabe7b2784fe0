"""A collection of format 1 opens as it is, and becomes one of format 2 with its first writer."""

import json
import sqlite3
import struct
import threading
import zlib

import numpy as np
import pytest

from starshl.collection.collection import Collection
from starshl.exceptions import CollectionError
from starshl.exceptions import CollectionFormatError

ITEMS_OF_FORMAT_1 = """CREATE TABLE items (
  id INTEGER PRIMARY KEY,
  code BLOB NOT NULL,
  reference TEXT,
  metadata TEXT NOT NULL,
  checksum INTEGER NOT NULL
)"""


FACTS_OF_FORMAT_1 = ("generation", "n_items", "checksum_sum", "model", "n_bits", "log_start", "log_end", "log_sum")


def checksum_of_format_1(item, code, reference, metadata):
    text = json.dumps([reference, metadata]).encode()
    return zlib.crc32(text, zlib.crc32(struct.pack("<q", item) + code))


@pytest.fixture
def old(folder):
    """A collection as the version before labels and vectors wrote it, by its statements and its checksums."""
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        rows = connection.execute("SELECT id, code, reference, metadata FROM items ORDER BY id").fetchall()
        facts = dict(connection.execute("SELECT name, value FROM facts").fetchall())
        for table in ("items", "blocks", "column_blocks"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute(ITEMS_OF_FORMAT_1)
        checksums = [checksum_of_format_1(*row) for row in rows]
        records = [(*row, checksum) for row, checksum in zip(rows, checksums, strict=True)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", records)
        connection.execute("DELETE FROM facts")
        kept = {name: facts[name] for name in FACTS_OF_FORMAT_1} | {"format": 1, "checksum_sum": sum(checksums)}
        connection.executemany("INSERT INTO facts VALUES (?, ?)", kept.items())
    connection.close()
    return folder


def format_of(folder):
    connection = sqlite3.connect(folder / "items.sqlite")
    found = connection.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()[0]
    connection.close()
    return found


def test_a_reader_of_format_1_leaves_it_as_it_is(old, rows):
    content = (old / "items.sqlite").read_bytes()
    with Collection(old, read_only=True) as collection:
        assert collection.verify() == 60
        hits = collection.search(rows[:1], k=60, where={"price": {"<": 30}})[0]
        assert sorted(hit.id for hit in hits) == list(range(30))
        assert collection.get([7])[0][2:] == ({"label": 1, "price": 7, "name": "no 7"}, None, "vector", None)
        assert collection.search(rows[:1], labels=[1]) == [[]]
        assert collection.keeps is None
        assert collection.fields == {}
    assert (old / "items.sqlite").read_bytes() == content


def test_a_writer_brings_format_1_to_format_2_and_loses_nothing(old, rows):
    with Collection(old, read_only=True) as reader:
        before = reader.rows()
        with Collection(old) as collection:
            assert format_of(old) == 2
            assert collection.rows() == before
            collection.set_labels([7], ["red"])
            collection.add(rows[:2])
            collection.declare_fields({"price": int})
            hits = collection.search(rows[:1], k=60, where={"price": {">=": 50}})[0]
            assert sorted(hit.id for hit in hits) == list(range(50, 60))
        assert reader.get([7])[0].label == "red"
        assert reader.verify() == 62
    with Collection(old) as collection:
        assert collection.verify() == 62
        assert collection.codes(np.arange(60)) == collection.hasher.encode(rows)


def test_a_damaged_collection_of_format_1_is_refused_and_stays(old):
    connection = sqlite3.connect(old / "items.sqlite")
    with connection:
        connection.execute("UPDATE items SET reference = 'x' WHERE id = 7")
    connection.close()
    content = (old / "items.sqlite").read_bytes()
    for read_only in (True, False):
        with pytest.raises(CollectionFormatError, match=r"item 7 .* does not match its checksum"):
            Collection(old, read_only=read_only)
    assert (old / "items.sqlite").read_bytes() == content


@pytest.mark.parametrize("step", ["upgrade", "set_fact", "_write_blocks"])
def test_an_interrupted_change_of_format_leaves_format_1(old, monkeypatch, step):
    def die(*arguments):
        raise KeyboardInterrupt

    with Collection(old, read_only=True) as reader:
        before = reader.rows()
    monkeypatch.setattr(f"starshl.collection.store.Store.{step}", die)
    with pytest.raises(KeyboardInterrupt):
        Collection(old)
    monkeypatch.undo()
    assert format_of(old) == 1
    with Collection(old) as collection:
        assert collection.rows() == before
    assert format_of(old) == 2


def test_readers_go_on_while_the_format_changes(old):
    failures = []

    def read():
        try:
            while not done.is_set():
                with Collection(old, read_only=True) as reader:
                    for _ in range(3):
                        assert len(reader.get(np.arange(60))) == 60
        except BaseException as error:
            failures.append(error)

    done = threading.Event()
    thread = threading.Thread(target=read)
    thread.start()
    try:
        Collection(old).close()
    finally:
        done.set()
        thread.join()
    assert failures == []


def test_tables_of_two_formats_are_refused(folder):
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        connection.execute("UPDATE facts SET value = 1 WHERE name = 'format'")
    connection.close()
    with pytest.raises((CollectionFormatError, CollectionError), match="does not have the tables of a collection"):
        Collection(folder)
