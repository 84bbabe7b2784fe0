"""Who may do what: tokens, rates, and pages of other origins, decided before a body is read."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..settings import Settings, is_loopback
from ..tokens import READ, WRITE
from .problems import problem

__all__ = ["Guard", "needed_right"]

_OPEN = {"/api/v1/health/live", "/api/v1/health/ready"}
_READING = {"GET", "HEAD", "OPTIONS"}
# These send a body to ask a question, and change nothing.
_QUESTIONS = re.compile(r"/api/v1/collections/[^/]+/(search|encode|predict|items/get)")
_MOST_CLIENTS = 10_000


def needed_right(method: str, path: str) -> str | None:
    """Return what a request needs: None, "read" or "write"; what is not known to be harmless needs the most."""
    if path in _OPEN and method in _READING:
        return None
    if method in _READING or (method == "POST" and _QUESTIONS.fullmatch(path)):
        return READ
    return WRITE


class Guard:
    """Lets requests through that have a right to it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._buckets = _Buckets(settings.limits.rate, settings.limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = (scope.get("client") or ("",))[0]
        tokens = self._settings.tokens
        if not len(tokens):
            return _refused_origin(scope, headers) or self._refused_rate(scope, client)
        right = needed_right(scope["method"], scope["path"])
        if right is None:
            return self._refused_rate(scope, client)
        scheme, _, text = headers.get("authorization", "").partition(" ")
        token = tokens.find(text.strip()) if scheme.lower() == "bearer" and text else None
        refused_rate = self._refused_rate(scope, client if token is None else token.name)
        if refused_rate is not None:
            return refused_rate
        if token is None:
            what = "This token is not known here" if text else "A token is needed"
            return _unauthorized(scope, f"{what}: send the header Authorization: Bearer TOKEN with a valid one.")
        if token.is_expired():
            return _unauthorized(scope, f"The token expired on {token.expires}. Ask for a new one.")
        scope["state"]["token"] = token.name
        if not token.allows(right):
            return problem(scope, 403, "This token allows reading only, and the request changes something.")
        return None

    def _refused_rate(self, scope: Scope, client: str) -> Response | None:
        wait = self._buckets.take(client)
        if not wait:
            return None
        limits = self._settings.limits
        return problem(
            scope,
            429,
            f"More than {limits.rate:g} requests per second came from here. Wait for {wait:.1f} seconds.",
            headers={"Retry-After": str(int(wait) + 1)},
        )


class _Buckets:
    """One bucket of permissions per client, which fills at a steady rate."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Take one permission; return 0, or the seconds to wait for one."""
        now = time.monotonic()
        level, seen = self._levels.pop(client, (self._burst, now))
        level = min(self._burst, level + (now - seen) * self._rate)
        self._levels[client] = (max(level - 1.0, 0.0) if level >= 1.0 else level), now
        if len(self._levels) > _MOST_CLIENTS:
            self._levels.popitem(last=False)
        return 0.0 if level >= 1.0 else (1.0 - level) / self._rate


def _unauthorized(scope: Scope, detail: str) -> Response:
    return problem(scope, 401, detail, headers={"WWW-Authenticate": "Bearer"})


def _refused_origin(scope: Scope, headers: dict[str, str]) -> Response | None:
    """Refuse what a page of another site makes a browser send to a service that needs no token."""
    host = _host(f"//{headers.get('host', '')}")
    if host is None or not is_loopback(host):
        return problem(scope, 403, "This service has no tokens and answers only to localhost, 127.0.0.1 or [::1].")
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return problem(scope, 403, "This request comes from a page of another origin. Use a token.")
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return problem(scope, 403, "This request comes from a page of another site. Use a token.")
    return None


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
