"""The explorer as a person uses it, in a real browser."""

import re

import pytest

from .acting import eventually, focused, labels, lesson, name_by_typing, press, until


def guessed_right(page, truth):
    """Return which share of the shown members of classes is right, in truth."""
    shown = page.eval_on_selector_all(
        ".small-options > li", "all => all.map((each) => [Number(each.dataset.id), each.dataset.predicted])"
    )
    return sum(truth[item] == guess for item, guess in shown) / len(shown)


def test_fifty_labels_by_keyboard_alone_make_the_rest_right(visit, site, truth):
    page = visit("/")
    for _ in range(100):
        page.keyboard.press("Tab")
        if (page.evaluate("document.activeElement.getAttribute('href')") or "").endswith("/explore/lesson/teach"):
            break
    page.keyboard.press("Enter")
    lesson(page)
    shares, keys = [], {}
    for number in range(50):
        kind = truth[focused(page)]
        if kind in keys:
            press(page, keys[kind])
        else:
            name_by_typing(page, kind)
            keys[kind] = str(len(keys) + 1)
        if number in (1, 49):
            shares.append(guessed_right(page, truth))
    given = labels(page, site, "lesson")
    assert len(given) == 50
    assert all(truth[item] == label for item, label in given.items())
    assert shares[0] < 0.8, "two labels cannot name three kinds"
    assert shares[1] > 0.9
    assert "50" in page.text_content(".labeling .facts")


def test_undo_brings_back_what_was_and_a_reload_loses_nothing(visit, site):
    page = visit("/explore/careful/teach")
    lesson(page)
    first = focused(page)
    name_by_typing(page, "ring")
    second = focused(page)
    press(page, "1")
    assert labels(page, site, "careful") == {first: "ring", second: "ring"}
    press(page, "Backspace")
    assert labels(page, site, "careful") == {first: "ring"}
    assert focused(page) == second
    page.reload()
    lesson(page)
    assert page.text_content(".class-name") == "ring"
    press(page, "Control+z")
    assert labels(page, site, "careful") == {}


def test_several_items_are_labeled_at_once_and_skipped_ones_do_not_come_back(visit, site):
    page = visit("/explore/fresh/teach")
    lesson(page)
    ids = [int(item) for item in page.eval_on_selector_all("#proposals > li", "all => all.map((e) => e.dataset.id)")]
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator('#proposals [aria-selected="true"]').count() == 3
    page.fill("#label", "thing")
    press(page, "Enter")
    assert set(labels(page, site, "fresh")) == set(ids[:3])
    skipped = focused(page)
    press(page, "Delete")
    shown = page.eval_on_selector_all("#proposals > li", "all => all.map((e) => Number(e.dataset.id))")
    assert skipped not in shown
    page.locator("#proposals > li").nth(1).click()
    page.locator("#proposals > li").nth(3).click(modifiers=["Control"])
    assert page.locator('#proposals [aria-selected="true"]').count() == 2


def test_an_item_that_is_proposed_and_also_a_member_of_its_class_is_labeled_once(visit, site):
    page = visit("/explore/twice/teach")
    lesson(page)
    name_by_typing(page, "ring")
    before, item = labels(page, site, "twice"), focused(page)
    # A board that is shown again selects both places of an item that was selected.
    proposed = "document.querySelector('#proposals > li')"
    page.evaluate(f"() => document.querySelector('.small-options').append({proposed}.cloneNode(true))")
    assert page.locator(f'[data-id="{item}"][aria-selected="true"]').count() == 2
    press(page, "1")
    assert labels(page, site, "twice") == before | {item: "ring"}


