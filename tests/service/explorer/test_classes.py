"""Classes are renamed, merged and removed where a person looks at them, and every change can be taken back."""

import pytest

from .acting import eventually, labels, lesson, open_map, press, until

NAME = "renamed"


@pytest.fixture
def before(chromium, site, truth):
    """The first 60 items have labels, and the changes of earlier tests are undone."""
    context = chromium.new_context()
    root = f"{site}/api/v1/collections/{NAME}"
    for each in reversed(context.request.get(f"{root}/classes").json()["changes"]):
        if not each["undone"]:
            assert context.request.post(f"{root}/classes/undo", data={"number": each["number"]}).ok
    items = [{"id": item, "label": truth[item] if item < 60 else None} for item in range(len(truth))]
    assert context.request.put(f"{root}/labels", data={"items": items}).ok
    yield {item: truth[item] for item in range(60)}
    context.close()


def change(page, typed, button):
    """Type into the dialog, and press the button that says what will happen."""
    page.wait_for_selector("#class-dialog[open] #into")
    page.fill("#into", typed)
    assert page.locator("#class-dialog .actions button:visible").first.inner_text() == button
    page.keyboard.press("Enter")
    page.wait_for_selector("#class-dialog", state="hidden")


def named(before, **names):
    return {item: names.get(label, label) for item, label in before.items()}


def test_a_class_is_renamed_from_its_list_in_explore_and_the_message_undoes_it(visit, site, before):
    page = visit(f"/explore/{NAME}?label=circle&which=given")
    page.click("text=Rename or merge >> nth=0")
    change(page, "ring", "Rename")
    until(page, "document.querySelector('#all').textContent.startsWith('ring')")
    assert labels(page, site, NAME) == named(before, circle="ring")
    assert set(page.locator(".grid .chip").all_text_contents()) == {"ring"}
    page.click("#status button")
    eventually(page, lambda: labels(page, site, NAME) == before, "the class is called circle")
    until(page, "document.querySelector('#all').textContent.startsWith('circle')")


def test_a_name_that_is_there_already_merges_and_says_so_on_the_button(visit, site, before):
    page = visit(f"/explore/{NAME}/teach")
    lesson(page)
    page.click('[aria-label="Rename, merge or remove square"]')
    change(page, "CROSS", "Merge into cross")
    eventually(page, lambda: labels(page, site, NAME) == named(before, square="cross"), "square is part of cross")
    until(page, "!document.querySelector('.class[data-label=square]')")
    page.click("#status button")
    eventually(page, lambda: labels(page, site, NAME) == before, "square is a class again")
    page.wait_for_selector(".class[data-label=square]")


def test_a_class_keeps_its_key_under_its_new_name_and_keys_in_the_dialog_label_nothing(visit, site, before):
    page = visit(f"/explore/{NAME}/teach")
    lesson(page)
    key = page.text_content(".class[data-label=circle] kbd")
    page.click('[aria-label="Rename, merge or remove circle"]')
    page.wait_for_selector("#class-dialog[open] #into")
    page.focus("#class-dialog [value=remove]")
    for pressed in ("1", "2", "-", "Backspace"):
        page.keyboard.press(pressed)
    change(page, "ring", "Rename")
    page.wait_for_selector(".class[data-label=ring] kbd")
    assert page.text_content(".class[data-label=ring] kbd") == key
    assert labels(page, site, NAME) == named(before, circle="ring")
    page.focus("#proposals [aria-selected=true]")
    page.wait_for_timeout(400)
    press(page, key)
    now = labels(page, site, NAME)
    assert [now[item] for item in now if item not in before] == ["ring"]


def test_a_class_is_removed_from_the_legend_of_the_map_and_comes_back(visit, site, before):
    page = open_map(visit, NAME)
    page.click('#legend [aria-label="Rename, merge or remove cross"]')
    page.wait_for_selector("#class-dialog[open] #into")
    page.click("#class-dialog [value=remove]")
    rest = {item: label for item, label in before.items() if label != "cross"}
    eventually(page, lambda: labels(page, site, NAME) == rest, "cross is removed")
    until(page, "!document.querySelector('[data-class=cross]')")
    page.click("#status button")
    eventually(page, lambda: labels(page, site, NAME) == before, "cross is a class again")


def test_answers_that_wait_are_not_stored_under_a_name_that_has_changed_meanwhile(visit, site, before):
    page = visit(f"/explore/{NAME}/teach")
    lesson(page)
    held = []
    page.route("**/teach/changes", lambda route: held.append(route))
    page.keyboard.press(page.text_content(".class[data-label=circle] kbd"))
    eventually(page, lambda: held, "the answer is on its way")
    page.click('[aria-label="Rename, merge or remove circle"]')
    until(page, "document.querySelector('#status').textContent.includes('on their way')")
    assert page.locator("#class-dialog[open]").count() == 0
    held.pop().continue_()
    until(page, "document.getElementById('unsent').hidden")


def test_among_many_classes_the_most_used_come_first_and_one_is_found_by_a_part_of_its_name(visit, site, chromium):
    context = chromium.new_context()
    names = [f"kind {number:02}" for number in range(30)]
    items = [{"id": item, "label": names[min(item, 29)]} for item in range(40)]
    items += [{"id": item, "label": None} for item in range(40, 240)]
    assert context.request.put(f"{site}/api/v1/collections/{NAME}/labels", data={"items": items}).ok
    context.close()
    page = visit(f"/explore/{NAME}/teach")
    lesson(page)
    assert page.locator(".class").first.get_attribute("data-label") == names[-1]
    page.fill("#find-class", "d 17")
    shown = page.locator(".classes li:visible .class-name")
    assert shown.all_text_contents() == ["kind 17"]
    item = int(page.get_attribute("#proposals [aria-selected=true]", "data-id"))
    page.click(".class[data-label='kind 17']")
    eventually(page, lambda: labels(page, site, NAME).get(item) == "kind 17", "the item is labeled")
    until(page, "document.getElementById('unsent').hidden")
    assert page.input_value("#find-class") == "d 17"
    assert shown.all_text_contents() == ["kind 17"]
