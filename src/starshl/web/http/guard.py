"""Who may do what: tokens, rates, and pages of other origins, decided before a body is read."""

from __future__ import annotations

import re
from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..settings import Settings
from ..tokens import READ, WRITE, Token
from .origins import foreign_page, is_addressed_locally, is_own_page
from .problems import problem
from .rates import Rates

__all__ = ["COOKIE", "LOGIN", "LOGOUT", "LONGEST_TARGET", "Guard", "needed_right"]

#: The cookie that carries the token of a browser, the page that sets it, and the address that takes it away.
COOKIE, LOGIN, LOGOUT = "starshl-token", "/login", "/logout"
#: Characters of an address to go to after the login.
LONGEST_TARGET = 2000
_READING = {"GET", "HEAD", "OPTIONS"}
_OPEN = re.compile(r"/api/v1/health/(live|ready)|/static/.+")
# These send a body to ask a question, and change nothing.
_QUESTIONS = re.compile(
    r"/api/v1/collections/[^/]+/((search|encode|predict)(/picture)?|search/batch|recommend)"
    r"|/api/v1/collections/[^/]+/items/(get|list|count)"
    r"|/explore/[^/]+/search"
)


def needed_right(method: str, path: str) -> str | None:
    """Return what a request needs: None, "read" or "write"; what is not known to be harmless needs the most."""
    if path in (LOGIN, LOGOUT) or (method in _READING and _OPEN.fullmatch(path)):
        return None
    if method in _READING or (method == "POST" and _QUESTIONS.fullmatch(path)):
        return READ
    return WRITE


class Guard:
    """Lets requests through that have a right to it.

    Without tokens, these are all requests that no page of another site makes a browser send. With tokens, programs send
    theirs in the header Authorization; browsers send a cookie, which the page ``/login`` sets, and with which only
    pages of this service can change anything.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._rates = Rates(settings.limits.rate, settings.limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = (scope.get("client") or ("",))[0]
        if not len(self._settings.tokens):
            return _refused_origin(scope, headers) or self._refused_rate(scope, client)
        right = needed_right(scope["method"], scope["path"])
        if right is None:
            return self._refused_rate(scope, client)
        text, in_cookie = _given_token(scope, headers)
        token = self._settings.tokens.find(text) if text else None
        return (
            self._refused_rate(scope, client if token is None else token.name)
            or _refused_token(scope, text, token)
            or (_refused_page(scope, headers, right) if in_cookie else None)
            or _refused_right(scope, token, right)
        )

    def _refused_rate(self, scope: Scope, client: str) -> Response | None:
        wait = self._rates.take(client)
        if not wait:
            return None
        limits = self._settings.limits
        return problem(
            scope,
            429,
            f"More than {limits.rate:g} requests per second came from you. Wait for {wait:.1f} seconds.",
            headers={"Retry-After": str(int(wait) + 1)},
        )


def _given_token(scope: Scope, headers: dict[str, str]) -> tuple[str, bool]:
    """Return the text of the token that came with a request, and whether it was in a cookie."""
    if "authorization" in headers:
        scheme, _, text = headers["authorization"].partition(" ")
        return (text.strip() if scheme.lower() == "bearer" else ""), False
    return HTTPConnection(scope).cookies.get(COOKIE, ""), True


def _refused_token(scope: Scope, text: str, token: Token | None) -> Response | None:
    """Refuse a request without a valid token; a browser that opens a page is sent to where it can give one."""
    if token is not None and not token.is_expired():
        scope["state"]["token"] = token.name
        return None
    if scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/"):
        return RedirectResponse(f"{LOGIN}?next={quote(_target(scope), safe='/')}", 303)
    if token is not None:
        return _unauthorized(scope, f"The token expired on {token.expires}. Ask for a new one.")
    what = "This token is not known here" if text else "A token is needed"
    return _unauthorized(scope, f"{what}: send the header Authorization: Bearer TOKEN with a valid one.")


def _target(scope: Scope) -> str:
    """Return where a browser wanted to go: the whole question, unless that is too long to come back to."""
    query = scope.get("query_string", b"").decode("latin-1")
    whole = f"{quote(scope['path'], safe='/')}?{query}" if query else quote(scope["path"], safe="/")
    return whole if len(whole) <= LONGEST_TARGET else quote(scope["path"], safe="/")


def _refused_page(scope: Scope, headers: dict[str, str], right: str) -> Response | None:
    """Refuse a change that a page of another site makes a browser send along with its cookie."""
    if right == READ or is_own_page(headers):
        return None
    return problem(
        scope,
        403,
        "A browser may change something only from a page of this service. Open the page again and try once more.",
    )


def _refused_right(scope: Scope, token: Token | None, right: str) -> Response | None:
    if token is not None and token.allows(right):
        return None
    return problem(scope, 403, "This token allows reading only, and the request changes something.")


def _unauthorized(scope: Scope, detail: str) -> Response:
    return problem(scope, 401, detail, headers={"WWW-Authenticate": "Bearer"})


def _refused_origin(scope: Scope, headers: dict[str, str]) -> Response | None:
    """Refuse what a page of another site makes a browser send to a service that needs no token."""
    if not is_addressed_locally(headers):
        return problem(scope, 403, "This service has no tokens and answers only to localhost, 127.0.0.1 or [::1].")
    if foreign_page(scope["method"], headers):
        return problem(scope, 403, "This request comes from a page of another site. Use a token.")
    return None
