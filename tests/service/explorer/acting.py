"""What a person does on the pages, and sees there."""

import time

PATIENCE = 120  # seconds; what is prepared first compiles its loops, which takes a quarter of that on a busy machine
MILLISECONDS_TO_SEE = 350  # a page ignores keys about what has stood on it for less
_NOTICE_THE_END = """() => {
  window.isSettled = false;
  document.addEventListener("settled", () => { window.isSettled = true; }, { once: true });
}"""


def lesson(page):
    """Wait until a lesson is prepared, and look at it."""
    page.wait_for_selector("#proposals")
    until(page, "document.activeElement.matches('[role=option]')")
    page.wait_for_timeout(MILLISECONDS_TO_SEE)


def press(page, *keys):
    """Press keys that change a lesson, and wait until the page shows what follows."""
    page.evaluate(_NOTICE_THE_END)
    for key in keys:
        page.keyboard.press(key)
    until(page, "window.isSettled")


def until(page, expression):
    """Wait until an expression is true; the pages forbid what wait_for_function does."""
    eventually(page, lambda: page.evaluate(expression), expression)


def eventually(page, is_true, what):
    """Wait until a function returns something true, while the browser goes on; ``what`` says what is waited for."""
    end = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < end, f"not in time: {what}"
        page.wait_for_timeout(50)


def focused(page):
    """Return the id of the item that has the focus."""
    return int(page.evaluate("document.activeElement.dataset.id"))


def labels(page, site, name):
    answer = page.request.get(f"{site}/api/v1/collections/{name}/items?limit=1000").json()
    return {item["id"]: item["label"] for item in answer["items"] if item["label"] is not None}


def name_by_typing(page, name):
    """Label what is selected by typing a name that is no class yet."""
    page.keyboard.type(name)
    press(page, "Enter")


def open_map(visit, name):
    """Open the map of a collection, and wait until it is drawn."""
    page = visit(f"/explore/{name}/map")
    page.wait_for_selector("#map")
    until(page, "document.documentElement.dataset.ready === 'map'")
    return page


def draw_around(page, corners):
    """Select what lies inside a path on the map, whose corners are shares of its width and height."""
    page.click('[data-mode="select"]')
    box = page.locator("#map").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


WHOLE_MAP = ((0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99))
