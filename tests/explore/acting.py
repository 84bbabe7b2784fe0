"""What a person does on the pages, and sees there."""

DONE = "addEventListener('settled', resolve, {once: true})"


def lesson(page):
    """Wait until a lesson is prepared."""
    page.wait_for_selector("#proposals", timeout=60_000)
    until(page, "document.activeElement.matches('[role=option]')")


def press(page, *keys):
    """Press keys that change a lesson, and wait until the page shows what follows."""
    page.evaluate(f"() => {{ window.settled = new Promise((resolve) => document.{DONE}); }}")
    for key in keys:
        page.keyboard.press(key)
    page.evaluate("() => window.settled")


def until(page, expression):
    """Wait until an expression is true; the pages forbid what wait_for_function does."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not in time: {expression}")


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
