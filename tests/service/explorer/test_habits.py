"""What hands do by habit, slowly and fast: no digit, Enter, click or beginning of a name labels what nobody meant."""

import pytest

from .acting import (
    MILLISECONDS_TO_SEE,
    WHOLE_MAP,
    draw_around,
    eventually,
    focused,
    labels,
    lesson,
    name_by_typing,
    open_map,
    press,
    until,
)

SLOW, FAST = 400, 0  # milliseconds between keys
DIGITS = {"circle": "0", "cross": "1", "square": "7"}
WORDS = {"circle": "Circle", "cross": "Cross", "square": "Square"}


def stored(page, site, name, expected):
    """Wait until nothing is on its way, and compare labels."""
    until(page, "document.querySelector('#unsent').hidden && !document.querySelector('#board').matches('.busy')")
    assert labels(page, site, name) == expected


def keys(page, *pressed, pause=FAST):
    """Press keys, whether or not they change something."""
    for key in pressed:
        page.keyboard.press(key)
        page.wait_for_timeout(pause)


def answer(page, truth, namings, pause):
    """Type the name of what is selected, and Enter; return the label that is meant."""
    item = focused(page)
    name = namings[truth[item]]
    page.keyboard.type(name, delay=pause / 4)
    page.wait_for_timeout(pause)
    page.keyboard.press("Enter")
    page.wait_for_timeout(pause)
    return {item: name}


def notice(page):
    return page.text_content("#status")


def look(page):
    page.wait_for_timeout(MILLISECONDS_TO_SEE)


@pytest.mark.parametrize(("name", "pause"), [("lesson", SLOW), ("fresh", FAST)])
def test_names_that_are_digits_label_what_was_seen_and_nothing_else(visit, site, truth, name, pause):
    page = visit(f"/explore/{name}/teach")
    page.on("dialog", lambda dialog: dialog.accept())
    lesson(page)
    meant = {}
    for number in range(14):
        meant |= answer(page, truth, DIGITS, pause)
        if number == 7:
            page.reload()
            lesson(page)
    assert len(meant) == 14
    stored(page, site, name, meant)


@pytest.mark.parametrize(("name", "pause"), [("careful", SLOW), ("quick", FAST)])
def test_enter_after_a_number_key_does_not_accept_the_next_guess(visit, site, truth, name, pause):
    page = visit(f"/explore/{name}/teach")
    page.on("dialog", lambda dialog: dialog.accept())
    lesson(page)
    meant, numbers = {}, {}
    for number in range(14):
        item = focused(page)
        word = WORDS[truth[item]]
        meant[item] = word
        if word in numbers:
            keys(page, numbers[word], "Enter", pause=pause)
        else:
            name_by_typing(page, word)
            numbers[word] = str(len(numbers) + 1)
        if number == 7:
            page.reload()
            lesson(page)
    stored(page, site, name, meant)
    look(page)
    guess = page.get_attribute('#proposals [aria-selected="true"]', "data-predicted")
    meant[focused(page)] = guess
    press(page, "Enter", "Enter")
    stored(page, site, name, meant)


def test_the_key_of_a_new_class_works_before_the_service_knows_the_class(visit, site):
    page = visit("/explore/stale/teach")
    lesson(page)
    held = []
    page.route("**/teach/changes", lambda route: held.append(route))
    ids = [focused(page)]
    page.keyboard.type("ring")
    page.keyboard.press("Enter")
    ids.append(focused(page))
    page.keyboard.press("1")
    ids.append(focused(page))
    assert page.text_content(".class kbd") == "1"
    page.keyboard.press("Enter")
    assert "Enter again" in notice(page)
    page.keyboard.press("4")
    assert "No class has the key 4" in notice(page)
    assert page.input_value("#label") == ""
    keys(page, "Enter")
    assert focused(page) == ids[2]
    page.keyboard.type("disk")
    page.keyboard.press("Enter")
    page.keyboard.press("2")
    assert [page.locator(".class kbd").nth(place).text_content() for place in range(2)] == ["1", "2"]
    for _ in range(2):
        eventually(page, lambda: held, "answers are sent")
        held.pop().continue_()
    until(page, "document.querySelector('.labeling .facts b').textContent === '4'")
    given = labels(page, site, "stale")
    assert {item: given[item] for item in ids} == dict(zip(ids, ["ring", "ring", "disk"], strict=True))
    assert sorted(given.values()) == ["disk", "disk", "ring", "ring"]


