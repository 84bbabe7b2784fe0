"""A searcher answers what its collection answers, however many ask at the same time."""

import threading

import numpy as np
import pytest

from starshl import Collection
from starshl.collection import SearchOptions
from starshl.exceptions import UnknownIdError
from starshl.hashers.baselines import LSHash
from starshl.service import Searcher, Service
from starshl.service.encoding import EncodedRows
from starshl.service.errors import KeyReusedError, NotWritableError
from starshl.service.writes import NewItems, WriteKey


@pytest.fixture
def searcher(folder):
    opened = Searcher(folder)
    yield opened
    opened.close()


def test_searches_of_many_threads_give_what_the_collection_gives(searcher, template, rows):
    options = [
        SearchOptions(k=3),
        SearchOptions(k=5, rescore=False),
        SearchOptions.of(4, where={"price": {"<": 30}}),
        SearchOptions.of(4, labels=["a", "b"]),
        SearchOptions(k=60, radius=5),
        SearchOptions(k=2, metric="cosine", oversample=3),
    ]
    with Collection(template, read_only=True) as collection:
        expected = [[collection.answer(each, row[None])[0] for row in rows[:15]] for each in options]
    futures = [[searcher.search([row], options=each) for row in rows[:15]] for each in options]
    for found, wanted in zip(futures, expected, strict=True):
        assert [future.result(60)[0] for future in found] == wanted


def test_a_search_by_radius_counts_what_it_leaves_out(searcher):
    (found,) = searcher.search(items=[3], options=SearchOptions(k=2, radius=24)).result(60)
    assert (len(found.hits), found.total, found.hits[0].id) == (2, 60, 3)


def test_stored_items_may_be_asked_for_twice_and_explained(searcher):
    first, second = searcher.search(items=[7, 7], options=SearchOptions(k=2, explain=True)).result(60)
    assert first == second
    assert first.hits[0].explanation.distance == 0


def test_a_search_for_an_unknown_item_fails_alone(searcher):
    good, bad = searcher.search(items=[1]), searcher.search(items=[999])
    assert good.result(60)[0].hits[0].id == 1
    with pytest.raises(UnknownIdError, match="999"):
        bad.result(60)


def test_codes_are_those_of_the_hasher(searcher, rows):
    with searcher.opened() as collection:
        expected = collection.hasher.encode(rows[:4])
    assert searcher.encode(rows[:4].tolist()).result(60) == expected


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0] * 8, [1.0] * 7], r"(vectors|items)\[1\] has 7 numbers"),
        ([[float("nan")] * 8], "not finite"),
        ([[1e200] * 8], "above 1e"),
    ],
)
def test_vectors_that_cannot_be_encoded_are_refused_before_they_meet_others(searcher, vectors, message):
    with pytest.raises(ValueError, match=message):
        searcher.search(vectors)
    with pytest.raises(ValueError, match=message):
        searcher.add(NewItems(vectors))


def test_a_write_with_a_key_is_stored_once_also_after_opening_again(folder, rows):
    items, key = NewItems(rows[:2].tolist()), WriteKey("k", "digest")
    first = Searcher(folder)
    assert (first.add(items, key).result(60).ids, first.add(items, key).result(60).repeated) == ([60, 61], True)
    first.close()
    second = Searcher(folder)
    again = second.add(items, key).result(60)
    assert (again.ids, again.repeated, len(second)) == ([60, 61], True, 62)
    with pytest.raises(KeyReusedError):
        second.writer.remove([60], WriteKey("k", "another digest")).result(60)
    second.close()


def test_a_write_that_failed_may_be_sent_again_with_its_key(searcher, rows):
    key = WriteKey("k", "digest")
    with pytest.raises(UnknownIdError):
        searcher.writer.remove([100], key).result(60)
    searcher.add(NewItems(rows[:1].tolist(), ids=[100])).result(60)
    assert searcher.writer.remove([100], key).result(60).repeated is False


def test_items_encoded_before_the_hasher_was_replaced_are_encoded_again(searcher, rows):
    """The codes of the old hasher have the same length, so nothing else would notice."""
    other = LSHash(24, random_state=9).fit(rows)
    with searcher.opened() as collection:
        stale = EncodedRows.for_storage(collection.hasher, rows[:1])
    searcher.writer.replace_hasher(other).result(60)
    searcher.writer.put(NewItems(rows[:1].tolist()), rows[:1], stale, None, replace=False).result(60)
    with searcher.opened() as collection:
        assert collection.codes([60]) == collection.hasher.encode_database(rows[:1])
        assert collection.codes([60]) == collection.codes([0])
        assert collection.codes([60]) != stale.codes


def test_items_know_which_hasher_made_their_codes(searcher, rows):
    for write, items in ((searcher.add, NewItems(rows[:2])), (searcher.upsert, NewItems(rows[2:4], ids=[0, 1]))):
        stored = searcher.get(write(items).result(60).ids)
        with searcher.opened() as collection:
            assert [item.model_digest for item in stored] == [collection.model_digest] * 2


def test_every_write_of_many_threads_gets_its_own_ids(searcher, rows):
    written = []

    def add():
        written.extend(searcher.add(NewItems(rows[:3].tolist())).result(60).ids)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written) == list(range(60, 84))


def test_items_are_listed_in_pages(searcher):
    searcher.writer.remove([2]).result(60)
    assert [item.id for item in searcher.list_items(limit=3)[0]] == [0, 1, 3]
    assert [item.id for item in searcher.list_items(after=57, limit=3)[0]] == [58, 59]


def test_a_collection_served_for_reading_takes_no_changes(folder, rows):
    with Collection(folder):  # another process could write meanwhile
        reader = Searcher(folder, read_only=True)
        with pytest.raises(NotWritableError):
            reader.add(NewItems(rows[:1].tolist()))
        with pytest.raises(NotWritableError):
            reader.writer.remove([1])
        assert reader.search(rows[:1].tolist()).result(60)[0].hits[0].id == 0
        reader.close()


def test_warming_up_changes_nothing_and_a_failure_does_no_harm(folder, monkeypatch, caplog):
    service = Service([folder])
    service.warm_up()
    assert len(service.searcher("things")) == 60
    assert not caplog.records
    monkeypatch.setattr(Searcher, "encode", lambda *_: 1 / 0)
    service.warm_up()
    assert "could not be warmed up" in caplog.text
    service.close()


def test_a_reader_follows_a_hasher_that_another_process_replaces(folder, rows):
    reader = Searcher(folder, read_only=True)
    with Collection(folder) as collection:
        narrow = rows[:, :5]
        collection.replace_hasher(LSHash(16, random_state=0).fit(narrow), collection.ids, narrow)
    assert reader.search(narrow[:1].tolist()).result(60)[0].hits[0].id == 0
    with pytest.raises(ValueError, match="have 5"):
        reader.search(rows[:1].tolist())
    reader.close()


def test_two_collections_of_one_name_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="Two of the folders"):
        Service([folder, tmp_path / "other" / "things"])


def test_closing_finishes_the_changes_that_were_accepted(folder, rows):
    searcher = Searcher(folder)
    futures = [searcher.add(NewItems(rows[:1].tolist())) for _ in range(20)]
    searcher.close()
    assert sorted(future.result(0).ids[0] for future in futures) == list(range(60, 80))
    with Collection(folder, read_only=True) as collection:
        assert np.array_equal(collection.ids, np.arange(80))
