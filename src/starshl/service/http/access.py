"""Who may do what, decided before a body is read: tokens, rate limits, requests of other sites; and the login page."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from html import escape
from typing import Annotated
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from ..settings import READ, WRITE, Settings, Token, Tokens, is_loopback
from .problems import problem

routes = APIRouter(include_in_schema=False)
_COOKIE = "starshl-token"  # carries the token of a browser
LOGIN, _LOGOUT = "/login", "/logout"
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_HEALTH = re.compile(r"/api/v1/health/(live|ready)")
_STATIC = re.compile(r"/static/.+")
# These send a body to ask a question, and change nothing.
_QUESTIONS = re.compile(
    r"/api/v1/collections/[^/]+/((search|encode|predict)(/picture)?|search/batch|recommend)"
    r"|/api/v1/collections/[^/]+/items/(get|list|count)"
    r"|/explore/[^/]+/(search|selections)"
)
_MOST_CLIENTS = 10_000  # remembered at a time, so that many addresses cannot fill the memory
_LONGEST_TARGET = 2000  # characters of an address to go to after the login
# A path here: "//other.example" would be an address of another site.
_PATH = re.compile(r"/(?![/\\])[!-~]*")
_COOKIE_SECONDS = 30 * 24 * 3600  # 30 days; the token in the cookie may expire sooner
_LOGIN_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Token needed - starshl</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main>
<h1>This service needs a token</h1>
<p role="alert">{message}</p>
<form method="post" action="/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<input type="hidden" name="next" value="{target}">
<button>Continue</button>
</form>
<p>Whoever started the service can give you one. It is kept in a cookie of this browser for up to 30 days.</p>
</main></body></html>
"""


def needed_right(method: str, path: str) -> str | None:
    """Return what a request needs: None, "read" or "write"; what is not known to be harmless needs the most."""
    if path in (LOGIN, _LOGOUT) or is_health(method, path) or (method in _SAFE_METHODS and _STATIC.fullmatch(path)):
        return None
    if method in _SAFE_METHODS or (method == "POST" and _QUESTIONS.fullmatch(path)):
        return READ
    return WRITE


def is_health(method: str, path: str) -> bool:
    """Return whether a request asks for the health of the service, which is answered whatever the load."""
    return method in _SAFE_METHODS and _HEALTH.fullmatch(path) is not None


class Guard:
    """Lets requests through that have a right to it.

    Without tokens, these are all requests that no page of another site makes a browser send. With tokens, programs send
    theirs in the header Authorization; browsers send a cookie, which the page ``/login`` sets, and with which only
    pages of this service can change anything.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._rates = RateLimiter(settings.limits.rate, settings.limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if not len(self._settings.tokens):
            return _refused_site(scope, headers, in_frames=self._settings.in_frames) or self._refused_rate(scope, None)
        right = needed_right(scope["method"], scope["path"])
        text, is_cookie = _given_token(scope, headers)
        token = self._settings.tokens.find(text) if text else None
        if token is not None and not token.is_expired():
            scope["state"]["token"] = token.name
        refused = self._refused_rate(scope, token)
        if refused is not None or right is None:
            return refused
        return (
            _refused_token(scope, text, token)
            or (_refused_cookie(scope, headers, right) if is_cookie else None)
            or _refused_right(scope, token, right)
        )

    def _refused_rate(self, scope: Scope, token: Token | None) -> Response | None:
        if is_health(scope["method"], scope["path"]):
            return None
        wait = self._rates.take(address_of(scope) if token is None else token.name)
        if not wait:
            return None
        limits = self._settings.limits
        return problem(
            scope,
            429,
            f"More than {limits.rate:g} requests per second came from you. Wait for {wait:.1f} seconds.",
            headers={"Retry-After": str(int(wait) + 1)},
        )


def address_of(scope: Scope) -> str:
    """Return the address that a request came from."""
    return str((scope.get("client") or ("",))[0])


class RateLimiter:
    """A token bucket per client, which fills at ``rate`` requests per second up to ``burst``."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Count a request; return 0, or the seconds to wait until one is allowed."""
        now = time.monotonic()
        level, last = self._levels.pop(client, (self._burst, now))
        level = min(self._burst, level + (now - last) * self._rate)
        self._levels[client] = (max(level - 1.0, 0.0) if level >= 1.0 else level), now
        if len(self._levels) > _MOST_CLIENTS:
            self._levels.popitem(last=False)
        return 0.0 if level >= 1.0 else (1.0 - level) / self._rate


def _refused_site(scope: Scope, headers: dict[str, str], *, in_frames: bool) -> Response | None:
    """Refuse what a page of another site makes a browser send to a service that needs no token."""
    if not _is_for_localhost(headers):
        return problem(scope, 403, "This service has no tokens and answers only to localhost, 127.0.0.1 or [::1].")
    if _is_cross_site(scope["method"], headers, in_frames=in_frames):
        return problem(scope, 403, "This request comes from a page of another site. Use a token.")
    return None