def test_a_key_stays_with_its_class_whatever_others_do(visit, site):
    page = visit("/explore/shared/teach")
    lesson(page)
    for name in ("ring", "disk", "line"):
        name_by_typing(page, name)
    shown = dict(zip(*[iter(page.locator(".class kbd, .class-name").all_text_contents())] * 2, strict=True))
    assert shown == {"1": "ring", "2": "disk", "3": "line"}
    (first,) = (item for item, label in labels(page, site, "shared").items() if label == "ring")
    item = focused(page)
    other = {"items": [{"id": first, "label": "arc"}]}
    assert page.request.put(f"{site}/api/v1/collections/shared/labels", data=other, headers={"Origin": site}).ok
    until(page, "document.querySelector('.class[data-label=arc]')")
    assert focused(page) == item
    keys(page, "1")
    assert "No class has the key 1" in notice(page)
    press(page, "2")
    assert labels(page, site, "shared")[item] == "disk"


def meaning(page, typed, names):
    """Return what a name means to the pages, among those of classes."""
    return page.evaluate(
        """async ([typed, names]) => {
          const address = document.querySelector('script[src*="teach.js"]').src.replace("teach.js", "naming.js");
          return (await import(address)).readName(typed, names);
        }""",
        [typed, names],
    )


def test_a_name_means_a_class_its_only_continuation_or_something_new(visit):
    page = visit("/explore/idle/teach")
    fruit = ["Apple", "Apricot", "Avocado", "Golden Delicious", "Pear"]
    for typed, expected in [
        ("Apple", "Apple"),
        ("apple", "Apple"),
        ("APP", "Apple"),
        ("gold", "Golden Delicious"),
        ("Melon", "Melon"),
        ("Pea", "Pear"),
        ("Kiwi", "Kiwi"),
    ]:
        assert meaning(page, typed, fruit)["label"] == expected, typed
    for typed, choices in [
        ("a", ["Apple", "Apricot", "Avocado"]),
        ("ap", ["Apple", "Apricot"]),
        ("Aple", ["Apple"]),
        ("Apples", ["Apple"]),
        ("Golden Delicous", ["Golden Delicious"]),
        ("Goldem Delicous", ["Golden Delicious"]),
        ("Paer", ["Pear"]),
        ("7", []),
    ]:
        found = meaning(page, typed, fruit)
        assert (found["label"], found["choices"], found["isNew"]) == (None, choices, True), typed
    assert meaning(page, "7", [])["label"] == "7"
    assert meaning(page, "1", ["10", "12"])["label"] == "1", "a number is typed whole"
    assert meaning(page, "1", ["Apple", "7"])["label"] is None, "it was the key of Apple until 7 became a class"
    assert meaning(page, "sheet 1", ["sheet 10"])["label"] == "sheet 1"
    assert meaning(page, "sheet 2", ["sheet 1"])["label"] == "sheet 2"
    assert meaning(page, "sh", ["sheet 1"])["label"] == "sheet 1"
    assert meaning(page, "ship", ["Ship", "SHIP"]) | {"why": ""} == {
        "label": None,
        "choices": ["Ship", "SHIP"],
        "isNew": False,
        "why": "",
    }


def test_the_beginning_of_a_name_is_the_class_and_a_new_class_must_be_chosen(visit, site):
    page = visit("/explore/twice/teach")
    lesson(page)
    meant = {}

    def named(label, *pressed, typed=""):
        meant[focused(page)] = label
        page.keyboard.type(typed)
        press(page, *pressed)
        stored(page, site, "twice", meant)

    named("Apple", "Enter", typed="Apple")
    item = focused(page)
    page.keyboard.type("app")
    assert "Apple" in page.text_content("#meaning")
    page.keyboard.press("Enter")
    meant[item] = "Apple"
    until(page, "window.isSettled")
    stored(page, site, "twice", meant)
    named("app", "ArrowDown", "Enter", typed="app")
    page.keyboard.type("Applw")
    keys(page, "Enter", "Enter")
    assert "resembles" in notice(page)
    assert page.input_value("#label") == "Applw"
    stored(page, site, "twice", meant)
    page.keyboard.press("Escape")
    page.keyboard.type("ap")
    keys(page, "Enter", "Enter")
    assert "begin with" in notice(page)
    stored(page, site, "twice", meant)
    meant[int(page.get_attribute('#proposals [aria-selected="true"]', "data-id"))] = "Apple"
    press(page, "ArrowDown", "Enter")
    stored(page, site, "twice", meant)


