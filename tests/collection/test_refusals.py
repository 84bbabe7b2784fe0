"""What is wrong, or fails in the middle, is refused and leaves nothing half done."""

import os
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.database import Connection
from starshl.collection.store import Store
from starshl.exceptions import CollectionError, CollectionFormatError

from .states import assert_reads_like_a_new_reader, die, state_of


def nested(depth):
    """A dictionary with lists in it, so deep in all."""
    inner = 1
    for _ in range(depth - 1):
        inner = [inner]
    return {"a": inner}


def test_a_second_writer_is_refused(folder):
    with Collection(folder), pytest.raises(CollectionError, match="Another process is writing"):
        Collection(folder)
    Collection(folder).close()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda c, X: c.add(X[:2], ids=[100, 3]), ValueError, "3 is already"),
        (lambda c, X: c.add(X[:2], ids=[100, 100]), ValueError, "more than once"),
        (lambda c, X: c.add(X[:2], metadata=[{}]), ValueError, "1 dictionaries of metadata"),
        (lambda c, X: c.add(X[:1], metadata=[{"a": object()}]), ValueError, "cannot be stored"),
        (lambda c, X: c.add(X[:1], metadata=[{"a": float("nan")}]), ValueError, "cannot be stored"),
        (lambda c, X: c.add(X[:1], metadata=[{"a\0b": 1}]), ValueError, "the NUL character"),
        (lambda c, X: c.update([1], [{"a": ["b\0"]}]), ValueError, "the NUL character"),
        (lambda c, X: c.update([1], [{"a": "\\\0"}]), ValueError, "the NUL character"),
        (lambda c, X: c.add(X[:1], metadata=[{"a": [{"b": "\ud800"}]}]), ValueError, "surrogate pair"),
        (lambda c, X: c.update([1], [{"\udc00": 1}]), ValueError, "surrogate pair"),
        (lambda c, X: c.add(X[:1], labels=["\ud800"]), ValueError, "surrogate pair"),
        (lambda c, X: c.set_labels([1], np.array(["a\udfff"])), ValueError, "surrogate pair"),
        (lambda c, X: c.add(X[:1], references=["\ud800"]), ValueError, "surrogate pair"),
        (lambda c, X: c.declare_fields({"\ud800": int}), ValueError, "surrogate pair"),
        (lambda c, X: c.find({"\ud800": 1}), ValueError, "surrogate pair"),
        (lambda c, X: c.find({"name": "\ud800"}), ValueError, "surrogate pair"),
        (lambda c, X: c.find(labels=["\ud800"]), ValueError, "surrogate pair"),
        (lambda c, X: c.idempotent("key", "\ud800"), ValueError, "surrogate pair"),
        (lambda c, X: c.note("lesson", "\ud800"), ValueError, "surrogate pair"),
        (lambda c, X: c.receipt("\ud800"), ValueError, "surrogate pair"),
        (lambda c, X: c.journal("\ud800"), ValueError, "surrogate pair"),
        (lambda c, X: c.value_counts("\ud800"), ValueError, "is not"),
        (lambda c, X: c.find_duplicates(X[:1], references=["\ud800"]), ValueError, "surrogate pair"),
        (lambda c, X: c.add(X[:1], references=[3]), ValueError, "references must hold 1 strings"),
        (lambda c, X: c.add(), ValueError, "either X or codes"),
        (lambda c, X: c.add(X[:1, :5]), ValueError, "5 features"),
        (lambda c, X: c.remove([1, 777]), KeyError, r"777 is not.*nothing was removed"),
        (lambda c, X: c.update([777], [{}]), KeyError, "777 is not"),
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
    with pytest.raises(CollectionError, match="was closed"):
        use(collection, rows)


def test_a_full_disk_loses_nothing_and_says_so(folder, rows):
    with Collection(folder) as collection:
        before = state_of(collection)
        connection = collection._session._writer.connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(CollectionError, match=r"disk is full.*Free some space.*Nothing"):
            collection.add(np.repeat(rows, 40, axis=0), metadata=[{"text": "x" * 500}] * 2400)
        assert state_of(collection) == before
        assert collection.verify() == 60


