"""Tokens: how they are read, and that no route forgets them."""

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from starshl.service.app import PARTS
from starshl.service.http import access
from starshl.service.http.access import needed_right
from starshl.service.settings import READ, WRITE, Limits, Settings, Token, Tokens, read_tokens

READER, WRITER, EXPIRED = "reader-" + "r" * 20, "writer-" + "w" * 20, "expired-" + "e" * 20
OPEN = {("GET", "/api/v1/health/live"), ("GET", "/api/v1/health/ready")}


@pytest.fixture
def guarded(running, folder):
    yesterday = datetime.now(UTC) - timedelta(days=1)
    tokens = Tokens([Token.of(READER, READ), Token.of(WRITER, WRITE), Token.of(EXPIRED, WRITE, yesterday)])
    return running(folder, settings=Settings(tokens=tokens))


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def operations():
    """Every method and path that the app answers, whether its description names it or not."""
    is_open = ("/login", "/logout", "/static/")
    routes = [route for part in PARTS for route in part.routes if not route.path.startswith(is_open)]
    return [("GET", "/api/v1/openapi.json")] + [(method, route.path) for route in routes for method in route.methods]


def test_every_route_needs_a_token_and_every_change_one_for_writing(guarded):
    found = operations()
    assert len(found) > 25
    for method, path in found:
        address = re.sub(r"\{[\w:]+\}", "7", path)
        statuses = {
            kind: guarded(method, address, root="", headers=headers).status_code
            for kind, headers in {
                "none": {},
                "wrong": bearer("x" * 30),
                "basic": {"Authorization": f"Basic {WRITER}"},
                "expired": bearer(EXPIRED),
                "reader": bearer(READER),
                "writer": bearer(WRITER),
            }.items()
        }
        if (method, path) in OPEN:
            assert set(statuses.values()) == {200}, path
            continue
        refused = 303 if method == "GET" and not path.startswith("/api/") else 401
        assert [statuses[kind] for kind in ("none", "wrong", "basic", "expired")] == [refused] * 4, (method, path)
        changes = method in ("PUT", "PATCH", "DELETE") or (
            method == "POST"
            and not re.search(r"/((search|encode|predict)(/picture)?|batch|recommend|get|list|count|selections)$", path)
        )
        assert (statuses["reader"] == 403) == changes, (method, path)
        assert statuses["writer"] not in (401, 403), (method, path)


def test_the_description_names_the_right_that_each_route_needs(guarded):
    for path, methods in guarded.app.openapi()["paths"].items():
        for method, operation in methods.items():
            assert operation["x-right"] == (needed_right(method.upper(), path) or "none")
            assert bool(operation["security"]) == ((method.upper(), path) not in OPEN)


def test_unknown_addresses_and_methods_need_the_most(guarded):
    assert guarded("GET", "/nowhere").status_code == 401
    assert guarded("BREW", "/collections", headers=bearer(READER)).status_code == 403
    assert guarded("POST", "/collections/things/search/", headers=bearer(READER)).status_code == 403


def test_a_refusal_says_what_to_do(guarded):
    response = guarded("GET", "/collections")
    assert response.headers["www-authenticate"] == "Bearer"
    assert "A token is needed" in response.json()["detail"]
    unknown = guarded("GET", "/collections", headers=bearer("no" + READER))
    assert "token is not known" in unknown.json()["detail"]
    assert "expired on" in guarded("GET", "/collections", headers=bearer(EXPIRED)).json()["detail"]
    reading = guarded("DELETE", "/collections/things/items/1", headers=bearer(READER))
    assert "allows reading only" in reading.json()["detail"]


def test_a_body_is_not_read_before_the_token(guarded):
    response = guarded("POST", "/collections/things/items", content=b"{", headers={"Content-Type": "application/json"})
    assert response.status_code == 401


def test_tokens_come_from_a_file_and_from_the_environment(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"# for the shop\nread {READER}  # comment\n\nwrite {WRITER} 2999-01-31\n")
    file.chmod(0o600)
    tokens = read_tokens(file, {"STARSHL_READ_TOKEN": "environment-" + "x" * 20})
    assert len(tokens) == 3
    assert tokens.find(READER).right == READ
    assert tokens.find(WRITER).expires.year == 2999
    assert tokens.find("environment-" + "x" * 20).allows(READ)
    assert tokens.find("") is None
    assert len(read_tokens(None, {})) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("read short", "16 or more"),
        (f"admin {READER}", "is not a token"),
        (READER, "is not a token"),
        (f"read {READER} tomorrow", "not a date"),
        (f"read {READER}\nwrite {READER}", "given twice"),
        ("# nothing", "no token"),
    ],
)
def test_a_file_of_tokens_that_cannot_be_read_is_refused_without_showing_them(tmp_path, text, message):
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ValueError, match=message) as caught:
        read_tokens(file, {})
    assert READER not in str(caught.value)


def test_a_file_of_tokens_that_others_may_change_is_refused(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"read {READER}")
    file.chmod(0o666)
    with pytest.raises(ValueError, match="chmod go-w"):
        read_tokens(file, {})


def test_a_file_of_tokens_that_everybody_may_read_is_refused(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"read {READER}")
    file.chmod(0o644)
    with pytest.raises(ValueError, match="chmod o-r"):
        read_tokens(file, {})
    file.chmod(0o640)
    assert len(read_tokens(file, {})) == 1


def test_a_token_is_not_kept_as_text():
    assert READER not in repr(Token.of(READER, READ))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org", ""])
def test_other_machines_are_not_answered_without_tokens(host):
    with pytest.raises(ValueError, match="no tokens"):
        Settings(host=host).check()
    Settings(host=host, tokens=Tokens([Token.of(READER, READ)])).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_this_machine_is_answered_without_tokens(host):
    Settings(host=host).check()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": ""},
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_pages_of_other_sites_cannot_use_a_service_without_tokens(shared, headers):
    assert shared("GET", "/collections", headers=headers).status_code == 403
    assert shared("DELETE", "/collections/things/items/1", headers=headers).status_code == 403


def test_a_client_that_asks_too_often_has_to_wait(running, folder, monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr(access, "time", SimpleNamespace(monotonic=lambda: seconds[-1]))
    asked = running(folder, settings=Settings(limits=Limits(rate=0.5, burst=3)))
    statuses = [asked("GET", "/collections").status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    response = asked("GET", "/collections")
    assert response.status_code == 429
    wait = int(response.headers["retry-after"])
    assert wait in (2, 3)
    seconds.append(wait)
    assert asked("GET", "/collections").status_code == 200
