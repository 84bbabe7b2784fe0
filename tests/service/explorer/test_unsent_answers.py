"""Answers that wait while the service is slow or away: they are counted, and closing the tab loses none."""

import threading

import pytest

from starshl.labeling import Lesson

from .acting import eventually, focused, labels, lesson, name_by_typing, press, until


@pytest.fixture
def slow(monkeypatch):
    """An event; until it is set, answers wait in the service."""
    go_on, answer = threading.Event(), Lesson.answer

    def wait(*given, **named):
        assert go_on.wait(180)
        return answer(*given, **named)

    monkeypatch.setattr(Lesson, "answer", wait)
    yield go_on
    go_on.set()


def give(page, *keys):
    """Press keys, each about the next item; return the ids of these items."""
    ids = []
    for key in keys:
        ids.append(focused(page))
        page.keyboard.press(key)
        until(page, f"document.activeElement.dataset.id !== '{ids[-1]}'")
    return ids


def begun(page, name):
    """Prepare a lesson with two classes; return the labels that were given for that."""
    lesson(page)
    first = focused(page)
    name_by_typing(page, "ring")
    second = focused(page)
    name_by_typing(page, "disk")
    return {first: "ring", second: "disk"}


def wait_for(page, site, name, expected):
    eventually(page, lambda: labels(page, site, name) == expected, f"labels {expected}")


def test_answers_that_wait_are_counted_and_closing_the_tab_asks_and_loses_none(visit, site, slow):
    slow.set()
    page, other = visit("/explore/quick/teach"), visit("/")
    before = begun(page, "quick")
    slow.clear()
    ids = give(page, "1", "2", "2", "1")
    until(page, "document.querySelector('#unsent').textContent === '4 waiting to be stored'")
    assert page.is_visible("#unsent")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.close(run_before_unload=True)
    eventually(other, lambda: asked, "the browser asks")
    assert asked == ["beforeunload"]
    slow.set()
    wait_for(other, site, "quick", before | dict(zip(ids, ["ring", "disk", "disk", "ring"], strict=True)))


def test_a_tab_without_waiting_answers_closes_without_a_question(visit, site):
    page, other = visit("/explore/shared/teach"), visit("/")
    begun(page, "shared")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    with page.expect_event("close"):
        page.close(run_before_unload=True)
    assert asked == []
    assert other.title()


def test_answers_that_could_not_be_sent_are_stored_at_the_next_visit(visit, site):
    page = visit("/explore/careful/teach")
    before = begun(page, "careful")
    page.context.set_offline(True)
    ids = give(page, "1", "2")
    until(page, "document.querySelector('#unsent').textContent === '2 waiting to be stored'")
    page.on("dialog", lambda dialog: dialog.accept())
    with page.expect_event("close"):
        page.close(run_before_unload=True)
    again = page.context.new_page()
    page.context.set_offline(False)
    again.goto(f"{site}/explore/careful/teach")
    lesson(again)
    wait_for(again, site, "careful", before | {ids[0]: "ring", ids[1]: "disk"})
    until(again, "document.querySelector('#unsent').hidden")
    assert again.evaluate("Object.keys(localStorage).length") == 0


def test_answers_given_while_the_service_is_away_are_sent_when_it_is_back(visit, site):
    page = visit("/explore/fresh/teach")
    before = begun(page, "fresh")
    page.route("**/teach/changes", lambda route: route.abort())
    ids = give(page, "2", "1")
    until(page, "document.querySelector('#status').textContent.includes('does not answer')")
    page.unroute("**/teach/changes")
    wait_for(page, site, "fresh", before | {ids[0]: "disk", ids[1]: "ring"})


def test_one_refused_answer_comes_back_and_the_others_are_stored(visit, site):
    page = visit("/explore/twice/teach")
    before = begun(page, "twice")
    page.evaluate("() => { document.querySelector('#proposals > li[aria-selected=\"true\"]').dataset.id = '999999'; }")
    page.keyboard.type("strange")
    press(page, "Enter")
    assert "999999" in page.text_content("#status")
    assert page.input_value("#label") == "strange"
    assert labels(page, site, "twice") == before
