"""How tests ask for pages, and wait for what is prepared in the background."""

import time
import uuid

PAGE = {"Accept": "text/html"}


def page(ask, path, **settings):
    """Ask for a page as a browser does."""
    return ask("GET", path, root="", headers=PAGE, **settings)


def waited(ask_once, is_there, seconds=60):
    """Ask until what is waited for is there; return that answer."""
    end = time.monotonic() + seconds
    while not is_there(found := ask_once()):
        assert time.monotonic() < end, found
        time.sleep(0.02)
    return found


def lesson(ask):
    """Wait until the lesson is prepared; return its first page."""
    return waited(lambda: page(ask, "/explore/things/teach").text, lambda text: "data-version" in text)


def change(ask, action, ids=(), label=None, **settings):
    """Send one change of the lesson, as the page does."""
    sent = {"key": uuid.uuid4().hex, "action": action, "ids": [str(item) for item in ids], "label": label}
    return ask("POST", "/explore/things/teach/changes", root="", json={"changes": [sent]}, **settings)


def current_codes(ask):
    """Wait until the codes follow the labels of the lesson."""
    state = "/explore/things/teach/state"
    waited(lambda: ask("GET", state, root="").json(), lambda state: state["codes"] == "current")


def ended(ask, response, seconds=60):
    """Wait until a job of the collection things is over; return it."""
    assert response.status_code == 202, response.text
    path = f"/collections/things/jobs/{response.json()['id']}"
    return waited(lambda: ask("GET", path).json(), lambda job: job["state"] not in ("waiting", "running"), seconds)
