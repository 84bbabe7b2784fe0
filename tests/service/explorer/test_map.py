"""The map as a person uses it: to look at, to select from, to label, to open and to list."""

import itertools

import numpy as np
import pytest

from .acting import WHOLE_MAP, draw_around, eventually, labels, open_map, until

MANY = [f"class {number:02}" for number in range(15)]


def oklab(color):
    """Return a color, such as "rgb(1, 2, 3)", where equal distances look equal (Ottosson 2020)."""
    levels = np.array([int(part) for part in color[4:-1].split(",")]) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(
        linear @ np.array([[0.41222, 0.21190, 0.08830], [0.53633, 0.68070, 0.28172], [0.05145, 0.10740, 0.62998]])
    )
    return cones @ np.array([[0.21045, 1.97800, 0.02590], [0.79362, -2.42859, 0.78277], [-0.00407, 0.45059, -0.80868]])


@pytest.fixture
def classes(chromium, site):
    """A function that gives all items of "brushed" labels, in turn."""
    context = chromium.new_context()

    def give(names):
        items = [{"id": item, "label": names[item % len(names)]} for item in range(240)]
        assert context.request.put(f"{site}/api/v1/collections/brushed/labels", data={"items": items}).ok

    yield give
    context.close()


def legend(page):
    """Return the classes of the legend with the colors of their dots."""
    rows = (
        "all => all.map((each) => [each.dataset.class, getComputedStyle(each.querySelector('.dot')).backgroundColor])"
    )
    return page.eval_on_selector_all("#legend [data-class]", rows)


def selected(page):
    return page.text_content("#count")


def test_twelve_classes_have_colors_that_can_be_told_apart_and_others_are_lit_up(visit, classes):
    classes(MANY)
    page = open_map(visit, "brushed")
    shown = legend(page)
    assert [name for name, _ in shown] == MANY
    colors = [oklab(color) for _, color in shown]
    # .05 was the least distance of colors that somebody took for each other.
    assert min(np.linalg.norm(one - two) for one, two in itertools.combinations(colors[:12], 2)) > 0.18
    assert len({color for _, color in shown[12:]}) == 1
    before = page.locator("#map").screenshot()
    page.hover(f'[data-class="{MANY[-1]}"]')
    eventually(page, lambda: page.locator("#map").screenshot() != before, "the class is lit up")
    page.fill("#find-class", "14")
    assert page.locator("#legend li:visible .class-name").all_text_contents() == MANY[-1:]
    page.click(f'[data-class="{MANY[-1]}"]')
    assert selected(page) == "16"


def test_a_pointer_over_a_dot_shows_its_picture_and_name_and_a_second_click_opens_it(visit, classes):
    classes(["round", "square"])
    page = open_map(visit, "brushed")
    box = page.locator("#map").bounding_box()
    for x, y in itertools.product(np.linspace(0.2, 0.8, 25), repeat=2):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if "over" in (page.get_attribute("#map", "class") or ""):
            break
    page.wait_for_selector("#tip:not([hidden]) img")
    assert ".png" in page.text_content("#tip")
    assert page.text_content("#tip .chip") in {"round", "square"}
    page.mouse.down()
    page.mouse.up()
    until(page, "document.querySelector('#count').textContent === '1'")
    name = page.text_content("#selected .file")
    page.mouse.down()
    page.mouse.up()
    page.wait_for_selector("#viewer[open] h2")
    assert page.text_content("#viewer h2") == name


def test_dots_become_pictures_from_near(visit, classes):
    classes(["round", "square"])
    page = open_map(visit, "brushed")
    assert page.get_attribute("#map", "data-shows") == "dots"
    with page.expect_response("**/pictures/*"):
        for _ in range(6):
            page.click('[data-zoom="1.5"]')
    assert page.get_attribute("#map", "data-shows") == "pictures"
    page.click('[data-zoom="0"]')
    until(page, "document.querySelector('#map').dataset.shows === 'dots'")


def test_a_lasso_selects_what_it_is_drawn_around_and_nothing_else(visit, classes):
    classes(["round", "square"])
    page = open_map(visit, "brushed")
    counts = []
    # Both halves of the map by a path between them that is not straight, and so by no box.
    between = [(0.5, 0.01), (0.4, 0.5), (0.6, 0.7), (0.5, 0.99)]
    for corners in ([*between, (0.01, 0.99), (0.01, 0.01)], [*between, (0.99, 0.99), (0.99, 0.01)], WHOLE_MAP):
        draw_around(page, corners)
        counts.append(int(selected(page)))
    assert counts[0] + counts[1] == counts[2] == 240
    assert min(counts) > 0


def test_what_is_selected_is_labeled_and_that_is_undone(visit, site, classes):
    classes(["round", "square"])
    page = open_map(visit, "brushed")
    before = labels(page, site, "brushed")
    draw_around(page, WHOLE_MAP)
    page.wait_for_selector(".selected-grid li")
    assert page.locator("#undo").is_hidden()
    page.fill("#label", "drawing")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#legend').textContent.includes('drawing')")
    assert set(labels(page, site, "brushed").values()) == {"drawing"}
    until(page, "document.querySelector('#selected .chip').textContent === 'drawing'")
    page.click("#undo")
    eventually(page, lambda: labels(page, site, "brushed") == before, "the labels are as before")
    page.focus("#map")
    for key in ("+", "+", "ArrowLeft", "Escape"):
        page.keyboard.press(key)
    assert selected(page) == "none"


def test_what_is_selected_is_listed_and_searched_in_explore_and_the_way_back_leads_to_the_map(visit, classes):
    classes(["round", "square"])
    page = open_map(visit, "brushed")
    page.click('[data-class="round"]')
    page.click("text=Show in Explore")
    page.wait_for_selector("text=Selected on the map")
    assert "120" in page.text_content("#all")
    assert set(page.locator(".grid .chip").all_text_contents()) == {"round"}
    page.hover(".grid li:first-child")
    page.click(".grid li:first-child [data-search]")
    page.wait_for_selector("#query")
    assert set(page.locator(".grid .chip").all_text_contents()) == {"round"}
    page.go_back()
    page.wait_for_selector("#all")
    page.go_back()
    page.wait_for_selector("#map")


def test_a_late_answer_about_an_earlier_selection_is_not_shown(visit):
    page = open_map(visit, "brushed")
    held = []
    page.route("**/cards?*", lambda route: held.append(route))
    draw_around(page, WHOLE_MAP)
    until(page, "document.querySelector('#count').textContent === '240'")
    page.focus("#map")
    page.keyboard.press("Escape")
    eventually(page, lambda: held, "the page asks for cards")
    with page.expect_response("**/cards?*"):
        held.pop().continue_()
    page.wait_for_load_state("networkidle")
    assert page.text_content("#count") == "none"
    assert page.locator("#selected li").count() == 0
