"""Readers who may not write to the folder, and so cannot lock: they are told the truth or that they must try again."""

import multiprocessing
import os
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.database import ChangedWhileRead
from starshl.collection.store import Store
from starshl.exceptions import CollectionError
from starshl.hashers.baselines import LSHash

NOBODY = 65534


@pytest.fixture
def no_lock_files(folder, monkeypatch):
    """Let SQLite fail as it does where a reader may not make the files that locking needs."""
    real_connect, log = sqlite3.connect, folder / "items.sqlite-wal"

    def connect(database, **settings):
        has_log = log.exists() and log.stat().st_size > 0
        if "mode=ro&immutable=0" in database and not has_log:
            raise sqlite3.OperationalError("unable to open database file")
        return real_connect(database, **settings)

    monkeypatch.setattr(sqlite3, "connect", connect)


def reads_without_locks(reader):
    return reader._session._idle[0].connection._seen is not None


def assert_reads_the_present(folder, reader, rows):
    with Collection(folder, read_only=True) as fresh:
        assert reader.rows() == fresh.rows()
        assert reader.codes(reader.ids) == fresh.codes(fresh.ids)
        assert reader.search(rows[:5], k=7) == fresh.search(rows[:5], k=7)


def test_a_reader_without_locks_follows_the_writer(folder, rows, no_lock_files):
    with Collection(folder, read_only=True) as reader:
        assert reads_without_locks(reader)
        with Collection(folder) as writer:
            writer.upsert(rows[20:40], ids=np.arange(20))
            assert_reads_the_present(folder, reader, rows)
            writer.remove(np.arange(10))
            assert_reads_the_present(folder, reader, rows)
        assert reader.verify() == 50


def test_a_reader_without_locks_notices_what_was_written_in_between(folder, rows, no_lock_files):
    with Collection(folder, read_only=True) as reader:
        for first in range(3):
            with Collection(folder) as writer:
                writer.remove([first])
                writer.compact()
            assert reads_without_locks(reader)
            assert len(reader) == 59 - first
            assert reader.verify() == 59 - first
            assert_reads_the_present(folder, reader, rows)


def test_a_reader_without_locks_refuses_what_is_written_meanwhile(folder, rows, no_lock_files):
    with Collection(folder, read_only=True) as reader:
        before = reader._session._state
        with pytest.raises(ChangedWhileRead, match="Try again"):
            read_while_written(folder, reader, rows)
        assert reader._session._state is before
        assert_reads_the_present(folder, reader, rows)


def read_while_written(folder, reader, rows):
    with reader.reading():
        with Collection(folder) as writer:
            writer.upsert(rows[20:40], ids=np.arange(20))
        raise KeyError("a row that a torn page lacks")


def test_what_a_reader_without_locks_read_while_it_was_written_is_not_kept(folder, rows, no_lock_files, monkeypatch):
    real_read = Store.read_codes

    def write_meanwhile(store):
        found = real_read(store)
        monkeypatch.undo()
        with Collection(folder) as writer:
            writer.upsert(rows[20:40], ids=np.arange(20))
        return found

    with Collection(folder, read_only=True) as reader:
        with Collection(folder) as writer:
            writer.replace_hasher(LSHash(24, random_state=1).fit(rows), np.arange(60), rows)
        before = reader._session._state
        monkeypatch.setattr(Store, "read_codes", write_meanwhile)
        with pytest.raises(ChangedWhileRead):
            len(reader)
        assert reader._session._state is before
        assert_reads_the_present(folder, reader, rows)


def test_a_reader_whose_collection_is_gone_is_told(folder, no_lock_files):
    with Collection(folder, read_only=True) as reader:
        (folder / "items.sqlite").rename(folder / "elsewhere")
        with pytest.raises(CollectionError, match="can no longer be read"):
            len(reader)
        (folder / "elsewhere").rename(folder / "items.sqlite")
        assert len(reader) == 60


def read_as_nobody(folder, rows, channel):
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    with Collection(folder, read_only=True) as reader:
        channel.send(len(reader))
        while channel.recv() == "read":
            channel.send((len(reader), [item.metadata for item in reader.get(reader.ids)], reader.verify()))


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_another_user_reads_what_the_owner_writes(hasher, rows):
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        folder = Path(parent) / "items"
        with Collection.create(folder, hasher) as owner:
            owner.add(rows, metadata=[{"round": 0, "text": "x" * 200}] * 60)
            owner.verify()
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=read_as_nobody, args=(folder, rows, there))
        process.start()
        try:
            assert receive(here) == 60
            for n_round in range(1, 4):
                with Collection(folder) as owner:
                    owner.upsert(rows[:40], ids=np.arange(40), metadata=[{"round": n_round}] * 40)
                    owner.remove(np.setdiff1d(owner.ids, np.arange(40)))
                    owner.compact()
                here.send("read")
                assert receive(here) == (40, [{"round": n_round}] * 40, 40)
            here.send("stop")
            process.join(30)
            assert process.exitcode == 0
        finally:
            process.kill()
            process.join()


def receive(channel):
    assert channel.poll(60), "the reader has died"
    return channel.recv()