def test_keys_that_are_pressed_before_an_answer_arrives_are_about_the_next_item(visit, site):
    page = visit("/explore/quick/teach")
    lesson(page)
    name_by_typing(page, "ring")
    name_by_typing(page, "disk")
    before, shown = labels(page, site, "quick"), [focused(page)]
    held = []
    page.route("**/teach/changes", lambda route: held.append(route))
    page.keyboard.press("1")
    until(page, f"document.activeElement.dataset.id !== '{shown[0]}'")
    shown.append(focused(page))
    page.keyboard.press("2")
    until(page, f"document.activeElement.dataset.id !== '{shown[1]}'")
    shown.append(focused(page))
    page.keyboard.type("sq")
    for _ in range(2):
        eventually(page, lambda: held, "an answer is sent")
        held.pop().continue_()
    until(page, "document.querySelector('.labeling .facts b').textContent === '4'")
    assert page.input_value("#label") == "sq", "what is being typed stays"
    assert page.evaluate("document.activeElement.id") == "label"
    assert page.get_attribute('#proposals [aria-selected="true"]', "data-id") == str(shown[2])
    assert labels(page, site, "quick") == before | {shown[0]: "ring", shown[1]: "disk"}


def test_a_label_that_is_refused_stays_where_it_was_typed(visit, site):
    page = visit("/explore/quick/teach")
    lesson(page)
    item = focused(page)
    page.route("**/teach/changes", lambda route: route.fulfill(status=422, json={"detail": "No such class."}))
    name_by_typing(page, "strange")
    until(page, "document.querySelector('#status').textContent === 'No such class.'")
    assert page.input_value("#label") == "strange"
    assert focused(page) == item


def test_two_tabs_show_the_same_lesson(visit, site):
    one, other = visit("/explore/shared/teach"), visit("/explore/shared/teach")
    lesson(one)
    lesson(other)
    name_by_typing(one, "round")
    other.bring_to_front()
    other.wait_for_selector(".class-name")
    assert other.text_content(".class-name") == "round"
    other.keyboard.press("ArrowRight")  # the item that both saw stays selected
    press(other, "1")
    until(one, "document.querySelector('.labeling .facts b').textContent === '2'")
    assert len(labels(one, site, "shared")) == 2


def test_a_click_shows_neighbors_and_the_address_can_be_shared(visit):
    page = visit("/explore/album")
    page.hover(".grid .tile >> nth=3")
    page.click(".grid .corner a >> nth=3")
    page.wait_for_url(re.compile(r"\?item=3$"))
    title = page.text_content("#query")
    assert page.locator('[aria-label="Most similar"] .hit').count() == 10
    page.click("[data-methods]")
    page.wait_for_selector('[aria-label="ITQ"]')
    assert page.locator('[aria-label="Codes"] .hit').count() == 10
    assert page.locator('[aria-label="Vectors"] .right').count() >= 5
    other = visit(page.url.removeprefix(page.url.split("/explore")[0]))
    assert other.text_content("#query") == title
    page.go_back()
    until(page, "!document.querySelector('#methods')")
    page.go_back()
    page.wait_for_selector("#all")


def test_sliders_and_filters_change_what_is_found_without_a_reload(visit):
    page = visit("/explore/album?item=0")
    page.evaluate("window.isTheSamePage = true")
    page.locator("#k").fill("4")
    until(page, "document.querySelectorAll('#neighbors .hit').length === 4")
    page.fill('[name="field.sheet.max"]', "0")
    page.keyboard.press("Enter")
    page.wait_for_url("**field.sheet.max=0**")
    until(
        page, "[...document.querySelectorAll('#neighbors .hit .tile')].every((e) => /item=[123]?\\d(&|$)/.test(e.href))"
    )
    page.check('[name="label"][value="cross"]', force=True)
    page.wait_for_url("**label=cross**")
    until(page, "[...document.querySelectorAll('#neighbors .hit .chip')].every((e) => e.textContent === 'cross')")
    page.locator("#radius").fill("0")
    page.wait_for_url("**within=1**")
    assert page.evaluate("window.isTheSamePage")


def test_why_shows_bits_that_agree_and_differ(visit):
    page = visit("/explore/album?item=0")
    page.hover("#neighbors .hit >> nth=5")
    page.locator(".why").nth(5).click()
    page.wait_for_url("**hit=**")
    until(page, "document.activeElement.id === 'why'")
    told = int(re.match(r"\s*(\d+) of 16 bits", page.text_content("#match .match-head p")).group(1))
    assert page.locator("#match .bits >> nth=1").locator(".differs").count() == told


