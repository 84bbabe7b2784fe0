"""A token that ends while a page is open: the page says so, and nothing on it is lost."""

import shutil
from datetime import UTC, datetime

import pytest

from starshl.service import BackgroundServer, Service, create_app
from starshl.service.settings import WRITE, Settings, Token, Tokens

from .acting import PATIENCE, focused, labels, lesson, name_by_typing, press, until

WRITER, EXPIRED = "writer-" + "w" * 20, "before-" + "b" * 20


@pytest.fixture(scope="module")
def guarded(template, tmp_path_factory):
    """The address of a service that needs a token."""
    folder = shutil.copytree(template, tmp_path_factory.mktemp("guarded") / "album")
    tokens = Tokens([Token.of(WRITER, WRITE), Token.of(EXPIRED, WRITE, expires=datetime(2020, 1, 1, tzinfo=UTC))])
    app = create_app(lambda observer: Service([folder], observer=observer), Settings(tokens=tokens))
    with BackgroundServer(app) as server:
        yield server.address


@pytest.fixture
def page(chromium, guarded):
    """A page of somebody who has logged in."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(1000 * PATIENCE)
        opened = context.new_page()
        opened.goto(f"{guarded}/explore/album?item=3")
        log_in(opened)
        assert opened.url.endswith("/explore/album?item=3"), "the login leads to what was asked for"
        yield opened


def log_in(page):
    """Give the token, and wait until the page that was asked for has loaded, scripts included."""
    page.fill("#token", WRITER)
    page.click("text=Continue")
    page.wait_for_url(lambda address: "/login" not in address)


def lose_token(page, guarded, how):
    """Take the token of the browser away, or let it be one that has expired."""
    page.context.clear_cookies()
    if how == "expired":
        page.context.add_cookies([{"name": "starshl-token", "value": EXPIRED, "url": guarded}])


def log_in_elsewhere(page):
    """Follow the link of the page to the login, in another tab, and come back."""
    with page.context.expect_page() as opened:
        page.click("#login-needed a")
    log_in(opened.value)
    opened.value.close()
    page.bring_to_front()


@pytest.mark.parametrize("how", ["missing", "expired"])
def test_answers_wait_for_the_login_and_are_then_sent(page, guarded, how):
    page.goto(f"{guarded}/explore/album/teach")
    lesson(page)
    name_by_typing(page, "ring")
    given, first = labels(page, guarded, "album"), focused(page)
    lose_token(page, guarded, how)
    press(page, "1")
    page.wait_for_selector("#login-needed")
    assert "no longer valid" in page.text_content("#login-needed")
    page.keyboard.type("cro")
    log_in_elsewhere(page)
    until(page, "document.querySelector('#login-needed') === null")
    until(page, f"document.querySelector('.labeling .facts b').textContent === '{len(given) + 1}'")
    assert page.input_value("#label") == "cro"
    assert labels(page, guarded, "album") == given | {first: "ring"}


def test_a_search_without_a_valid_token_says_so_and_keeps_the_words(page, guarded):
    lose_token(page, guarded, "missing")
    page.fill("#q", "17")
    page.keyboard.press("Enter")
    page.wait_for_selector("#login-needed")
    assert page.input_value("#q") == "17"
    assert page.locator("#token").count() == 0, "the form of the login is not pasted into the page"
    assert page.text_content("#query") == "003.png"
    log_in_elsewhere(page)
    page.press("#q", "Enter")
    page.wait_for_url("**item=17")
    assert page.locator("#login-needed").count() == 0
    assert page.text_content("#query") == "017.png"


def test_a_page_that_asks_for_a_login_keeps_the_rules_of_accessibility(page, guarded):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    lose_token(page, guarded, "missing")
    page.press("#q", "Enter")
    page.wait_for_selector("#login-needed")
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()
    page.goto(f"{guarded}/explore/album")
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()
