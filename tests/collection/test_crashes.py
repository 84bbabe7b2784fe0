"""Death at any instant, and files torn by others."""

import multiprocessing
import os
import shutil
import stat
import time

import numpy as np
import pytest

from starshl.baselines import LSHash
from starshl.codes import BinaryCodes
from starshl.collection import Collection
from starshl.exceptions import CollectionError, CollectionFormatError

BATCH = 40


def write_until_killed(folder, acknowledged):
    """Add batches, replace a part of one and remove another, and tell the parent after each return."""
    rng = np.random.default_rng(os.getpid())
    with Collection(folder) as collection:
        batch = 1 + max((row.id for row in collection.rows()), default=-1) // BATCH
        while True:
            codes = BinaryCodes(rng.integers(0, 256, (BATCH, 3), dtype=np.uint8), 24)
            ids = np.arange(batch * BATCH, (batch + 1) * BATCH)
            collection.add(codes=codes, ids=ids, metadata=[{"batch": batch, "round": 0}] * BATCH)
            os.write(acknowledged, f"{batch} 0\n".encode())
            collection.upsert(codes=codes, ids=ids, metadata=[{"batch": batch, "round": 1}] * BATCH)
            os.write(acknowledged, f"{batch} 1\n".encode())
            batch += 1


def run_and_kill(folder, seconds):
    """Return what was acknowledged before the kill: the newest round of each batch."""
    read_end, write_end = os.pipe()
    process = multiprocessing.get_context("fork").Process(target=write_until_killed, args=(folder, write_end))
    process.start()
    os.close(write_end)
    time.sleep(seconds)
    process.kill()
    process.join()
    with os.fdopen(read_end) as pipe:
        pairs = [line.split() for line in pipe.read().splitlines()]
    return {int(batch): int(written) for batch, written in pairs}


def check_batches(folder, acknowledged):
    """Every acknowledged change is there; every batch is there completely and in one round. Return how many."""
    with Collection(folder) as collection:
        n_items = collection.verify()
        rounds = {}
        for item in collection.get(collection.ids):
            rounds.setdefault(item.metadata["batch"], []).append(item.metadata["round"])
    assert n_items == BATCH * len(rounds)
    assert all(len(found) == BATCH and len(set(found)) == 1 for found in rounds.values())
    for batch, written in acknowledged.items():
        assert rounds[batch][0] >= written
    return len(rounds)


def kill_cycles(folder, hasher, n_cycles):
    Collection.create(folder, hasher).close()
    rng = np.random.default_rng(0)
    acknowledged, n_batches = {}, 0
    for _ in range(n_cycles):
        now = run_and_kill(folder, 0.02 + 0.15 * rng.random())
        acknowledged |= now
        n_before, n_batches = n_batches, check_batches(folder, acknowledged)
        # A kill may fall between storing a batch and telling of it, in every cycle again.
        assert n_batches <= n_before + len(now) + 1
    return acknowledged


def test_acknowledged_batches_survive_kill(tmp_path, hasher):
    assert len(kill_cycles(tmp_path / "items", hasher, 6)) > 0


@pytest.mark.slow
def test_acknowledged_batches_survive_two_hundred_kills(tmp_path, hasher):
    assert len(kill_cycles(tmp_path / "items", hasher, 200)) > 100


@pytest.fixture
def flushed(monkeypatch):
    """Every folder that is flushed to the disk, by its number, with the names that it has then."""
    seen = []
    real_fsync = os.fsync

    def fsync(handle):
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            seen.append((status.st_ino, os.listdir(handle)))
        real_fsync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


def test_a_new_folder_has_its_name_on_the_disk(tmp_path, hasher, flushed):
    Collection.create(tmp_path / "items", hasher).close()
    assert (tmp_path.stat().st_ino, ["items"]) in flushed
    names = [set(found) for number, found in flushed if number == (tmp_path / "items").stat().st_ino]
    assert any("items.sqlite" in found for found in names)


def test_a_new_model_has_its_name_on_the_disk_before_the_database_knows_it(folder, rows, flushed, monkeypatch):
    other = LSHash(24, random_state=1).fit(rows)
    with Collection(folder) as collection:
        old = collection._model

        def set_fact(name, value):
            if name == "model":
                assert value != old
                assert any(number == folder.stat().st_ino and value in found for number, found in flushed)
            real_set_fact(name, value)

        real_set_fact = collection._store.set_fact
        monkeypatch.setattr(collection._store, "set_fact", set_fact)
        collection.replace_hasher(other, np.arange(60), rows)
        assert collection._model != old


@pytest.mark.parametrize("step", ["_name_of", "sync_folder"])
def test_what_a_failed_change_of_hasher_leaves_is_removed_by_the_next_writer(folder, rows, monkeypatch, step):
    models = list(folder.glob("*hasher*"))
    other = LSHash(24, random_state=1).fit(rows)
    with Collection(folder) as collection:
        expected = collection.rows()
        monkeypatch.setattr(f"starshl.collection.folder.{step}", lambda path: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            collection.replace_hasher(other, np.arange(60), rows)
        monkeypatch.undo()
        assert collection.rows() == expected
    (folder / ".hasher.draft.x1y2.partial").write_bytes(b"half")
    Collection(folder, read_only=True).close()
    assert len(list(folder.glob("*hasher*"))) == len(models) + 2
    with Collection(folder) as collection:
        assert collection.rows() == expected
    assert list(folder.glob("*hasher*")) == models


def read_everything(folder):
    with Collection(folder, read_only=True) as collection:
        items = collection.get(collection.ids)
        hits = collection.search(items=collection.ids[:5], k=20)
        cheap = collection.search(items=[0], k=60, where={"price": {"<": 30}})
        return items, hits, cheap


def copy_with(folder, target, content):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    (target / "items.sqlite").write_bytes(content)
    return target


def test_a_cut_file_is_refused(folder, tmp_path):
    content = (folder / "items.sqlite").read_bytes()
    for length in np.linspace(0, len(content) - 1, 15).astype(int):
        with pytest.raises((CollectionFormatError, CollectionError)):
            read_everything(copy_with(folder, tmp_path / "cut", content[:length]))


def test_a_flipped_byte_is_refused_or_harmless(folder, tmp_path):
    expected = read_everything(folder)
    content = (folder / "items.sqlite").read_bytes()
    rng = np.random.default_rng(0)
    n_refused = 0
    for place in rng.integers(len(content), size=150):
        broken = bytearray(content)
        broken[place] ^= 1 << int(rng.integers(8))
        try:
            found = read_everything(copy_with(folder, tmp_path / "flipped", broken))
        except (CollectionFormatError, CollectionError):
            n_refused += 1
        else:
            assert found == expected
    # About half of the pages of this small file are unused space, where a flip changes nothing.
    assert n_refused > 20