def test_a_picture_is_searched_by_upload_and_a_file_that_is_none_is_refused(visit, pictures, tmp_path):
    page = visit("/explore/album")
    page.set_input_files("#picture", pictures / "007.png")
    page.wait_for_url("**upload=**")
    assert page.text_content("#query") == "007.png"
    assert "item=7&" in page.locator("#neighbors .hit .tile").first.get_attribute("href") + "&"
    bad = tmp_path / "notes.png"
    bad.write_text("these are words")
    page.set_input_files("#picture", bad)
    page.wait_for_selector(".problem")
    assert "not" in page.text_content(".problem .detail")


@pytest.mark.parametrize("path", ["/explore/nothing", "/explore/album?item=9999", "/explore/album?item=x"])
def test_a_mistaken_address_leads_to_a_page_that_helps(visit, path):
    page = visit(path)
    assert page.locator(".problem h1").count() == 1
    page.click("text=All collections")
    page.wait_for_selector(".collection")


def test_an_older_board_does_not_replace_a_newer_one(visit):
    page = visit("/explore/stale/teach")
    lesson(page)
    for name in ("early", "later"):
        name_by_typing(page, name)
    held = []
    page.route("**/teach?part=board*", lambda route: route.continue_() if held else held.append(route))
    page.click("text=Most sure")
    eventually(page, lambda: held, "the page asks for its board")
    older = held[0].fetch()
    name_by_typing(page, "late")
    newer = int(page.get_attribute(".lesson", "data-version"))
    with page.expect_response("**/teach?part=board*"):
        held[0].fulfill(response=older)
    page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 100))")
    assert int(page.get_attribute(".lesson", "data-version")) >= newer


def test_a_list_that_refreshes_itself_does_not_interrupt_a_search(visit):
    page = visit("/explore/album")
    held = []
    page.route("**item=5&part=neighbors", lambda route: held.append(route))
    page.hover(".grid li >> nth=5")
    page.click(".grid li >> nth=5 >> [data-search]")
    eventually(page, lambda: held, "the search is on its way")
    page.evaluate("document.dispatchEvent(new CustomEvent('outdated'))")
    page.wait_for_timeout(300)
    held.pop().continue_()
    page.wait_for_selector("#query")
    assert "item=5" in page.url


def test_a_part_that_cannot_be_had_does_not_stay_gray(visit):
    page = visit("/explore/album")
    page.route("**/*part=details*", lambda route: route.abort())
    page.hover(".grid .tile >> nth=3")
    page.click(".grid .corner a >> nth=3")
    page.wait_for_selector("#status:not(:empty)")
    until(page, "!document.getElementById('details').classList.contains('busy')")
    assert page.text_content("#query")


def test_a_preparation_can_be_canceled_and_begun_again(visit, site):
    page = visit("/")
    page.request.get(f"{site}/explore/idle/teach")
    answer = page.request.post(f"{site}/explore/idle/teach/cancel", headers={"Origin": site})
    assert answer.ok or answer.status == 409, "it was over before it could be canceled"
    page.goto(f"{site}/explore/idle/teach")
    until(page, "document.querySelector('#proposals') || document.querySelector('.warning')")
    if page.locator(".warning").count():
        page.click("text=Try again")
    lesson(page)


PAGES = [
    "/",
    "/explore/album",
    "/explore/album?item=0&hit=3&methods=1",
    "/explore/album/teach",
    "/explore/album/map",
    "/explore/nothing",
]
PAGES += ["/explore/album/model", "/explore/album/classes?label=circle"]


def settle(page, path):
    """Wait until a page shows all it has."""
    if path.endswith("teach"):
        lesson(page)
    if "item=" in path:
        page.wait_for_selector('[aria-label="ITQ"]')
    if path.endswith("map"):
        page.wait_for_selector("#map")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_keep_the_rules_of_accessibility(visit, path, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(path, color_scheme=scheme)
    settle(page, path)
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_wider_than_a_phone(visit, path):
    page = visit(path, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    settle(page, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
