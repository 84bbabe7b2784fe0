"""A receipt is stored exactly if its change is."""

import sqlite3
from contextlib import closing

import pytest

from starshl import Collection
from starshl.collection import journal
from starshl.exceptions import CollectionFormatError


def test_a_receipt_is_stored_with_its_change_and_found_after_opening_again(folder, rows):
    with Collection(folder) as collection:
        with collection.idempotent("batch 7", "60 and 61"):
            collection.add(rows[:2])
        collection.remove([0])
        assert collection.receipt("batch 7") == "60 and 61"
    with Collection(folder, read_only=True) as collection:
        assert collection.receipt("batch 7") == "60 and 61"
        assert collection.receipt("batch 8") is None
        assert collection.verify() == 61


def test_a_change_that_fails_leaves_no_receipt(folder, rows):
    with Collection(folder) as collection:
        with pytest.raises(ValueError, match="already in the collection"), collection.idempotent("again", "no"):
            collection.add(rows[:1], ids=[5])
        collection.add(rows[:1])
        assert collection.receipt("again") is None


def test_only_the_first_change_of_a_block_stores_the_receipt(folder, rows):
    with Collection(folder) as collection:
        with collection.idempotent("one", "first"):
            collection.add(rows[:1])
            with pytest.raises(KeyError):
                collection.remove([999])
        assert collection.receipt("one") == "first"


def test_the_oldest_receipts_are_forgotten(folder, rows, monkeypatch):
    monkeypatch.setattr(journal, "KEPT", 3)
    with Collection(folder) as collection:
        for number in range(5):
            with collection.idempotent(f"key {number}", str(number)):
                collection.add(rows[:1])
        assert [collection.receipt(f"key {number}") for number in range(5)] == [None, None, "2", "3", "4"]


def test_a_damaged_receipt_is_refused(folder, rows):
    with Collection(folder) as collection:
        with collection.idempotent("key", "text"):
            collection.add(rows[:1])
        with collection._session.writing() as change:
            change.store.connection.execute("UPDATE receipts SET content = 'other'")
        with pytest.raises(CollectionFormatError, match="damaged"):
            collection.receipt("key")


@pytest.mark.parametrize("key", ["", "a\nb", "ü", "k" * 513])
def test_keys_that_cannot_be_stored_are_refused(folder, key):
    with Collection(folder) as collection, pytest.raises(ValueError, match="printable ASCII"):
        collection.idempotent(key, "")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE receipts SET key = 'kez' WHERE key = 'key'",
        "UPDATE receipts SET number = 7 WHERE key = 'key'",
        "UPDATE receipts SET content = 'other' WHERE key = 'key'",
        "UPDATE receipts SET checksum = checksum + 1 WHERE key = 'key'",
        "DELETE FROM receipts WHERE key = 'key'",
        "INSERT INTO receipts SELECT 'third', number, checksum, content FROM receipts WHERE key = 'key'",
        "UPDATE entries SET journal = 'lessom'",
        "UPDATE entries SET content = 'other' WHERE number = 2",
        "DELETE FROM entries WHERE number = 2",
    ],
)
def test_verify_notices_a_receipt_or_an_entry_that_is_changed_lost_or_added(folder, rows, damage):
    with Collection(folder) as collection:
        for key in ("key", "other", "key"):
            with collection.idempotent(key, "text"), collection.journaling("lesson", "answer"):
                collection.add(rows[:1])
        assert collection.verify() == 63
    with closing(sqlite3.connect(folder / "items.sqlite")) as database, database:
        database.execute(damage)
    with Collection(folder) as collection, pytest.raises(CollectionFormatError):
        collection.verify()
