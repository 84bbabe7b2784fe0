"""Browsers: they log in with a token, and pages of other sites cannot make them change anything."""

import pytest
from fastapi.responses import Response

from starshl.service.settings import READ, WRITE, Settings, Token, Tokens

READER, WRITER = "reader-" + "r" * 20, "writer-" + "w" * 20
OWN = {"Origin": "http://localhost"}
FOREIGN = {"Origin": "https://attacker.example", "Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def browser(running, folder):
    tokens = Tokens([Token.of(READER, READ), Token.of(WRITER, WRITE)])
    app = running(folder, settings=Settings(tokens=tokens))
    return lambda method, path, **settings: app(method, path, root="", **settings)


def cookie(token):
    return {"Cookie": f"starshl-token={token}"}


def test_a_browser_without_a_token_is_sent_to_the_form_and_then_back(browser):
    first = browser("GET", "/explore/things")
    assert (first.status_code, first.headers["location"]) == (303, "/login?next=/explore/things")
    form = browser("GET", first.headers["location"])
    assert 'value="/explore/things"' in form.text
    answer = browser("POST", "/login", data={"token": WRITER, "next": "/explore/things"}, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/explore/things")
    kept = answer.headers["set-cookie"]
    assert kept.startswith(f"starshl-token={WRITER};")
    assert "HttpOnly" in kept
    assert "SameSite=strict" in kept
    assert "Secure" not in kept
    behind = browser("POST", "/login", data={"token": WRITER}, headers={"X-Forwarded-Proto": "https"})
    assert "Secure" in behind.headers["set-cookie"]


def test_a_token_that_is_not_known_gets_the_form_again_and_no_cookie(browser):
    answer = browser("POST", "/login", data={"token": "wrong-token-wrong-token", "next": '"><script>'})
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
    assert "This token is not known here" in answer.text
    assert "script" not in answer.text
    assert "wrong-token" not in answer.text


@pytest.mark.parametrize("target", ["//other.example", "https://other.example", "/\\other.example", "explore", ""])
def test_a_login_leads_to_no_other_site(browser, target):
    answer = browser("POST", "/login", data={"token": WRITER, "next": target})
    assert answer.headers["location"] == "/"


def test_a_cookie_reads_and_changes_only_from_our_own_pages(browser):
    item = "/api/v1/collections/things/items/1"
    assert browser("GET", item, headers=cookie(READER)).status_code == 200
    assert browser("DELETE", item, headers=cookie(READER) | OWN).status_code == 403
    for headers in ({}, FOREIGN, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}):
        refused = browser("DELETE", item, headers=cookie(WRITER) | headers)
        assert (refused.status_code, "page of this service" in refused.text) == (403, True), headers
    assert browser("DELETE", item, headers=cookie(WRITER) | OWN).status_code == 200


def test_a_header_decides_before_a_cookie(browser):
    headers = cookie(WRITER) | {"Authorization": f"Bearer {READER}"}
    assert browser("DELETE", "/api/v1/collections/things/items/1", headers=headers).status_code == 403


def test_a_login_form_of_another_site_sets_no_cookie(browser):
    answer = browser("POST", "/login", data={"token": WRITER}, headers=FOREIGN)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_logging_out_takes_the_cookie_away(browser):
    answer = browser("POST", "/logout", headers=cookie(READER))
    assert 'starshl-token=""' in answer.headers["set-cookie"]
    assert "Max-Age=0" in answer.headers["set-cookie"]


@pytest.mark.parametrize("headers", [FOREIGN, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}])
def test_a_page_of_another_site_cannot_log_a_browser_out(browser, headers):
    answer = browser("POST", "/logout", headers=cookie(READER) | headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_a_search_that_was_shared_is_still_asked_for_after_the_login(browser):
    long = browser("GET", f"/explore/things?text={'x' * 1990}")
    assert long.headers["location"] == "/login?next=/explore/things"
    first = browser("GET", "/explore/things?item=3&label=a%20b")
    form = browser("GET", first.headers["location"])
    assert 'value="/explore/things?item=3&amp;label=a%20b"' in form.text
    target = "/explore/things?item=3&label=a%20b"
    assert browser("POST", "/login", data={"token": READER, "next": target}).headers["location"] == target


def test_a_form_that_is_sent_without_a_valid_token_leads_to_the_login(browser):
    answer = browser("POST", "/explore/things/model/quality", headers=OWN | {"Accept": "text/html"})
    assert (answer.status_code, 'href="/login"' in answer.text) == (401, True)


def test_no_token_is_asked_for_where_none_is_needed(shared):
    answer = shared("GET", "/login?next=/explore", root="")
    assert (answer.status_code, answer.headers["location"]) == (303, "/explore")


def test_a_link_from_elsewhere_may_open_a_page_but_not_send_a_form(shared):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert shared("GET", "/collections", headers=link).status_code == 200
    assert shared("DELETE", "/collections/things/items/1", headers=link).status_code == 403
    assert shared("GET", "/collections", headers=link | {"Sec-Fetch-Dest": "iframe"}).status_code == 403


def test_answers_are_not_kept_unless_they_say_so(running, folder):
    asked = running(folder)
    asked.app.add_api_route("/static/x", lambda: Response("x", headers={"Cache-Control": "max-age=60"}))
    assert asked("GET", "/static/x", root="").headers["cache-control"] == "max-age=60"
    plain = asked("GET", "/collections").headers
    assert plain["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in plain["content-security-policy"]
