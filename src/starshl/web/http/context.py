"""The outermost layer: an id and a line in the log for each request, counts and times, and no error without answer."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics
from .problems import problem

__all__ = ["RequestContext"]

_log = logging.getLogger("starshl.web.requests")
# Pages load nothing from other sites, run no scripts but files of this service, and are shown in no frame.
_CAREFUL = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'",
    b"referrer-policy": b"same-origin",
    b"x-content-type-options": b"nosniff",
}
_GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestContext:
    """Gives each request an id, which the answer and the log carry; a client may choose it with X-Request-Id."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        started, status = time.perf_counter(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": _completed(message.get("headers", ()), request_id)}
            await send(message)

        # Whoever asks for the head of an answer gets that of a GET; the server leaves the body out.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        with self._metrics.in_flight.track_inprogress():
            try:
                await self._app(asked, receive, send_with_id)
            except Exception as error:
                _log.error("unexpected error", exc_info=error, extra={"fields": {"request_id": request_id}})
                if not status:
                    detail = "Something unexpected went wrong; the log has the details under this request_id."
                    await problem(scope, 500, detail)(scope, receive, send_with_id)
            finally:
                self._record({**asked, "method": scope["method"]}, request_id, status, time.perf_counter() - started)

    def _record(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        self._metrics.answered(scope["method"], route, status, seconds)
        fields = {
            "request_id": request_id,
            "method": scope["method"],
            # Without the query, which a client may have put anything into.
            "path": scope["path"][:500],
            "status": status,
            "ms": round(1000 * seconds, 3),
            "client": (scope.get("client") or ("",))[0],
            "token": scope["state"].get("token", ""),
        }
        _log.info("request", extra={"fields": fields})


def _completed(headers: Iterable[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    """Return headers with the id, and with the careful ones of which the answer says nothing itself."""
    given = list(headers)
    names = {name.lower() for name, _ in given}
    defaults = [(name, value) for name, value in _CAREFUL.items() if name not in names]
    return [*given, *defaults, (b"x-request-id", request_id.encode())]


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value.decode("latin-1")
            return given if _GOOD_ID.fullmatch(given) else uuid.uuid4().hex
    return uuid.uuid4().hex
