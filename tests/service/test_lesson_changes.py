"""Changes of a lesson that come in lists: in order, each stored once, and refused one by one."""

import json
import re

from starshl import Collection
from starshl.labeling.events import JOURNAL

from .asking import lesson


def sent(ask, *changes):
    """Send changes, each with a key; return what became of them."""
    answer = ask("POST", "/explore/things/teach/changes", root="", json={"changes": list(changes)})
    assert answer.status_code == 200, answer.text
    return answer.json()


def answer(key, item, label):
    return {"key": key, "action": "answer", "ids": [str(item)], "label": label}


def test_changes_are_made_in_their_order_and_once_however_often_they_come(ask, folder):
    lesson(ask)
    changes = [
        answer("one", 0, "x"),
        answer("two", 0, "y"),
        answer("three", 1, "x"),
        {"key": "four", "action": "undo"},
        {"key": "five", "action": "skip", "ids": ["2"]},
        answer("six", 3, "z"),
    ]
    sent(ask, *changes[:2])
    assert "4 changes stored, the last: 1 item labeled z" in sent(ask, *changes)["message"]
    sent(ask, *changes)
    assert [ask("GET", f"/collections/things/items/{item}").json()["label"] for item in (0, 1, 3)] == ["y", "b", "z"]
    ask.close()
    with Collection(folder, read_only=True) as collection:
        kinds = [json.loads(entry)["kind"] for entry in collection.journal(JOURNAL)]
    assert kinds == ["answer", "answer", "answer", "undo", "skip", "answer"]


def test_a_change_that_is_refused_is_named_and_does_not_stop_those_behind_it(ask):
    lesson(ask)
    refused = sent(ask, answer("one", 999, "x"), answer("two", 1, "  "), answer("three", 2, "z"))["refused"]
    assert [each["key"] for each in refused] == ["one", "two"]
    assert "999" in refused[0]["detail"]
    assert ask("GET", "/collections/things/items/2").json()["label"] == "z"
    assert sent(ask, answer("four", 3, "z"))["refused"] == []


def test_a_name_that_differs_from_a_class_in_capitals_only_is_that_class(ask):
    lesson(ask)
    sent(ask, answer("one", 0, "Ship"))
    message = sent(ask, answer("two", 1, " SHIP "))["message"]
    assert "1 item labeled Ship, as that class is written already" in message
    assert ask("GET", "/collections/things/items/1").json()["label"] == "Ship"
    ask("PUT", "/collections/things/labels", json={"items": [{"id": 2, "label": "ship"}]})
    sent(ask, answer("three", 3, "ship"))
    assert ask("GET", "/collections/things/items/3").json()["label"] == "ship", "a class of that very spelling is meant"


def test_the_page_tells_two_collections_of_the_same_name_apart(running, folder, tmp_path, rows):
    def identity(ask):
        found = re.search(r'data-collection="(\w+)"', lesson(ask)).group(1)
        ask.close()
        return found

    first = identity(running(folder))
    assert identity(running(folder)) == first
    folder.rename(tmp_path / "before")
    with Collection(tmp_path / "before") as old, Collection.create(folder, old.hasher, vectors="float16") as new:
        new.add(rows + 1)
    assert identity(running(folder)) != first