def test_an_error_in_the_middle_of_a_batch_leaves_nothing_of_it(folder, rows, monkeypatch):
    with Collection(folder) as collection:
        before = state_of(collection)
        monkeypatch.setattr(Store, "set_meta", die)
        with pytest.raises(KeyboardInterrupt):
            collection.add(rows)
        monkeypatch.undo()
        assert state_of(collection) == before


@pytest.mark.parametrize("step", [(os, "pwrite"), (Connection, "checkpoint")], ids=["acknowledge", "checkpoint"])
def test_a_change_interrupted_once_it_is_stored_is_not_forgotten(folder, rows, monkeypatch, step):
    with Collection(folder) as collection:
        monkeypatch.setattr(*step, die)
        with pytest.raises(KeyboardInterrupt):
            collection.upsert(rows[50:51], ids=[0])
        monkeypatch.undo()
        collection.upsert(rows[51:52], ids=[1])
        assert collection.codes([0, 1]) == collection.codes([50, 51])
        assert_reads_like_a_new_reader(folder, collection, rows)


def test_an_interrupted_removal_is_not_forgotten(folder, rows, monkeypatch):
    with Collection(folder) as collection:
        monkeypatch.setattr(Connection, "checkpoint", die)
        with pytest.raises(KeyboardInterrupt):
            collection.remove([59])
        monkeypatch.undo()
        assert collection.add(rows[:1]).tolist() == [59]
        assert_reads_like_a_new_reader(folder, collection, rows)


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
        with pytest.raises(CollectionError, match=r"failing.*was not made"):
            Collection.create(tmp_path / "items", hasher)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (2, r"format 2; .*Install a newer starshl"),
        (0, r"format 0; .*Restore"),
        (-1, "format -1"),
    ],
)
def test_another_format_is_refused(folder, found, message):
    connection = sqlite3.connect(folder / "items.sqlite")
    connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", [found])
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


