"""Guesses over HTTP: asked for, found, accepted and rejected a page at a time."""

import numpy as np
import pytest

from starshl import Collection

from .asking import waited

THINGS = "/collections/things"
GUESSES = f"{THINGS}/guesses"


@pytest.fixture
def ask(running, folder):
    """A service of a collection in which half of the items have a label."""
    with Collection(folder) as collection:
        collection.set_labels(np.arange(30, 60), None)
    return running(folder)


def guessed(ask):
    job = ask("POST", f"{GUESSES}/update")
    assert job.status_code == 202
    done = waited(lambda: ask("GET", f"{THINGS}/jobs/{job.json()['id']}").json(), lambda each: each["ended"])
    assert done["state"] == "done"
    return ask("GET", GUESSES).json()


def test_guesses_are_made_listed_and_found(ask):
    nothing = {"is_current": None, "by": None, "counts": [], "job": None, "knows_confidence": True}
    assert ask("GET", GUESSES).json() == nothing
    state = guessed(ask)
    assert (state["is_current"], state["by"]) == (True, "lesson")
    assert sum(count for _, count in state["counts"]) == 30
    label, count = state["counts"][0]
    body = {"guesses": [label], "order": "least_sure", "limit": 4}
    first = ask("POST", f"{THINGS}/items/list", json=body).json()
    rest = ask("POST", f"{THINGS}/items/list", json=body | {"limit": 100, "after": first["next"]}).json()
    items = first["items"] + rest["items"]
    sure = [item["guess"]["confidence"] for item in items]
    assert len(items) == count
    assert sure == sorted(sure)
    assert {item["label"] for item in items} == {None}
    both = ask("POST", f"{THINGS}/items/count", json={"labels": [label], "guesses": [label]}).json()
    assert both["count"] == count + 10
    hits = ask("POST", f"{THINGS}/search", json={"items": [0], "guesses": [label]}).json()["results"][0]["hits"]
    assert {hit["guess"]["label"] for hit in hits} == {label}


def test_a_page_is_accepted_once_however_often_it_is_sent_and_undone_at_once(ask):
    label, _ = guessed(ask)["counts"][0]
    page = ask("POST", f"{THINGS}/items/list", json={"guesses": [label], "limit": 5}).json()["items"]
    body = {"ids": [item["id"] for item in page], "labels": [label] * 5}
    for repeated in (False, True):
        answer = ask("POST", f"{GUESSES}/accept", json=body, headers={"Idempotency-Key": "one"}).json()
        assert answer == {"ids": body["ids"], "n_items": 5, "repeated": repeated, "notes": []}
    assert ask("POST", f"{THINGS}/items/count", json={"labels": [label]}).json()["count"] == 15
    assert not ask("GET", GUESSES).json()["is_current"]
    ask("PUT", f"{THINGS}/labels", json={"items": [{"id": body["ids"][0], "label": "z"}]})
    assert ask("POST", f"{GUESSES}/accept", json=body).json()["n_items"] == 0, "given labels stay"
    assert ask("POST", f"{GUESSES}/undo", json={}).json()["n_items"] == 5
    assert ask("POST", f"{THINGS}/items/count", json={"labels": [label]}).json()["count"] == 10
    assert ask("POST", f"{GUESSES}/undo", json={}).json()["n_items"] == 0, "nothing is left to undo"


def test_rejected_guesses_are_not_made_again(ask):
    label, count = guessed(ask)["counts"][0]
    page = ask("POST", f"{THINGS}/items/list", json={"guesses": [label], "limit": 5}).json()["items"]
    ids = [item["id"] for item in page]
    assert ask("POST", f"{GUESSES}/reject", json={"ids": ids}).json()["n_items"] == 5
    after = dict(map(tuple, guessed(ask)["counts"]))
    assert after.get(label, 0) == count - 5


def test_few_labels_give_guesses_without_a_confidence(running, folder):
    with Collection(folder) as collection:
        collection.set_labels(np.arange(6, 60), None)
    ask = running(folder)
    assert guessed(ask)["knows_confidence"] is False
    items = ask("POST", f"{THINGS}/items/list", json={"order": "likeliest", "limit": 5}).json()["items"]
    assert all(item["guess"] is None or item["guess"]["confidence"] is None for item in items)
    page = ask("GET", "/explore/things", root="").text
    assert "too few labels to tell how sure" in page


def test_what_cannot_be_reviewed_is_refused(ask):
    for path, body, words in [
        (f"{GUESSES}/accept", {"ids": [40]}, "Guess them first"),
        (f"{GUESSES}/accept", {"ids": [40], "labels": ["a", "b"]}, "one label per id"),
        (f"{GUESSES}/reject", {"ids": [4000], "labels": ["a"]}, "4000"),
        (f"{THINGS}/items/count", {"guesses": ["a"]}, "Guess them first"),
    ]:
        refused = ask("POST", path, json=body)
        assert refused.status_code in (404, 422), path
        assert words in refused.json()["detail"]


def test_labels_of_one_class_give_no_guesses(running, folder):
    with Collection(folder) as collection:
        collection.set_labels(np.arange(1, 60), None)
    ask = running(folder)
    job = ask("POST", f"{GUESSES}/update").json()
    failed = waited(lambda: ask("GET", f"{THINGS}/jobs/{job['id']}").json(), lambda each: each["ended"])
    assert failed["state"] == "failed"
    assert "two classes" in failed["error"]
