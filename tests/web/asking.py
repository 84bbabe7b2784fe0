"""How tests ask for pages, and wait for what is prepared in the background."""

import time

PAGE = {"Accept": "text/html"}


def page(ask, path, **settings):
    """Ask for a page as a browser does."""
    return ask("GET", path, root="", headers=PAGE, **settings)


def lesson(ask):
    """Wait until the lesson is prepared; return its first page."""
    for _ in range(500):
        found = page(ask, "/explore/things/teach")
        if "data-version" in found.text:
            return found.text
    raise AssertionError(found.text)


def current_codes(ask):
    """Wait until the codes follow the labels of the lesson."""
    for _ in range(1000):
        if ask("GET", "/explore/things/teach/state", root="").json()["codes"] == "current":
            return
        time.sleep(0.02)
    raise AssertionError("The codes did not follow in time.")
