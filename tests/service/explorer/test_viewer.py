"""The viewer and the size of pictures, as a person uses them in a real browser."""

import pytest

from .acting import until

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
IS_OPEN = "document.getElementById('viewer').open"


def look_at(page, place):
    """Open one of the items on a page, and wait until the viewer shows it."""
    page.locator(".grid .tile").nth(place).click()
    page.wait_for_selector("#viewer h2")


def title(page):
    return page.text_content("#viewer h2")


def goes_to(page, name):
    until(page, f"document.querySelector('#viewer h2')?.textContent === '{name}'")


def test_a_click_opens_an_item_and_arrows_go_through_the_page(visit):
    page = visit("/explore/album")
    look_at(page, 3)
    assert title(page) == "003.png"
    assert "003.png" in page.text_content(".viewer-fields")
    page.keyboard.press("ArrowRight")
    goes_to(page, "004.png")
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    goes_to(page, "000.png")
    assert page.locator(".viewer-previous").count() == 0
    page.click(".viewer-next")
    goes_to(page, "001.png")
    page.keyboard.press("Escape")
    until(page, f"!{IS_OPEN}")
    assert page.url.endswith("/explore/album")
    assert page.evaluate("document.activeElement.dataset.view").endswith("/items/1"), "where one looked last"


def test_back_closes_the_viewer_and_a_reload_keeps_it(visit):
    page = visit("/explore/album?label=circle")
    look_at(page, 2)
    shown = title(page)
    page.keyboard.press("ArrowRight")
    until(page, f"document.querySelector('#viewer h2').textContent !== '{shown}'")
    shown = title(page)
    page.reload()
    page.wait_for_selector("#viewer h2")
    assert title(page) == shown
    page.keyboard.press("ArrowLeft")
    until(page, f"document.querySelector('#viewer h2').textContent !== '{shown}'")
    page.go_back()
    until(page, f"!{IS_OPEN}")
    assert page.url.endswith("/explore/album?label=circle")
    assert page.locator("#all").count() == 1


def test_find_similar_leads_from_the_viewer_to_a_search_with_the_same_filters_and_back(visit):
    page = visit("/explore/album?k=4&label=cross")
    look_at(page, 1)
    shown = title(page)
    page.click("#viewer a[data-search]")
    until(page, f"!{IS_OPEN} && document.querySelector('#query')?.textContent === '{shown}'")
    assert "k=4" in page.url
    assert page.locator("#neighbors .hit").count() == 4
    assert set(page.locator("#neighbors .hit .chip").all_text_contents()) == {"cross"}
    page.go_back()
    page.wait_for_selector("#all")
    assert not page.evaluate(IS_OPEN)


def test_the_way_back_leads_to_where_the_page_was_scrolled(visit):
    page = visit("/explore/album")
    last = page.locator(".grid .corner a").last
    last.scroll_into_view_if_needed()
    before = page.evaluate("window.scrollY")
    assert before > 500
    last.click(force=True)
    page.wait_for_selector("#query")
    page.go_back()
    page.wait_for_selector("#all")
    until(page, f"Math.abs(window.scrollY - {before}) < 5")


def test_the_size_of_pictures_is_kept(visit):
    page = visit("/explore/album")
    width = "document.querySelector('.grid .picture').offsetWidth"
    small = page.evaluate(width)
    assert small > 120, "large enough to judge"
    page.locator("[data-size]").fill("320")
    large = page.evaluate(width)
    assert large > 1.5 * small
    page.reload()
    assert page.evaluate(width) == large
    assert page.input_value("[data-size]") == "320"


def test_an_address_of_an_item_that_is_gone_says_so(visit):
    page = visit("/explore/album#view=9999")
    until(page, "document.getElementById('status').textContent.includes('9999')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_viewer_keeps_the_rules_of_accessibility(visit, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit("/explore/album", color_scheme=scheme)
    look_at(page, 0)
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()


def test_the_viewer_fits_a_phone_and_a_swipe_goes_on(visit):
    page = visit("/explore/album", **PHONE)
    look_at(page, 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(
        """() => {
          const viewer = document.getElementById("viewer");
          const at = (x) => new Touch({ identifier: 1, target: viewer, clientX: x, clientY: 200 });
          viewer.dispatchEvent(new TouchEvent("touchstart", { touches: [at(300)], changedTouches: [at(300)] }));
          viewer.dispatchEvent(new TouchEvent("touchend", { touches: [], changedTouches: [at(120)] }));
        }"""
    )
    goes_to(page, "001.png")


def test_keys_in_the_viewer_label_nothing_on_the_page_below(visit, site):
    page = visit("/explore/album/map")
    until(page, "document.documentElement.dataset.ready === 'map'")
    page.evaluate("() => { document.addEventListener('keydown', () => { window.isLeaked = true; }); }")
    page.goto(f"{site}/explore/album/map#view=5")
    page.evaluate("location.reload()")
    page.wait_for_selector("#viewer h2")
    page.evaluate("() => { document.addEventListener('keydown', () => { window.isLeaked = true; }); }")
    for key in ("1", "Enter", "ArrowRight", "Backspace"):
        page.keyboard.press(key)
    assert not page.evaluate("window.isLeaked")
