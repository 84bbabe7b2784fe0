"""The teach page without a browser: answers, undo, and what others change meanwhile."""

import re
import threading
import time

import pytest

from starshl import Collection
from starshl.hashers.baselines import LSHash
from starshl.labeling import Lesson
from starshl.service.settings import READ, WRITE, Settings, Token, Tokens

from .asking import PAGE, change, current_codes, lesson, page, waited


def test_a_preparation_that_was_canceled_begins_again_when_somebody_says_so_and_not_while_one_looks(ask, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def wait_for_cancel(self, collection, *, progress, **_):
        begun.set()
        assert go_on.wait(60)
        progress("preparing")
        raise AssertionError("It was not canceled.")

    monkeypatch.setattr(Lesson, "__init__", wait_for_cancel)
    assert "<progress" in page(ask, "/explore/things/teach").text
    assert begun.wait(60)
    ask("POST", "/explore/things/teach/cancel", root="", json={})
    go_on.set()
    board = "/explore/things/teach?part=board"
    waited(lambda: ask("GET", board, root="").text, lambda text: "<progress" not in text)
    monkeypatch.undo()
    for address in (board, "/explore/things/teach"):
        assert "The preparation was canceled" in ask("GET", address, root="").text
    assert ask("POST", "/explore/things/teach/prepare", root="").status_code == 303
    lesson(ask)


@pytest.mark.parametrize("part", ["teach", "map"])
def test_a_preparation_that_failed_says_why_until_somebody_tries_again(ask, monkeypatch, part):
    attempts = []

    def fail(self, collection, **_):
        attempts.append(collection)
        raise ValueError("These vectors are too long.")

    monkeypatch.setattr(Lesson, "__init__", fail)
    address = f"/explore/things/{part}"
    waited(lambda: page(ask, address).text, lambda text: "<progress" not in text)
    for _ in range(3):
        assert "These vectors are too long" in page(ask, address).text
    assert len(attempts) == 1
    form = f'<form method="post" action="{address}/prepare"'
    assert form in page(ask, address).text
    monkeypatch.undo()
    assert ask("POST", f"{address}/prepare", root="").headers["location"] == address
    waited(lambda: page(ask, address).text, lambda text: "data-version" in text or "<canvas" in text)


def test_a_lesson_is_prepared_anew_when_an_item_was_replaced_by_another_one(ask, rows):
    lesson(ask)
    ask("DELETE", "/collections/things/items/7")
    ask("POST", "/collections/things/items", json={"items": [{"id": 100, "vector": rows[7].tolist()}]})
    assert ask("GET", "/collections/things").json()["n_items"] == 60
    assert ask("GET", "/explore/things/teach/state", root="").json()["version"] is None
    lesson(ask)
    assert change(ask, "answer", [100], "a").status_code == 200


def test_labels_given_on_the_page_are_those_of_the_collection_and_can_be_undone(ask):
    text = lesson(ask)
    first = int(re.search(r'data-id="(\d+)"', text).group(1)) if "data-id" in text else 0
    before = ask("GET", f"/collections/things/items/{first}").json()["label"]
    sent = change(ask, "answer", [first], " new class ")
    assert sent.status_code == 200
    assert ask("GET", f"/collections/things/items/{first}").json()["label"] == "new class"
    assert "1 item labeled new class" in sent.json()["message"]
    undone = change(ask, "undo")
    assert "Undone: 1 item as before" in undone.json()["message"]
    assert ask("GET", f"/collections/things/items/{first}").json()["label"] == before


def test_the_service_predicts_as_soon_as_the_codes_follow_from_labels(ask, rows):
    asked = {"vectors": [rows[0].tolist()]}
    assert ask("POST", "/collections/things/predict", json=asked).status_code == 422
    lesson(ask)
    change(ask, "answer", [0], "a")
    current_codes(ask)
    assert ask("POST", "/collections/things/predict", json=asked).status_code == 200


def test_a_collection_is_exported_with_the_codes_that_follow_from_its_labels(ask):
    lesson(ask)
    for item, label in ((0, "b"), (1, "a")):
        assert change(ask, "answer", [item], label).status_code == 200
    exported = ask("GET", "/explore/things/export/collection.tar", root="")
    assert exported.status_code == 200
    assert ask("GET", "/explore/things/teach/state", root="").json()["codes"] == "current"


def test_a_restore_does_not_wait_for_what_is_being_prepared(ask, monkeypatch):
    begun = threading.Event()

    def prepare_for_ever(self, collection, *, progress, **_):
        begun.set()
        while True:
            progress("preparing")
            time.sleep(0.01)

    monkeypatch.setattr(Lesson, "__init__", prepare_for_ever)
    assert ask("POST", "/collections/things/snapshots", json={"name": "now"}).status_code == 201
    page(ask, "/explore/things/teach")
    assert begun.wait(60)
    assert ask("POST", "/collections/things/snapshots/now/restore").json() == {"n_items": 60}
    monkeypatch.undo()
    assert "data-version" in lesson(ask)


def test_an_answer_about_an_item_that_was_removed_can_be_undone(ask):
    lesson(ask)
    for ids, label in (([3], "a"), ([4, 5], "b"), ([6], "c")):
        change(ask, "answer", ids, label)
    before = ask("GET", "/collections/things/items/4").json()["label"]
    assert before == "b"
    ask("POST", "/collections/things/items/remove", json={"ids": [5, 6]})
    lesson(ask)
    for expected in ("Undone: 0 items as before", "Undone: 1 item as before"):
        undone = change(ask, "undo")
        assert (undone.status_code, expected in undone.text) == (200, True), undone.text
    assert ask("GET", "/collections/things/items/4").json()["label"] == "abc"[4 % 3]


def test_a_change_by_somebody_else_shows_in_the_state_of_the_lesson(ask):
    lesson(ask)
    before = ask("GET", "/explore/things/teach/state", root="").json()["version"]
    ask("PUT", "/collections/things/labels", json={"items": [{"id": 5, "label": "b"}]})
    assert ask("GET", "/explore/things/teach/state", root="").json()["version"] > before


def test_answers_about_unknown_items_and_labels_of_another_type_are_refused(ask):
    lesson(ask)
    (unknown,) = change(ask, "answer", [999], "a").json()["refused"]
    assert "999" in unknown["detail"]
    (empty,) = change(ask, "answer", [1], "  ").json()["refused"]
    assert "A label has 1" in empty["detail"]


def test_an_answer_before_the_lesson_is_prepared_is_a_conflict(ask):
    assert change(ask, "answer", [1], "a").status_code == 409


def test_a_collection_that_is_served_for_reading_only_cannot_be_taught(running, folder):
    ask = running(folder, read_only=True)
    assert "Start it without --read-only" in page(ask, "/explore/things/teach").text
    assert change(ask, "undo").status_code == 403


def test_a_token_for_reading_sees_pages_and_changes_nothing(running, folder):
    reader, writer = "reader-" + "r" * 20, "writer-" + "w" * 20
    ask = running(folder, settings=Settings(tokens=Tokens([Token.of(reader, READ), Token.of(writer, WRITE)])))
    cookie = {"Cookie": f"starshl-token={reader}", **PAGE}
    assert ask("GET", "/explore/things", root="", headers=PAGE).headers["location"].startswith("/login")
    assert ask("GET", "/explore/things?item=1", root="", headers=cookie).status_code == 200
    assert "Your token only allows reading" in ask("GET", "/explore/things/teach", root="", headers=cookie).text
    own = {**cookie, "Sec-Fetch-Site": "same-origin"}
    assert change(ask, "undo", headers=own).status_code == 403


def test_items_that_are_added_while_the_codes_are_replaced_are_all_stored(ask, rows, monkeypatch):
    replacing, go_on = threading.Event(), threading.Event()
    replace = Collection.replace_hasher

    def wait(collection, *given, **named):
        replacing.set()
        assert go_on.wait(60)
        replace(collection, *given, **named)

    monkeypatch.setattr(Collection, "replace_hasher", wait)
    lesson(ask)
    change(ask, "answer", [0], "a")
    assert replacing.wait(60)
    added = [("POST", "/collections/things/items", {"items": [{"vector": rows[0].tolist()}]}) for _ in range(8)]
    threading.Timer(0.3, go_on.set).start()
    assert [sent.status_code for sent in ask.together(*added)] == [201] * 8
    about = ask("GET", "/collections/things").json()
    assert (about["n_items"], about["method"]) == (68, "HybridHasher")


def test_items_that_came_or_went_since_the_lesson_began_get_new_codes_too(folder, rows):
    with Collection(folder) as collection, Lesson(collection) as lesson:
        collection.add(rows[:3] + 0.1, ids=[100, 101, 102])
        collection.remove([7])
        lesson.refit()
        assert lesson.wait_for_codes(60)
        assert lesson.codes().error is None
        assert collection.verify() == 62
        assert [item.model_digest for item in collection.get([0, 100])] == [collection.model_digest] * 2


def test_ids_that_are_too_large_for_numbers_of_scripts_keep_their_digits(running, tmp_path, rows):
    ids = [2**53 + 1 + 2 * place for place in range(len(rows))]
    with Collection.create(tmp_path / "things", LSHash(16, random_state=0).fit(rows), vectors="float16") as collection:
        collection.add(rows, ids=ids)
    ask = running(tmp_path / "things")
    lesson(ask)
    assert change(ask, "answer", [ids[0]], "a").status_code == 200
    assert ask("GET", f"/collections/things/items/{ids[0]}").json()["label"] == "a"
    waited(lambda: page(ask, "/explore/things/map").text, lambda text: "<canvas" in text)
    assert ask("GET", "/explore/things/map/items", root="").json()["ids"] == [str(item) for item in ids]


def test_items_of_an_undone_answer_are_asked_for_again_first(ask):
    lesson(ask)
    ask("PUT", "/collections/things/labels", json={"items": [{"id": item, "label": None} for item in range(9, 60)]})
    change(ask, "answer", [31, 17], "b")
    outcome = change(ask, "undo").json()
    assert outcome["restored"] == ["31", "17"]
    text = outcome["board"]
    shown = re.findall(r'class="option (\w+)" data-id="(\d+)"', text[: text.index("</ul>")])
    assert [item for way, item in shown if way == "again"] == ["31", "17"]
    assert [item for _, item in shown[:2]] == ["31", "17"]
    assert len({item for _, item in shown}) == 12


def test_a_collection_without_kept_vectors_is_told_the_command_for_its_kind(running, tmp_path, rows):
    with Collection.create(tmp_path / "things", LSHash(16, random_state=0).fit(rows)) as collection:
        collection.add(rows)
    text = page(running(tmp_path / "things"), "/explore/things/teach").text
    assert "starshl vectors FILE -o COLLECTION" in text
    assert "starshl images" not in text
