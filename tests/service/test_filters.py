"""Listing, counting, removing and recommending with filters, and what is noted about slow ones."""

import json

import numpy as np
import pytest

from starshl import Collection
from starshl.collection import SearchOptions
from starshl.service import writes

THINGS = "/collections/things"
pytestmark = pytest.mark.filterwarnings("ignore:The filter reads the metadata")


def test_items_that_pass_filters_are_listed_page_by_page(shared):
    body = {"where": {"price": {">=": 10}}, "labels": ["a"], "limit": 3}
    first = shared("POST", f"{THINGS}/items/list", json=body).json()
    assert ([item["id"] for item in first["items"]], first["next"]) == ([12, 15, 18], 18)
    second = shared("POST", f"{THINGS}/items/list", json=body | {"after": 18, "limit": 1000}).json()
    assert ([item["id"] for item in second["items"]], second["next"]) == (list(range(21, 60, 3)), None)
    assert len(shared("POST", f"{THINGS}/items/list", json={"among": [3, 5, 999]}).json()["items"]) == 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, 60),
        ({"where": {}}, 60),
        ({"where": {"price": {"<": 7}}}, 7),
        ({"labels": ["a", "b"]}, 40),
        ({"where": {"price": {"<": 7}}, "labels": ["a"], "among": [0, 1, 3]}, 2),
    ],
)
def test_items_that_pass_filters_are_counted(shared, body, expected):
    assert shared("POST", f"{THINGS}/items/count", json=body).json()["count"] == expected


def test_a_removal_by_filter_is_stored_once_however_often_it_is_sent(ask):
    body, key = {"where": {"price": {"<": 10}}, "labels": ["a"]}, {"Idempotency-Key": "cleanup"}
    first = ask("POST", f"{THINGS}/items/remove", json=body, headers=key).json()
    assert first == {"ids": [0, 3, 6, 9], "n_items": 4, "repeated": False, "notes": []}
    vector = [0.0] * 8
    ask("PUT", f"{THINGS}/items", json={"items": [{"id": 0, "vector": vector, "label": "a", "metadata": {"price": 1}}]})
    again = ask("POST", f"{THINGS}/items/remove", json=body, headers=key).json()
    assert again == {"ids": [0, 3, 6, 9], "n_items": 4, "repeated": True, "notes": []}
    assert ask("GET", f"{THINGS}/items/0").status_code == 200
    none = ask("POST", f"{THINGS}/items/remove", json={"where": {"price": {">": 1000}}})
    assert (none.status_code, none.json()["n_items"]) == (200, 0)


def test_a_removal_of_very_many_items_only_counts_them(ask, monkeypatch):
    monkeypatch.setattr(writes, "MOST_NAMED", 20)
    body, key = {"labels": ["a", "b"]}, {"Idempotency-Key": "many"}
    for repeated in (False, True):
        removed = ask("POST", f"{THINGS}/items/remove", json=body, headers=key).json()
        assert removed == {"ids": None, "n_items": 40, "repeated": repeated, "notes": []}


@pytest.mark.parametrize("body", [{}, {"ids": [1], "labels": ["a"]}, {"labels": []}, {"where": {}}])
def test_a_removal_without_ids_or_filter_removes_nothing(ask, body):
    assert ask("POST", f"{THINGS}/items/remove", json=body).status_code == 422
    assert ask("GET", THINGS).json()["n_items"] == 60


def test_searches_with_different_options_are_answered_together(shared, rows):
    searches = [
        {"vectors": rows[:2].tolist(), "k": 2},
        {"items": [7], "k": 4, "labels": ["b"]},
        {"items": [3], "radius": 24, "k": 1},
    ]
    together = shared("POST", f"{THINGS}/search/batch", json={"searches": searches}).json()["answers"]
    assert together == [shared("POST", f"{THINGS}/search", json=body).json() for body in searches]
    bad = shared("POST", f"{THINGS}/search/batch", json={"searches": [searches[0], {"items": [999]}]})
    assert (bad.status_code, "999" in bad.json()["detail"]) == (404, True)
    many = {"searches": [{"items": [1], "k": 10_000}] * 11}
    assert "more than 100000 results" in shared("POST", f"{THINGS}/search/batch", json=many).json()["detail"]


