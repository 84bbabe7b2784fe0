"""Death at any instant, and files torn by others."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.store import Store
from starshl.exceptions import CollectionError, CollectionFormatError
from starshl.hashers.baselines import LSHash

CAMPAIGNS = Path(__file__).parents[1] / "campaigns"


def run_campaign(name, *options):
    command = [sys.executable, str(CAMPAIGNS / name), *options]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


def test_acknowledged_changes_survive_kill():
    assert run_campaign("killed_writers.py", "--cycles", "6").startswith("6 kills, ")


def test_damaged_collections_lose_nothing_silently():
    assert run_campaign("damaged_collections.py", "--files", "150").startswith("150 damaged collections, no violation")


@pytest.mark.slow
def test_acknowledged_changes_survive_two_hundred_kills():
    assert run_campaign("killed_writers.py", "--cycles", "200", "--seed", "1").startswith("200 kills, ")


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
        old, new = next(folder.glob("hasher-*.star")).name, []

        def set_meta(store, name, value):
            if name == "model":
                new.append(value)
                assert any(number == folder.stat().st_ino and value in names for number, names in flushed)
            real_set_meta(store, name, value)

        real_set_meta = Store.set_meta
        monkeypatch.setattr(Store, "set_meta", set_meta)
        collection.replace_hasher(other, np.arange(60), rows)
        assert len(new) == 1
        assert new != [old]


@pytest.mark.parametrize("step", ["content_name", "sync_folder"])
def test_what_a_failed_change_of_hasher_leaves_is_removed_by_the_next_writer(folder, rows, monkeypatch, step):
    models = list(folder.glob("*hasher*"))
    other = LSHash(24, random_state=1).fit(rows)
    with Collection(folder) as collection:
        expected = collection.rows()
        monkeypatch.setattr(f"starshl.collection.folder.{step}", lambda *arguments: 1 / 0)
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


def test_a_cut_file_is_refused_unless_only_zeros_are_gone(folder, tmp_path):
    expected, content = read_everything(folder), (folder / "items.sqlite").read_bytes()
    for length in np.linspace(0, len(content) - 1, 15).astype(int):
        cut = copy_with(folder, tmp_path / "cut", content[:length])
        if content[length:].strip(b"\0"):
            with pytest.raises((CollectionFormatError, CollectionError)):
                read_everything(cut)
        else:
            # SQLite reads zeros behind the end of its last page.
            assert read_everything(cut) == expected


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
