"""Damage to the write-ahead log, from which SQLite drops frames silently: lost changes are noticed all the same."""

import shutil
import sqlite3
import threading

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.database import Connection
from starshl.collection.store import acknowledge, create_counter, read_acknowledged
from starshl.exceptions import CollectionError, CollectionFormatError

LOG = "items.sqlite-wal"
LOG_HEADER, FRAME_HEADER = 32, 24


@pytest.fixture
def interrupted(folder, tmp_path, rows, monkeypatch):
    """A copy of a collection whose last three acknowledged changes are in the log only."""
    with monkeypatch.context() as patch, Collection(folder) as collection:
        patch.setattr(Connection, "checkpoint", lambda connection: None)
        collection.add(rows[:20])
        collection.update([3], [{"label": "new"}])
        collection.remove([5])
        shutil.copytree(folder, tmp_path / "interrupted")
    return tmp_path / "interrupted"


def page_size(folder):
    return int.from_bytes((folder / "items.sqlite").read_bytes()[16:18], "big")


def n_items_of(folder, read_only):
    with Collection(folder, read_only=read_only) as collection:
        assert collection.get([3])[0].metadata == {"label": "new"}
        return collection.verify()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_flipped_bit_anywhere_in_the_log_is_noticed(interrupted, tmp_path, read_only):
    content = (interrupted / LOG).read_bytes()
    frame = FRAME_HEADER + page_size(interrupted)
    n_frames = (len(content) - LOG_HEADER) // frame
    assert n_frames >= 6
    starts = [LOG_HEADER + number * frame for number in range(n_frames)]
    in_headers = [start + place for start in starts for place in range(0, FRAME_HEADER, 3)]
    in_pages = [start + FRAME_HEADER + place for start in starts for place in (0, frame // 3, frame - FRAME_HEADER - 1)]
    n_refused = 0
    for place in [*range(0, LOG_HEADER, 3), *in_headers, *in_pages]:
        broken = bytearray(content)
        broken[place] ^= 1 << place % 8
        target = tmp_path / "broken"
        shutil.copytree(interrupted, target)
        (target / LOG).write_bytes(broken)
        try:
            assert n_items_of(target, read_only) == 79
        except (CollectionError, CollectionFormatError):
            n_refused += 1
        shutil.rmtree(target)
    assert n_refused > 5 * n_frames


def test_a_lost_log_is_noticed(interrupted):
    (interrupted / LOG).unlink()
    for read_only in (True, False):
        with pytest.raises(CollectionFormatError, match="4 were stored"):
            Collection(interrupted, read_only=read_only)


def test_a_refused_collection_stays_as_it_is(interrupted):
    content = bytearray((interrupted / LOG).read_bytes())
    content[len(content) // 2] ^= 1
    (interrupted / LOG).write_bytes(content)
    with pytest.raises(CollectionFormatError, match="has lost changes"):
        Collection(interrupted)
    assert (interrupted / LOG).read_bytes() == content


def test_an_acknowledged_change_is_in_the_database_itself(folder, rows):
    with Collection(folder) as collection:
        collection.add(rows[:20])
        assert (folder / LOG).stat().st_size == 0


def test_a_reader_in_the_middle_of_a_state_neither_stops_a_writer_nor_hides_a_loss(folder, tmp_path, rows):
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        with reader.reading() as (_, store):
            writer.add(rows[:20])
            writer.remove([5])
            assert len(list(store.all_rows())) == 60
            assert (folder / LOG).stat().st_size > 0
            shutil.copytree(folder, tmp_path / "copy")
        assert len(reader) == 79
    (tmp_path / "copy" / LOG).unlink()
    with pytest.raises(CollectionFormatError, match="has lost changes"):
        Collection(tmp_path / "copy")


def test_a_change_that_was_stored_but_not_acknowledged_is_kept(folder, rows, monkeypatch):
    def die(*arguments):
        raise KeyboardInterrupt

    with Collection(folder) as collection:
        monkeypatch.setattr("os.pwrite", die)
        with pytest.raises(KeyboardInterrupt):
            collection.add(rows[:20])
        monkeypatch.undo()
    assert read_acknowledged(folder / "acknowledged") == 1
    with Collection(folder) as collection:
        assert collection.verify() == 80
    assert read_acknowledged(folder / "acknowledged") == 2


def test_a_change_that_cannot_be_acknowledged_says_that_it_is_stored(folder, rows, monkeypatch):
    def fail(*arguments):
        raise OSError(5, "Input/output error")

    with Collection(folder) as collection:
        monkeypatch.setattr("os.pwrite", fail)
        with pytest.raises(CollectionError, match="The change is stored"):
            collection.add(rows[:20])
        monkeypatch.undo()
        assert collection.verify() == 80


@pytest.mark.parametrize(("place", "length"), [(3, 1024), (515, 1024), (10, 1024), (600, 1024), (3, 600)])
def test_a_damaged_counter_alone_loses_nothing(folder, place, length):
    path = folder / "acknowledged"
    content = bytearray(path.read_bytes()[:length])
    content[place] ^= 4
    path.write_bytes(content)
    with Collection(folder) as collection:
        assert collection.verify() == 60


def test_a_counter_without_a_readable_number_is_refused(folder):
    path = folder / "acknowledged"
    path.write_bytes(b"\xff" * 1024)
    with pytest.raises(CollectionFormatError, match="lost changes cannot be noticed"):
        Collection(folder)
    path.unlink()
    with pytest.raises(CollectionFormatError, match="is missing"):
        Collection(folder, read_only=True)


def test_readers_never_take_a_change_under_way_for_a_loss(folder, rows):
    failures = []

    def read():
        try:
            with Collection(folder, read_only=True) as reader:
                while not done.is_set():
                    assert len(reader) >= 60
        except BaseException as error:
            failures.append(error)

    done = threading.Event()
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    with Collection(folder) as writer:
        for number in range(60):
            writer.add(rows[number : number + 1])
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER grow AFTER INSERT ON texts BEGIN INSERT INTO changes VALUES (1, 1); END",
        "CREATE VIEW more AS SELECT * FROM texts",
        "CREATE TABLE more (a)",
        "CREATE INDEX more ON texts (reference)",
        "DROP TABLE previews",
    ],
)
def test_a_schema_with_anything_else_in_it_or_less_is_refused(folder, statement):
    run(folder, statement)
    with pytest.raises(CollectionFormatError, match="not have the tables"):
        Collection(folder)


def test_an_endless_view_is_refused_at_once(folder):
    endless = (
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'format' AS name, i AS value FROM n"
    )
    run(folder, "DROP TABLE meta")
    run(folder, f"CREATE VIEW meta AS {endless} WHERE i < 0")
    for read_only in (True, False):
        with pytest.raises(CollectionFormatError, match="not have the tables"):
            Collection(folder, read_only=read_only)


def run(folder, statement):
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()


def test_deep_metadata_of_a_crafted_file_is_refused(folder):

    with Collection(folder) as collection, collection._session.writing() as change:
        deep = '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"
        change.store._replace_texts(np.array([3]), [None], [deep])
    with Collection(folder, read_only=True) as collection:
        with pytest.raises(CollectionFormatError, match="metadata of item 3"):
            collection.get([3])
        with pytest.raises((CollectionFormatError, CollectionError)):
            collection.search(items=[1], where={"label": 0})


def test_counters_written_in_turn_hold_the_newest_number(tmp_path):
    path = tmp_path / "acknowledged"
    create_counter(path)
    for number in np.arange(1, 8).tolist():
        acknowledge(path, number)
        assert read_acknowledged(path) == number
    assert path.stat().st_size == 1024