@pytest.mark.parametrize(("name", "pause"), [("unread", FAST), ("unread", SLOW)])
def test_a_name_that_waits_for_a_choice_takes_no_letters_of_the_next_name(visit, site, name, pause):
    page = visit(f"/explore/{name}/teach")
    lesson(page)
    if "Bear" not in labels(page, site, name).values():
        name_by_typing(page, "Bear")
        name_by_typing(page, "Bison")
    before = labels(page, site, name)
    for word in ("Pear", "Plum"):
        keys(page, *word, "Enter", pause=pause / 4)
        assert page.input_value("#label") == "Pear"
    assert "resembles" in notice(page)
    stored(page, site, name, before)
    page.fill("#label", "B")
    keys(page, "Enter")
    look(page)
    keys(page, "i")
    assert page.input_value("#label") == "Bi", "letters that go on with a name that there is are taken"


def test_a_held_key_a_fast_second_enter_and_a_double_click_count_once(visit, site):
    page = visit("/explore/brushed/teach")
    lesson(page)
    meant = {focused(page): "ring"}
    name_by_typing(page, "ring")
    meant[focused(page)] = "ring"
    for _ in range(4):
        page.keyboard.down("1")
    page.keyboard.up("1")
    stored(page, site, "brushed", meant)
    page.locator("#proposals > li").nth(2).click()
    look(page)
    meant[focused(page)] = "ring"
    for _ in range(3):
        page.keyboard.press("Enter")
    stored(page, site, "brushed", meant)
    look(page)
    meant[focused(page)] = "ring"
    page.dblclick(".class")
    stored(page, site, "brushed", meant)


def test_an_item_that_is_seen_stays_selected_when_others_change_the_lesson(visit, site):
    page = visit("/explore/album/teach")
    lesson(page)
    member = page.locator(".small-options > li").first
    item = int(member.get_attribute("data-id"))
    member.click()
    for seen in (item, int(page.get_attribute("#proposals > li:nth-child(3)", "data-id"))):
        page.locator(f'[data-id="{seen}"]').first.click()
        version = page.get_attribute(".lesson", "data-version")
        change = {"items": [{"id": seen, "label": "cross"}, {"id": 1, "label": "cross"}, {"id": 2, "label": "circle"}]}
        assert page.request.put(f"{site}/api/v1/collections/album/labels", data=change, headers={"Origin": site}).ok
        until(page, f"document.querySelector('.lesson').dataset.version > {version}")
        chosen = page.locator('[aria-selected="true"]').evaluate_all("all => all.map((each) => each.dataset.id)")
        assert set(chosen) == {str(seen)}


def test_text_in_the_box_is_finished_before_keys_count(visit, site):
    page = visit("/explore/stale/teach")
    lesson(page)
    before = labels(page, site, "stale")
    page.keyboard.type("ri")
    page.locator("#proposals > li").nth(2).click()
    item = focused(page)
    keys(page, "1", "-", "Backspace")
    assert page.input_value("#label") == "ri1"
    keys(page, "Backspace")
    page.locator("#proposals > li").nth(2).click()
    press(page, "Enter")
    stored(page, site, "stale", before | {item: "ring"})
    assert page.input_value("#label") == ""


def test_a_key_right_after_an_undo_waits_for_what_the_undo_brings_back(visit, site):
    page = visit("/explore/stale/teach")
    lesson(page)
    before, item = labels(page, site, "stale"), focused(page)
    press(page, "1")
    held = []
    page.route("**/teach/changes", lambda route: held.append(route))
    page.keyboard.press("Backspace")
    keys(page, "2")
    assert "undo" in notice(page)
    eventually(page, lambda: held, "the undo is sent")
    held.pop().continue_()
    until(page, f"document.activeElement.dataset.id === '{item}'")
    keys(page, "2")
    stored(page, site, "stale", before)
    page.unroute("**/teach/changes")
    look(page)
    press(page, "2")
    stored(page, site, "stale", before | {item: "disk"})


def test_items_whose_answers_wait_are_not_asked_for_again_after_a_reload(visit, site):
    page = visit("/explore/lesson/teach")
    page.on("dialog", lambda dialog: dialog.accept())
    lesson(page)
    item = focused(page)
    page.route("**/teach/changes", lambda route: None)
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    page.reload()
    lesson(page)
    assert page.locator(f'#proposals [data-id="{item}"]:not(.sent)').count() == 0
    assert focused(page) != item


def test_names_on_the_map_mean_the_same_as_in_a_lesson(visit, site):
    page = open_map(visit, "album")
    before = labels(page, site, "album")
    draw_around(page, WHOLE_MAP)
    page.wait_for_selector(".selected-grid li")
    for typed in ("c", "squaer"):
        page.fill("#label", typed)
        keys(page, "Enter", "Enter")
        assert "Choose" in notice(page)
    assert labels(page, site, "album") == before
    page.fill("#label", "sq")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#status').textContent.includes('labeled square')")
    assert set(labels(page, site, "album").values()) == {"square"}
