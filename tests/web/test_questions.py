"""What an address of the explorer or a request to fit asks for is read, or refused with words."""

import pytest

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


def test_a_field_may_have_a_value_or_lie_in_a_range(ask):
    ask("PUT", f"{THINGS}/fields", json={"fields": {"price": "int"}})
    exact = page(ask, "/explore/things?item=0&field.price=3&part=near").text
    between = page(ask, "/explore/things?item=0&field.price.min=3&field.price.max=4&part=near").text
    assert ("Item 3" in exact or "3.png" in exact, "4.png" in exact, "4.png" in between) == (True, False, True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_bits": 5}, "The settings hold 'n_bits', which is given next to them"),
        ({"bits": 5}, "LSHash has no setting 'bits'; it has variant, center"),
    ],
)
def test_settings_that_a_fit_cannot_take_are_refused_at_once(ask, settings, words):
    answer = ask("POST", f"{THINGS}/fit", json={"method": "LSHash", "n_bits": 8, "settings": settings})
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text
