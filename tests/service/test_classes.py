"""Classes are renamed, merged and removed over HTTP, and predictions, filters and pages follow."""

import re

from .asking import page

THINGS = "/collections/things"


def counts(ask):
    return {each["label"]: each["items"] for each in ask("GET", f"{THINGS}/classes").json()["classes"]}


def test_a_class_is_renamed_merged_removed_and_restored_over_http(ask):
    assert counts(ask) == {"a": 20, "b": 20, "c": 20}
    change = ask("POST", f"{THINGS}/classes/rename", json={"label": "a", "name": "first"}).json()
    assert (change["kind"], change["label"], change["into"], change["undone"]) == ("rename", "a", "first", False)
    assert ask("GET", f"{THINGS}/items/0").json()["label"] == "first"
    assert ask("POST", f"{THINGS}/items/count", json={"labels": ["first"]}).json()["count"] == 20
    ask("POST", f"{THINGS}/classes/merge", json={"label": "b", "into": "c"})
    assert counts(ask) == {"c": 40, "first": 20}
    ask("POST", f"{THINGS}/classes/remove", json={"label": "first"})
    assert ask("GET", f"{THINGS}/items/0").json()["label"] is None
    for _ in range(3):
        assert ask("POST", f"{THINGS}/classes/undo", json={}).json()["undone"]
    assert counts(ask) == {"a": 20, "b": 20, "c": 20}
    assert [each["undone"] for each in ask("GET", f"{THINGS}/classes").json()["changes"]] == [True] * 3


def test_changes_of_classes_that_make_no_sense_are_refused_with_advice(ask):
    for path, body, words in [
        ("rename", {"label": "a", "name": "b"}, "merge"),
        ("merge", {"label": "a", "into": "zzz"}, "There are"),
        ("remove", {"label": "zzz"}, "No class"),
        ("undo", {}, "nothing to undo"),
    ]:
        refused = ask("POST", f"{THINGS}/classes/{path}", json=body)
        assert refused.status_code == 422
        assert words in refused.json()["detail"]
    assert ask("POST", f"{THINGS}/classes/rename", json={"label": "a"}).status_code == 422


def test_a_change_of_classes_that_is_sent_twice_under_one_key_is_made_once(ask):
    ask("POST", f"{THINGS}/classes/rename", json={"label": "a", "name": "first"})
    merge, undo = {"label": "b", "into": "c"}, {}
    for path, body in [("merge", merge), ("undo", undo)]:
        both = [ask("POST", f"{THINGS}/classes/{path}", json=body, headers={"Idempotency-Key": path}) for _ in range(2)]
        assert [each.status_code for each in both] == [200, 200]
        assert both[0].json() == both[1].json()
        assert both[0].json()["kind"] == "merge"
    assert counts(ask) == {"b": 20, "c": 20, "first": 20}, "only the merger is undone"
    refused = ask("POST", f"{THINGS}/classes/undo", json={"number": 3}, headers={"Idempotency-Key": "undo"})
    assert refused.status_code == 422
    assert "idempotency key" in refused.json()["detail"]


def test_classes_are_renamed_merged_removed_and_undone_on_a_page_without_scripts(ask):
    def sent(**form):
        return ask("POST", "/explore/things/classes", root="", data=form)

    assert sent(action="rename", label="a", into="first").headers["location"] == "/explore/things/classes"
    sent(action="merge", label="b", into="c")
    sent(action="remove", label="first")
    assert counts(ask) == {"c": 40}
    text = page(ask, "/explore/things/classes").text
    for told in ("a was renamed to first", "b was merged into c", "first was removed"):
        assert told in text
    numbers = re.findall(r'name="number" value="(\d+)"', text)
    assert len(numbers) == 3
    for number in numbers:
        sent(action="undo", number=number)
    assert counts(ask) == {"a": 20, "b": 20, "c": 20}
    assert "Undo</button>" not in page(ask, "/explore/things/classes").text
    assert 'value="rename"' in page(ask, "/explore/things/classes?label=a").text
    assert 'value="rename"' not in page(ask, "/explore/things/classes?label=nobody").text
    assert "merge them" in sent(action="rename", label="a", into="b").text
    assert sent(action="rename", label="nobody", into="x").status_code == 422