def test_a_recommendation_is_a_search_for_the_middle_without_the_given_items(shared, template):
    body = {"like": [3, 8, 3], "unlike": [5], "k": 6, "labels": ["a", "b"], "explain": True}
    (found,) = shared("POST", f"{THINGS}/recommend", json=body).json()["results"]
    with Collection(template, read_only=True) as collection:
        like, unlike = collection.vectors([3, 8]).mean(axis=0), collection.vectors([5])[0]
        expected = [hit.id for hit in collection.search((2 * like - unlike)[None], 9, labels=["a", "b"])[0]]
    ids = [hit["id"] for hit in found["hits"]]
    assert ids == [item for item in expected if item not in (3, 8, 5)][:6]
    assert (len(ids), found["total"]) == (6, 6)
    assert found["hits"][0]["explanation"]["text"].startswith(f"Item {ids[0]} ")
    plain = shared.app.state.service.searcher("things").recommend([4], options=SearchOptions(k=2)).result(60)[0]
    assert 4 not in [hit.id for hit in plain.hits]


def test_items_without_kept_vectors_cannot_be_combined(running, tmp_path, template):
    with Collection(template, read_only=True) as source:
        hasher, codes = source.hasher, source.codes(range(5))
    with Collection.create(tmp_path / "bare", hasher) as bare:
        bare.add(codes=codes)
    response = running(tmp_path / "bare")("POST", "/collections/bare/recommend", json={"like": [1, 2]})
    assert (response.status_code, "keeps no vectors" in response.json()["detail"]) == (422, True)


def test_a_filter_on_fields_that_are_not_declared_is_answered_with_a_note(ask):
    body = {"where": {"price": {"<": 3}}}
    answers = [
        ask("POST", f"{THINGS}/{path}", json=body | more).json()
        for path, more in (
            ("search", {"items": [1]}),
            ("recommend", {"like": [1]}),
            ("items/list", {}),
            ("items/count", {}),
        )
    ]
    assert {json.dumps(answer["notes"]) for answer in answers} == {
        json.dumps(
            [
                "The filter reads the metadata of all 60 items, because 'price' is not declared. With many items, this "
                "is slow: declare the fields that you filter by (PUT .../fields, or declare_fields of the client)."
            ]
        )
    }
    assert len(answers[0]["results"][0]["hits"]) == 3
    ask("PUT", f"{THINGS}/fields", json={"fields": {"price": "int"}})
    assert ask("POST", f"{THINGS}/search", json=body | {"items": [1]}).json()["notes"] == []


@pytest.mark.parametrize("path", ["search", "items/list", "items/count", "items/remove"])
def test_an_unknown_field_is_refused_with_the_known_ones(shared, path):
    body = {"where": {"prize": 3}} | ({"items": [1]} if path == "search" else {})
    response = shared("POST", f"{THINGS}/{path}", json=body)
    assert response.status_code == 422
    assert "Did you mean 'price'?" in response.json()["detail"]


def test_find_gives_the_ids_of_a_scan(template):
    with Collection(template, read_only=True) as collection:
        items = collection.get(collection.ids)
        expected = [item.id for item in items if item.metadata["price"] > 20 and item.label in "ab" and item.id % 2]
        found = collection.find(where={"price": {">": 20}}, labels=["a", "b"], among=np.arange(1, 99, 2))
        assert found.tolist() == expected
        assert collection.find().tolist() == list(range(60))


def test_a_label_that_no_item_has_is_noted(ask):
    for path, body in (("search", {"items": [3]}), ("items/list", {}), ("items/count", {})):
        notes = ask("POST", f"/collections/things/{path}", json=body | {"labels": ["A"]}).json()["notes"]
        assert notes == ['No item has the label "A". Did you mean "a"? There are: "a", "b", "c".']
        assert not ask("POST", f"/collections/things/{path}", json=body | {"labels": ["a", "c"]}).json()["notes"]
