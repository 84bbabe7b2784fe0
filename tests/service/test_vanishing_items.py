"""Items that others remove, and snapshots that others make, while a request is answered."""

import re
import threading

import pytest

from starshl import Collection
from starshl.index import FlatIndex
from starshl.service import Service
from starshl.service.errors import ConflictError

from .asking import change, lesson, page

THINGS = "/collections/things"


def shown(found):
    """Return the numbers of the items on a page."""
    assert found.status_code == 200
    return set(map(int, re.findall(r"\b(\d+)\.png", found.text)))


@pytest.fixture
def searcher(ask):
    return ask.app.state.service.searcher("things")


def vanishing(searcher, monkeypatch):
    """Remove the first of several items right before they are read; return a list that then has its id."""
    get, gone = Collection.get, []

    def after_a_removal(self, ids):
        if not gone and len(ids) > 1:
            gone.append(int(ids[0]))
            searcher.writer.remove(gone).result(60)
        return get(self, ids)

    monkeypatch.setattr(Collection, "get", after_a_removal)
    return gone


def removing_before_preview(searcher, monkeypatch, *, keep=()):
    """Remove the first item whose picture is asked for, unless it is to be kept; return a list that has its id then."""
    preview, gone = Collection.preview, []

    def after_a_removal(self, item):
        if not gone and item not in keep:
            gone.append(item)
            searcher.writer.remove(gone).result(60)
        return preview(self, item)

    monkeypatch.setattr(Collection, "preview", after_a_removal)
    return gone


def test_an_item_that_is_removed_between_a_search_and_its_cards_is_left_out(ask, searcher, monkeypatch):
    gone = removing_before_preview(searcher, monkeypatch, keep=[3])
    numbers = shown(page(ask, "/explore/things?item=3&part=neighbors"))
    assert (gone[0] in numbers, len(numbers)) == (False, 10)  # the query and nine others


def test_an_item_that_is_removed_before_it_is_compared_is_named(ask, searcher, monkeypatch):
    get, gone = Collection.get, []

    def after_a_removal(self, ids):
        if not gone and len(ids) == 1 and ids[0] != 3:
            gone.append(int(ids[0]))
            searcher.writer.remove(gone).result(60)
        return get(self, ids)

    monkeypatch.setattr(Collection, "get", after_a_removal)
    assert page(ask, "/explore/things?item=3&hit=7").status_code == 404
    assert gone


def test_a_query_that_is_removed_while_it_is_read_is_not_there(ask, searcher, monkeypatch):
    gone = removing_before_preview(searcher, monkeypatch)
    assert page(ask, "/explore/things?item=3").status_code == 404
    assert gone == [3]


def test_first_items_items_to_browse_and_cards_of_the_map_leave_out_what_is_gone(ask, searcher, monkeypatch):
    gone = vanishing(searcher, monkeypatch)
    for path in ("/", "/explore/things", "/explore/things/cards?ids=3,4,5"):
        gone.clear()
        numbers = shown(page(ask, path))
        assert (gone[0] in numbers, len(numbers) > 1) == (False, True)


def test_a_lesson_whose_items_vanish_while_it_is_shown_is_prepared_again(ask, searcher, monkeypatch):
    lesson(ask)
    assert change(ask, "answer", range(10, 20)).status_code == 200
    gone = vanishing(searcher, monkeypatch)
    answered = change(ask, "answer", [3], "a")
    assert gone
    assert (answered.status_code, "Reload the page" in answered.json()["detail"]) == (409, True)


def test_hits_that_vanish_are_explained_as_they_were_found(ask, searcher, rows, monkeypatch):
    search, gone = FlatIndex.search, []

    def before_a_removal(self, *query, **options):
        found = search(self, *query, **options)
        gone.append(int(found.ids[0, 0]))
        searcher.writer.remove(gone).result(60)
        return found

    monkeypatch.setattr(FlatIndex, "search", before_a_removal)
    body = {"vectors": rows[:1].tolist(), "k": 3, "explain": True}
    (found,) = ask("POST", f"{THINGS}/search", json=body).json()["results"]
    assert [hit["explanation"]["id"] for hit in found["hits"]] == [hit["id"] for hit in found["hits"]]
    assert found["hits"][0]["id"] == gone[0]
    assert ask("GET", f"{THINGS}/items/{gone[0]}").status_code == 404


def test_paging_goes_on_when_an_item_vanishes(ask, searcher, monkeypatch):
    get, gone = Collection.get, []

    def after_a_removal(self, ids):
        if len(ids) > 5:
            searcher.writer.remove([int(ids[-1])]).result(60)
            gone.append(int(ids[-1]))
        return get(self, ids)

    monkeypatch.setattr(Collection, "get", after_a_removal)
    seen, after = [], None
    while True:
        query = {"limit": 10} if after is None else {"limit": 10, "after": after}
        answer = ask("GET", f"{THINGS}/items", params=query).json()
        seen += [item["id"] for item in answer["items"]]
        if (after := answer["next"]) is None:
            break
    assert len(gone) == 6
    assert seen == [number for number in range(60) if number not in gone]


def test_the_last_page_has_no_next(ask):
    assert ask("GET", f"{THINGS}/items", params={"limit": 60}).json()["next"] is None
    assert ask("GET", f"{THINGS}/items", params={"limit": 59}).json()["next"] == 58


def test_of_two_snapshots_with_one_name_at_the_same_time_one_is_refused(folder, monkeypatch):
    service, both_begun, made = Service([folder]), threading.Barrier(2), []
    snapshots, searcher = service.snapshots("things"), service.searcher("things")
    run_exclusively = searcher.writer.run_exclusively

    def wait_for_both(write):
        both_begun.wait(60)
        return run_exclusively(write)

    def make():
        try:
            made.append(snapshots.make(searcher, "same").name)
        except ConflictError as error:
            made.append(str(error))

    monkeypatch.setattr(searcher.writer, "run_exclusively", wait_for_both)
    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    service.close()
    assert "same" in made
    assert "There is a snapshot 'same' already" in next(each for each in made if each != "same")
    assert [path.name for path in snapshots.folder.iterdir()] == ["same.starsnap"]


def test_a_snapshot_from_elsewhere_does_not_replace_one_that_was_made_meanwhile(folder):
    service = Service([folder])
    snapshots, searcher = service.snapshots("things"), service.searcher("things")
    content = snapshots.path(snapshots.make(searcher, "other").name).read_bytes()

    def receive_too_late():
        with snapshots.receive("same") as file:
            snapshots.make(searcher, "same")
            file.write(content)

    with pytest.raises(ConflictError, match="'same' already"):
        receive_too_late()
    assert snapshots.restore(searcher, "same") == 60
    service.close()
