import sqlite3
from contextlib import closing

import pytest

from starshl import Collection
from starshl.exceptions import CollectionFormatError


def test_a_journal_keeps_its_entries_in_order(folder):
    with Collection(folder) as collection:
        for number in range(12):
            collection.note("diary", f"day {number}")
        collection.note("diary_2", "another one")
    with Collection(folder, read_only=True) as collection:
        assert collection.journal("diary") == [f"day {number}" for number in range(12)]
        assert collection.journal("diary", after=10) == ["day 10", "day 11"]
        assert collection.journal("unheard_of") == []
        assert collection.verify() == 60


def test_an_entry_is_stored_with_its_change_or_not_at_all(folder):
    with Collection(folder) as collection:
        with collection.journaling("diary", "labels"):
            collection.set_labels([0], ["a"])
        with collection.journaling("diary", "never"), pytest.raises(KeyError):
            collection.set_labels([999], ["a"])
        collection.set_labels([1], ["a"])
        assert collection.journal("diary") == ["labels"]


def test_a_damaged_entry_is_refused(folder):
    with Collection(folder) as collection:
        collection.note("diary", "monday")
        collection.note("diary", "tuesday")
    with closing(sqlite3.connect(folder / "items.sqlite")) as database:
        database.execute("DELETE FROM entries WHERE journal = 'diary' AND number = 1")
        database.commit()
    with Collection(folder) as collection, pytest.raises(CollectionFormatError, match=r"entry 1 of.*'diary'"):
        collection.journal("diary")


@pytest.mark.parametrize(("name", "text"), [("", "x"), ("A", "x"), ("a/b", "x"), ("diary", "\0")])
def test_impossible_entries_are_refused(folder, name, text):
    with Collection(folder) as collection, pytest.raises(ValueError, match=r"journal"):
        collection.note(name, text)