def _given_token(scope: Scope, headers: dict[str, str]) -> tuple[str, bool]:
    """Return the text of the token that came with a request, and whether it was in a cookie."""
    if "authorization" in headers:
        scheme, _, text = headers["authorization"].partition(" ")
        return (text.strip() if scheme.lower() == "bearer" else ""), False
    return HTTPConnection(scope).cookies.get(_COOKIE, ""), True


def _refused_token(scope: Scope, text: str, token: Token | None) -> Response | None:
    """Refuse a request without a valid token; a browser that opens a page is sent to where it can give one."""
    if token is not None and not token.is_expired():
        return None
    if scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/"):
        return RedirectResponse(f"{LOGIN}?next={quote(_target(scope), safe='/')}", 303)
    if token is not None:
        return _unauthorized(scope, f"The token expired on {token.expires}. Ask for a new one.")
    what = "This token is not known here" if text else "A token is needed"
    return _unauthorized(scope, f"{what}: send the header Authorization: Bearer TOKEN with a valid one.")


def _unauthorized(scope: Scope, detail: str) -> Response:
    return problem(scope, 401, detail, headers={"WWW-Authenticate": "Bearer"})


def _target(scope: Scope) -> str:
    """Return where a browser wanted to go: the whole question, unless that is too long to come back to."""
    query = scope.get("query_string", b"").decode("latin-1")
    whole = f"{quote(scope['path'], safe='/')}?{query}" if query else quote(scope["path"], safe="/")
    return whole if len(whole) <= _LONGEST_TARGET else quote(scope["path"], safe="/")


def _refused_cookie(scope: Scope, headers: dict[str, str], right: str) -> Response | None:
    """Refuse a change that a page of another site makes a browser send along with its cookie."""
    if right == READ or headers.get("sec-fetch-site") == "same-origin" or _has_same_origin(headers):
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


def _is_for_localhost(headers: Mapping[str, str]) -> bool:
    """Return whether a request names this machine as its host.

    A page of another site can give its own name this machine's address, and its requests then carry that name.
    """
    try:
        host = urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def _is_cross_site(method: str, headers: Mapping[str, str], *, in_frames: bool = False) -> bool:
    """Return whether a page of another origin makes a browser send this; programs send none of these headers.

    A link from elsewhere may open a page here, as may a frame of a notebook: whoever set it cannot see what it shows.
    """
    if "origin" in headers:
        return not _has_same_origin(headers)
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    opens = ("document", "iframe") if in_frames else ("document",)
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") in opens
    return not (is_link and method in ("GET", "HEAD"))


def _has_same_origin(headers: Mapping[str, str]) -> bool:
    try:
        return bool(headers.get("host")) and urlsplit(headers.get("origin", "")).netloc == headers.get("host")
    except ValueError:
        return False


@routes.get(LOGIN)
async def show_login(
    request: Request, target: Annotated[str, Query(alias="next", max_length=_LONGEST_TARGET)] = "/"
) -> Response:
    """Show a form for a token, unless no token is needed."""
    if not request.app.state.has_tokens:
        return RedirectResponse(_local_path(target), 303)
    return _login_page(target)


@routes.post(LOGIN)
async def log_in(request: Request) -> Response:
    """Keep a valid token in a cookie which no script can read, and go on to where the browser wanted to go."""
    form = parse_qs((await request.body()).decode("latin-1"))
    target, text = form.get("next", ["/"])[0], form.get("token", [""])[0].strip()
    if _is_cross_site(request.method, request.headers):
        return _login_page(target, "The form came from a page of another site. Use this one.", 403)
    tokens: Tokens = request.app.state.tokens
    token = tokens.find(text)
    if token is None:
        return _login_page(target, "This token is not known here. Look for a typo, or ask for a new one.", 401)
    if token.is_expired():
        return _login_page(target, f"This token expired on {token.expires}. Ask for a new one.", 401)
    response = RedirectResponse(_local_path(target), 303)
    # Anyone may send this header; all it does is to keep the cookie from plain HTTP.
    is_encrypted = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    response.set_cookie(_COOKIE, text, max_age=_COOKIE_SECONDS, httponly=True, samesite="strict", secure=is_encrypted)
    return response


@routes.post(_LOGOUT)
async def log_out(request: Request) -> Response:
    """Forget the token of this browser."""
    if _is_cross_site(request.method, request.headers):
        raise HTTPException(403, "The request came from a page of another site. Log out on a page of this service.")
    response = RedirectResponse(LOGIN, 303)
    response.delete_cookie(_COOKIE, httponly=True, samesite="strict")
    return response


def _login_page(target: str, message: str = "", status: int = 200) -> HTMLResponse:
    return HTMLResponse(_LOGIN_PAGE.format(message=escape(message), target=escape(_local_path(target))), status)


def _local_path(target: str) -> str:
    return target if _PATH.fullmatch(target) else "/"
