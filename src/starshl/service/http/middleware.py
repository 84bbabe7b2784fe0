"""The layers around all routes: an id, a log line and metrics for each request, and limits on what it may take."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..settings import WRITE, Limits, Settings
from .access import LOGIN, address_of, is_health, needed_right
from .metrics import Metrics
from .problems import problem

_log = logging.getLogger("starshl.service.requests")
# Pages load nothing from other sites, and run no scripts but files of this service.
_POLICY = b"default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors "
_NO_FRAME = b"'none'"
_NOTEBOOKS = b"http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
_SECURITY_HEADERS = {
    b"cache-control": b"no-store",
    b"referrer-policy": b"same-origin",
    b"x-content-type-options": b"nosniff",
}
_KNOWN = "known"  # no address
_CLIENT_LEFT = 499  # for the log alone, where other servers write it, too
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_UPLOADS = re.compile(r"/api/v1/collections/[^/]+/(snapshots/[^/]+|import|model)")


class RequestContext:
    """Gives each request an id, which the answer and the log carry; a client may choose it with X-Request-Id."""

    def __init__(self, app: ASGIApp, metrics: Metrics, settings: Settings) -> None:
        self._app = app
        self._metrics = metrics
        policy = _POLICY + (_NOTEBOOKS if settings.in_frames else _NO_FRAME)
        self._headers = _SECURITY_HEADERS | {b"content-security-policy": policy}

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
                message = {**message, "headers": _completed(message.get("headers", ()), self._headers, request_id)}
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
            "client": address_of(scope),
            "token": scope["state"].get("token", ""),
        }
        _log.info("request", extra={"fields": fields})


def _completed(
    headers: Iterable[tuple[bytes, bytes]], usual: Mapping[bytes, bytes], request_id: str
) -> list[tuple[bytes, bytes]]:
    """Return headers with the id, and with the usual ones that the answer does not set itself."""
    given = list(headers)
    names = {name.lower() for name, _ in given}
    defaults = [(name, value) for name, value in usual.items() if name not in names]
    return [*given, *defaults, (b"x-request-id", request_id.encode())]


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value.decode("latin-1")
            return given if _ACCEPTED_ID.fullmatch(given) else uuid.uuid4().hex
    return uuid.uuid4().hex


class RequestLimits:
    """Ends requests that send too much, too slowly, or take too long, and refuses those that are too many at once.

    Strangers are counted apart from everyone else, so that they take no place from those who have a token.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._limits = settings.limits
        self._has_tokens = len(settings.tokens) > 0
        # How many requests run: of those who are known, and of each address that strangers come from.
        self._running: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_health(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        is_stranger = self._has_tokens and "token" not in scope["state"]
        group = address_of(scope) if is_stranger else _KNOWN
        if self._is_full(group):
            detail = f"{self._running[group]} requests are running. Try again."
            # The body may never end: nobody waits for it.
            headers = {"Retry-After": "1", "Connection": "close"}
            await problem(scope, 503, detail, headers=headers)(scope, receive, send)
            return
        self._running[group] += 1
        try:
            await _Limited(self._app, self._limits, scope, receive, send, is_stranger=is_stranger).run()
        finally:
            self._running[group] -= 1
            if not self._running[group]:
                del self._running[group]

    def _is_full(self, group: str) -> bool:
        limits, running = self._limits, self._running
        if group == _KNOWN:
            return running[_KNOWN] >= limits.requests_at_once
        n_strangers = running.total() - running[_KNOWN]
        return n_strangers >= limits.strangers_at_once or running[group] >= limits.strangers_per_address


class _Limited:
    """One request under limits; if its client leaves, its work ends, unless it changes something."""

    def __init__(
        self, app: ASGIApp, limits: Limits, scope: Scope, receive: Receive, send: Send, *, is_stranger: bool
    ) -> None:
        self._app, self._limits = app, limits
        self._scope, self._receive, self._send = scope, receive, send
        self._has_started = self._is_answered = self._has_left = False
        self._n_received = 0
        self._is_received, self._is_over = asyncio.Event(), asyncio.Event()
        self._kept: Message | None = None  # received before the app asks for it
        is_upload = scope["method"] in ("POST", "PUT") and _UPLOADS.fullmatch(scope["path"])
        self._max_bytes = limits.upload_bytes if is_upload else limits.body_bytes
        self._body_seconds, self._bytes_per_second = limits.body_seconds, float(limits.body_bytes_per_second)
        if is_stranger or scope["path"] == LOGIN:
            self._max_bytes, self._body_seconds, self._bytes_per_second = limits.login_bytes, limits.login_seconds, inf

    async def run(self) -> None:
        limits = self._limits
        if self._declared_bytes() > self._max_bytes:
            await self._refuse(413, self._too_large())
            return
        self._began = asyncio.get_running_loop().time()
        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.timeout(limits.request_seconds) as self._timeout:
                if not self._has_body():
                    self._kept = await self._receive_limited()
                await self._app(self._scope, self._receive_limited, self._send_limited)
        except TimeoutError:
            watching.cancel()
            if self._has_left:
                if not self._has_started:
                    await Response(status_code=_CLIENT_LEFT)(self._scope, self._receive, self._send)
                return
            detail = (
                f"The request took longer than {limits.request_seconds:g} seconds. If it was a write, it may still be "
                "stored: send it again with the same Idempotency-Key."
            )
            await self._refuse(503, detail)
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """Wait for the end of the request, and stop the work if that is because its client left."""
        await self._is_received.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_over.set()
        is_change = needed_right(self._scope["method"], self._scope["path"]) == WRITE
        if not (self._is_answered or is_change or self._timeout.expired()):
            self._has_left = True
            self._timeout.reschedule(asyncio.get_running_loop().time())

    def _has_body(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self._scope["headers"])

    def _declared_bytes(self) -> int:
        for name, value in self._scope["headers"]:
            if name == b"content-length" and value.isdigit():
                return int(value[:20])
        return 0

    def _too_large(self) -> str:
        return f"The body has more than {self._max_bytes} bytes, which is the limit. Send it in parts."

    async def _receive_limited(self) -> Message:
        """Receive a part of the body, in time and within the limit; afterwards, wait for the end without a limit."""
        if self._kept is not None:
            message, self._kept = self._kept, None
            return message
        if self._is_received.is_set():
            await self._is_over.wait()
            return {"type": "http.disconnect"}
        now = asyncio.get_running_loop().time()
        allowed = self._body_seconds + self._n_received / self._bytes_per_second
        # The time of the body has its own limit.
        self._timeout.reschedule(None)
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._began + allowed - now))
        except TimeoutError as error:
            detail = f"The body took longer than {self._body_seconds:g} seconds. Send it faster, or in parts."
            raise HTTPException(408, detail, {"Connection": "close"}) from error
        self._timeout.reschedule(asyncio.get_running_loop().time() + self._limits.request_seconds)
        self._n_received += len(message.get("body", b""))
        if not message.get("more_body", False):
            self._is_received.set()
        if self._n_received > self._max_bytes:
            raise HTTPException(413, self._too_large(), {"Connection": "close"})
        return message

    async def _send_limited(self, message: Message) -> None:
        self._has_started = True
        self._is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)
        if self._has_left:
            return
        # A long answer may take long, as long as somebody reads it.
        self._timeout.reschedule(asyncio.get_running_loop().time() + self._limits.request_seconds)

    async def _refuse(self, status: int, detail: str) -> None:
        if self._has_started:
            raise ConnectionError("An answer could not be finished in time.")
        headers = {"Connection": "close"} | ({"Retry-After": "1"} if status == 503 else {})
        await problem(self._scope, status, detail, headers=headers)(self._scope, self._receive, self._send)