def test_a_rollback_journal_is_refused_before_sqlite_obeys_it(folder, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    (folder / "items.sqlite-journal").write_bytes(hot_journal(folder / "items.sqlite", str(victim)))
    for read_only in (True, False):
        with pytest.raises(CollectionFormatError, match="rollback journal"):
            Collection(folder, read_only=read_only)
    assert victim.read_text() == "precious"


def test_a_database_in_another_mode_is_refused_and_stays(folder):
    with closing(sqlite3.connect(folder / "items.sqlite")) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    before = (folder / "items.sqlite").read_bytes()
    for read_only in (True, False):
        with pytest.raises(CollectionFormatError, match="WAL"):
            Collection(folder, read_only=read_only)
    assert (folder / "items.sqlite").read_bytes() == before


def hot_journal(database, super_journal):
    """A journal that makes SQLite delete a file, the super-journal that it names."""
    page = int.from_bytes(database.read_bytes()[16:18], "big")
    magic, name = bytes.fromhex("d9d505f920a163d7"), super_journal.encode()
    header = magic + struct.pack(">5I", 0, 0, database.stat().st_size // page, 512, page)
    lock_page = 0x40000000 // page + 1
    return (
        header.ljust(512, b"\0")
        + struct.pack(">I", lock_page)
        + name
        + struct.pack(">2I", len(name), sum(name))
        + magic
    )


OWN_NAMES = ["vectors-0.bin", "writer.lock", "acknowledged", "items.sqlite", "items.sqlite-wal", "items.sqlite-shm"]


@pytest.mark.parametrize("name", [*OWN_NAMES, "hasher.draft", "embedder-0123456789abcdef.star", "MODEL", "SPACE"])
@pytest.mark.parametrize("what", ["link", "dangling link"])
def test_links_among_its_own_files_are_refused_and_what_they_point_at_stays(kept, tmp_path, name, what):
    patterns = {"MODEL": "hasher-*.star", "SPACE": "space-*.star"}
    path = next(kept.glob(patterns[name])) if name in patterns else kept / name
    victim = tmp_path / "victim"
    content = (path.read_bytes() if path.exists() else b"") + b"precious" * 10_000
    if what == "link":
        victim.write_bytes(content)
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    for read_only in (True, False):
        with pytest.raises((CollectionFormatError, FileNotFoundError)) as refused:
            Collection(kept, read_only=read_only)
        assert what == "dangling link" or "is a link" in str(refused.value)
    assert victim.read_bytes() == content if what == "link" else not victim.exists()


@pytest.mark.parametrize("name", ["vectors-0.bin", "items.sqlite-wal", "items.sqlite-shm", "writer.lock"])
def test_a_file_with_another_name_elsewhere_is_refused_and_stays(kept, tmp_path, name):
    path, victim = kept / name, tmp_path / "victim"
    content = (path.read_bytes() if path.exists() else b"") + b"precious" * 10_000
    victim.write_bytes(content)
    path.unlink(missing_ok=True)
    os.link(victim, path)
    for read_only in (True, False):
        with pytest.raises(CollectionFormatError, match="hard link"):
            Collection(kept, read_only=read_only)
    assert victim.read_bytes() == content


@pytest.mark.parametrize("name", ["Vectors-0.bin", "ITEMS.SQLITE-WAL"])
def test_a_link_is_refused_however_its_name_is_written(kept, tmp_path, name):
    (tmp_path / "victim").write_text("precious")
    (kept / name).symlink_to(tmp_path / "victim")
    with pytest.raises(CollectionFormatError, match="is a link"):
        Collection(kept)


def test_an_entry_whose_name_is_no_text_is_refused(folder):
    with closing(sqlite3.connect(folder / "items.sqlite")) as database, database:
        database.execute("UPDATE meta SET name = CAST('kind' AS BLOB) WHERE name = 'kind'")
    with pytest.raises(CollectionFormatError, match="meta entries"):
        Collection(folder)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize("name", ["vectors-1.bin", "items.sqlite-wal", "hasher-0123456789abcdef.star"])
def test_a_folder_or_a_pipe_where_a_file_belongs_is_refused(kept, make, name):
    make(kept / name)
    with pytest.raises(CollectionFormatError, match="a file of its own"):
        Collection(kept)


def test_the_folder_itself_may_be_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    with Collection(tmp_path / "link") as collection:
        assert collection.verify() == 60


def test_a_read_that_was_stopped_leaves_nothing_that_shows_an_old_state(folder, rows):
    with Collection(folder) as collection:
        unfinished = []
        with pytest.raises(KeyboardInterrupt):
            stop_a_read(collection, unfinished)
        collection.set_labels([1], ["a"])
        assert collection.get([1])[0].label == "a"
        assert len(collection.search(rows[:1], k=2)[0]) == 2


def stop_a_read(collection, unfinished):
    with collection.reading() as (_, store):
        unfinished.append(store.all_rows())
        next(unfinished[0])
        raise KeyboardInterrupt


def test_thirty_reads_that_ctrl_c_stops_leave_a_collection_that_reads_and_writes(tmp_path):
    script = Path(__file__).with_name("interrupted_reads.py")
    ended = subprocess.run(
        [sys.executable, script, tmp_path / "items", "30"], capture_output=True, text=True, check=False
    )
    assert ended.stdout.split() == ["30", "200", "30"], ended.stderr


def test_an_old_state_of_one_connection_is_not_taken_for_lost_changes(folder):
    with Collection(folder) as collection:
        with collection.reading() as (_, store):
            unfinished = store.connection._sqlite.execute("SELECT * FROM texts")
            unfinished.fetchone()
        collection.set_labels([1], ["a"])
        assert collection.get([1])[0].label == "a"
        del unfinished


def test_a_forked_child_reads_but_does_not_write(folder, rows):
    with Collection(folder) as collection:
        child = os.fork()
        if child == 0:
            try:
                found = [hit.id for hit in collection.search(rows[:1], k=1)[0]]
                with pytest.raises(CollectionError, match="forked"):
                    collection.add(rows[:1])
                with pytest.raises(CollectionError, match="forked"):
                    collection.compact()
                os._exit(0 if found == [0] else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        collection.add(rows[:1])
        assert collection.verify() == 61
