"""What is derived from items is made anew from them."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from starshl import Collection, StarRidge
from starshl.exceptions import CollectionFormatError, CollectionInUseError, MissingCollectionError

ROWS = np.random.default_rng(0).standard_normal((60, 6))
LABELS = ["ab"[number % 2] for number in range(60)]
DAMAGE = {
    "a changed log": "UPDATE changes SET id = id + 1",
    "a lost log": "DELETE FROM changes",
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "items"
    hasher = StarRidge(8, random_state=0).fit(ROWS, LABELS)
    with Collection.create(folder, hasher, vectors="float16", fields={"page": int}) as collection:
        collection.add(ROWS, labels=[*LABELS[:40], *[None] * 20], metadata=[{"page": page} for page in range(60)])
        collection.remove([7])
    return folder


def change(folder, statement):
    with closing(sqlite3.connect(folder / "items.sqlite")) as database, database:
        database.execute(statement)


def contents(folder):
    with Collection(folder) as collection:
        collection.verify()
        found = collection.search(ROWS[:3], k=9), collection.search(ROWS[:3], k=9, where={"page": {"<": 30}})
        return collection.rows(), found, collection.labels(), collection.value_counts("page")


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_derived_part_says_so_and_can_be_rebuilt(folder, name):
    expected = contents(folder)
    change(folder, DAMAGE[name])
    with pytest.raises(CollectionFormatError, match="starshl index rebuild"):
        contents(folder)
    assert Collection.rebuild(folder) == 59
    assert contents(folder) == expected


def test_a_damaged_item_is_not_rebuilt(folder):
    change(folder, "UPDATE blocks SET content = zeroblob(length(content)) WHERE name = 'classes'")
    change(folder, "DELETE FROM changes")
    before = (folder / "items.sqlite").read_bytes()
    with pytest.raises(CollectionFormatError, match="a block of 'classes' that cannot be read"):
        Collection.rebuild(folder)
    assert (folder / "items.sqlite").read_bytes() == before


def test_a_collection_in_use_or_none_at_all_is_not_rebuilt(folder, tmp_path):
    with Collection(folder), pytest.raises(CollectionInUseError):
        Collection.rebuild(folder)
    with pytest.raises(MissingCollectionError):
        Collection.rebuild(tmp_path / "nothing")


def test_a_reader_follows_a_rebuilt_collection(folder):
    with Collection(folder, read_only=True) as reader:
        before = reader.search(ROWS[:2], k=5)
        Collection.rebuild(folder)
        assert reader.search(ROWS[:2], k=5) == before
        with Collection(folder) as writer:
            writer.add(ROWS[:1])
        assert len(reader) == 60
