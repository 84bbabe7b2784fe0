"""Long names and small screens: nothing runs out of a page or a card, and fingers can do what keys do."""

import pytest

from .acting import labels, lesson, press, until

LONG = ["x" * 200, ("a sentence of many words " * 8)[:199].strip(), "Donaudampfschiff" * 6, "ship"]
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
SCREEN = {"viewport": {"width": 1280, "height": 900}}
# Elements of which something stands right of the window, though it is not cut off by what it stands in.
OUTSIDE = """() => [...document.querySelectorAll('body *')].filter((each) => {
  const box = each.getBoundingClientRect();
  if (!box.width || !each.checkVisibility() || box.right <= innerWidth + 1 || each.closest('svg, .skip')) return false;
  for (let outer = each.parentElement; outer; outer = outer.parentElement)
    if (getComputedStyle(outer).overflowX !== 'visible' && outer.getBoundingClientRect().right <= innerWidth + 1)
      return false;
  return true;
}).map((each) => `${each.tagName} ${each.className}`)"""


@pytest.fixture(scope="module")
def named(chromium, site):
    """Classes with long names in one of the collections."""
    page = chromium.new_page()
    items = [{"id": number, "label": LONG[number % 4]} for number in range(24)]
    answer = page.request.put(f"{site}/api/v1/collections/fresh/labels", data={"items": items})
    assert answer.ok, answer.text()
    page.close()


def settled(page, path):
    """Wait until a page shows all it has, also what is folded away."""
    if path.endswith("teach"):
        lesson(page)
    if path.endswith("map"):
        page.wait_for_selector("#map")
        until(
            page, "document.documentElement.dataset.ready === 'map' && document.querySelectorAll('#legend li').length"
        )
    if "item" in path:
        page.wait_for_selector('[aria-label="ITQ"]')
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
@pytest.mark.parametrize("path", ["", "?item=0&hit=3&methods=1", "/teach", "/map", "/model"])
def test_names_of_200_characters_make_no_page_wider(visit, named, path, size):
    page = visit(f"/explore/fresh{path}", **size)
    settled(page, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["viewport"]["width"]
    assert page.evaluate(OUTSIDE) == []


def test_several_items_are_selected_by_taps_and_a_message_does_not_cover_the_field(visit, site):
    page = visit("/explore/careful/teach", **PHONE)
    lesson(page)
    heights = page.eval_on_selector_all(".label-form button", "all => all.map((each) => each.offsetHeight)")
    assert len(set(heights)) == 1, "all buttons have one line"
    page.tap("text=Select several")
    for number in (1, 2):
        page.locator("#proposals > li").nth(number).tap()
    chosen = page.locator('#proposals [aria-selected="true"]')
    ids = {int(chosen.nth(place).get_attribute("data-id")) for place in range(chosen.count())}
    assert len(ids) == 2, "what was tapped, and nothing else"
    page.fill("#label", "ring")
    press(page, "Enter")
    assert set(labels(page, site, "careful")) == ids
    page.locator("#label").scroll_into_view_if_needed()
    page.wait_for_selector("#status:not(:empty)")
    toast, field = page.locator("#status").bounding_box(), page.locator("#label").bounding_box()
    assert toast["y"] + toast["height"] <= field["y"] or toast["y"] >= field["y"] + field["height"]
    assert page.get_attribute('[data-action="several"]', "aria-pressed") == "true", "it stays so until it is ended"
    assert page.locator('[aria-selected="true"]').count() == 0
    page.tap("text=Select several")
    page.locator("#proposals > li").nth(2).tap()
    assert page.locator('#proposals [aria-selected="true"]').count() == 1


def test_shares_of_classes_stay_within_their_card_on_a_phone(visit, site):
    page = visit("/explore/shared/teach", **PHONE)
    lesson(page)
    for name in ("a rather long name", "another name"):
        page.fill("#label", name)
        press(page, "Enter")
    until(page, "document.querySelector('#codes').textContent === 'codes up to date'")
    page.goto(f"{site}/explore/shared?item=0")
    page.wait_for_selector(".predictions dd")
    card = page.locator(".query").bounding_box()
    right_ends = page.eval_on_selector_all(
        ".predictions dd",
        """all => all.map((each) => {
          const words = document.createRange();
          words.selectNodeContents(each);
          return words.getBoundingClientRect().right;
        })""",
    )
    assert max(right_ends) <= card["x"] + card["width"] - 10


def test_figures_of_the_model_page_are_not_broken_on_a_phone(visit, named):
    page = visit("/explore/fresh/model", **PHONE)
    page.click("text=Measure")
    page.wait_for_selector("#figures table")
    broken = page.eval_on_selector_all(
        "td.number",
        """all => all.filter((each) => {
          const words = document.createRange();
          words.selectNodeContents(each);
          return words.getClientRects().length > 1;
        }).length""",
    )
    assert page.locator("td.number").count() >= 8
    assert broken == 0
