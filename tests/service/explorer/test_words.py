"""Words of the field are one click away from pages that everybody reads."""

import re

import pytest

from .acting import lesson, until

FIELD = re.compile(r"hash|ridge|kernel|temperature|codeword|ITQ|P@10|posterior|Hamming|discriminant", re.IGNORECASE)


@pytest.mark.parametrize("path", ["", "?item=3", "?label=circle", "/teach", "/map", "/model", "/classes"])
def test_no_page_begins_with_words_of_the_field(visit, path):
    page = visit(f"/explore/album{path}")
    if path == "/teach":
        lesson(page)
    if path == "/map":
        page.wait_for_selector("#map")
    if "item" in path:
        page.wait_for_selector("[data-methods]")
    assert FIELD.findall(page.inner_text("main")) == []


def test_the_words_of_the_field_are_one_click_deeper(visit):
    page = visit("/explore/album/model")
    page.click("text=in the words of the field")
    assert "ITQ" in page.inner_text("main")


def test_a_phone_shows_whole_guesses_and_pictures_that_nothing_covers(visit):
    page = visit("/explore/album?item=200", viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    page.wait_for_selector("#neighbors .grid li")
    cut = "all => all.filter((each) => each.scrollWidth > each.clientWidth + 1).length"
    until(page, "document.querySelector('[role=status].small') === null")
    assert page.eval_on_selector_all(".predictions dt", cut) == 0
    assert page.locator(".corner:visible").count() == 0
    page.tap("#neighbors .grid .tile >> nth=0")
    page.tap("text=Why this one?")
    page.wait_for_selector("#match")
    until(page, "!document.querySelector('#viewer').open")
