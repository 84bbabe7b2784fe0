"""What an address of the explorer or a request to fit asks for is read, or refused with words."""

import pytest

from starshl.collection.labels import typed_label

from .asking import page

THINGS = "/collections/things"


@pytest.mark.parametrize(
    "fields",
    ["field.price=3&field.price.min=2", "field.price.min=2&field.price=3", "field.price.max=5&field.price=3"],
)
def test_a_field_that_is_to_have_a_value_and_to_lie_in_a_range_is_refused(ask, fields):
    ask("PUT", f"{THINGS}/fields", json={"fields": {"price": "int"}})
    for path in (f"/explore/things?{fields}", f"/explore/things?item=0&{fields}"):
        found = page(ask, path)
        assert (found.status_code, "one value and to lie in a range" in found.text) == (422, True)


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("bool", "yes", "true or false"),
        ("bool", "True", "true or false"),
        ("int", "1.5", "whole numbers"),
        ("float", "much", "numbers"),
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused(ask, kind, text, words):
    ask("PUT", f"{THINGS}/fields", json={"fields": {"new": kind}})
    found = page(ask, f"/explore/things?field.new={text}")
    assert found.status_code == 422
    assert f"; the field holds {words}. Write one of these." in found.text


def test_a_field_may_have_a_value_or_lie_in_a_range(ask):
    ask("PUT", f"{THINGS}/fields", json={"fields": {"price": "int"}})
    exact = page(ask, "/explore/things?item=0&field.price=3&part=neighbors").text
    between = page(ask, "/explore/things?item=0&field.price.min=3&field.price.max=4&part=neighbors").text
    assert ("Item 3" in exact or "3.png" in exact, "4.png" in exact, "4.png" in between) == (True, False, True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_bits": 5}, "hold 'n_bits'"),
        ({"bits": 5}, "no setting 'bits'"),
    ],
)
def test_settings_that_a_fit_cannot_take_are_refused_at_once(ask, settings, words):
    answer = ask("POST", f"{THINGS}/fit", json={"method": "LSHash", "n_bits": 8, "settings": settings})
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text


@pytest.mark.parametrize("text", ["1_0", "9" * 30, str(2**63), "1.0", "\u0663"])
def test_a_label_that_is_typed_is_a_number_that_can_be_stored(text):
    with pytest.raises(ValueError, match="up to 64 bits"):
        typed_label(text, "numbers")
    assert typed_label(text, "text") == text


def test_numbers_that_are_typed_as_labels_are_read():
    typed = [" 12 ", "-3", "+4", str(2**63 - 1), str(-(2**63))]
    assert [typed_label(text, "numbers") for text in typed] == [12, -3, 4, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("option", [{"metric": "cosine"}, {"oversample": 5}, {"rescore": True}, {"by_scores": True}])
def test_options_that_a_search_within_a_radius_would_ignore_are_refused(ask, option):
    body = {"items": [1], "radius": 3, **option}
    for path, sent in (("search", body), ("search/batch", {"searches": [body]})):
        answer = ask("POST", f"{THINGS}/{path}", json=sent)
        assert (answer.status_code, f"{next(iter(option))} says how" in answer.text) == (422, True), answer.text


@pytest.mark.parametrize("option", [{"reject": 0}, {"by_scores": True}])
def test_options_that_need_a_vector_are_refused_for_stored_items(ask, option):
    answer = ask("POST", f"{THINGS}/search", json={"items": [1], **option})
    assert (answer.status_code, f"{next(iter(option))} needs a query with a vector: " in answer.text) == (422, True)


def test_options_that_a_search_within_a_radius_obeys_are_taken(ask, rows):
    body = {"vectors": rows[:1].tolist(), "radius": 6, "k": 3, "rescore": False, "explain": True, "metric": "cosine"}
    (found,) = ask("POST", f"{THINGS}/search", json=body).json()["results"]
    assert found["hits"][0]["id"] == 0
    plain = ask("POST", f"{THINGS}/search", json={**body, "metric": "euclidean"}).json()["results"][0]
    assert [hit["explanation"] for hit in found["hits"]] != [hit["explanation"] for hit in plain["hits"]]
