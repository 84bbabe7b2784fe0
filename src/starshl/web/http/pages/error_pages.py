"""Problems as pages for people, where a browser asks for a page."""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..problems import PROBLEM_TYPE
from .rendering import render

__all__ = ["ErrorPages"]

_TITLES = {
    401: "Log in first",
    403: "This is not allowed",
    404: "There is nothing here",
    408: "That took too long",
    409: "This does not fit what is here now",
    413: "That is too large",
    415: "This cannot be read",
    422: "This cannot be used as it is",
    429: "Too many requests at once",
    500: "Something went wrong",
    503: "Not right now",
}


class ErrorPages:
    """Turns problem details into a page, outside of the API and only for browsers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/api/") or not _wants_page(scope):
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _Answer(scope, send))


class _Answer:
    """Passes an answer on, unless it is a problem: that is collected and sent as a page."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_problem(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_page(self._start, json.loads(self._body))

    async def _send_page(self, start: Message, problem: dict[str, Any]) -> None:
        title = _TITLES.get(start["status"], problem["title"])
        page = render("error.html", Request(self._scope), start["status"], problem=problem, title=title)
        replaced = {name for name, _ in page.raw_headers}
        kept = [(name, value) for name, value in start["headers"] if name.lower() not in replaced]
        await self._send({**start, "headers": [*kept, *page.raw_headers]})
        await self._send({"type": "http.response.body", "body": page.body})


def _is_problem(message: Message) -> bool:
    return Headers(raw=message["headers"]).get("content-type", "").startswith(PROBLEM_TYPE)


def _wants_page(scope: Scope) -> bool:
    return "text/html" in Headers(scope=scope).get("accept", "")
