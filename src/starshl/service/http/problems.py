"""Every error as problem details, RFC 9457: what is wrong, and what to do about it; as a page for browsers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from ...exceptions import CollectionError, CollectionFormatError, MissingExtraError, UnknownIdError
from ..errors import (
    BusyError,
    ConflictError,
    KeyReusedError,
    NotInstalledError,
    NotWritableError,
    ServiceError,
    TooLargeError,
    UnknownError,
    worded,
)

PROBLEM_TYPE = "application/problem+json"
PROBLEM_SCHEMA = {
    "title": "Problem",
    "description": "What is wrong with a request, as in RFC 9457.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "request_id"],
    "properties": {
        "type": {"type": "string", "description": "A short name for the kind of problem, relative to this address."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What arrived, what is allowed, and what to do."},
        "request_id": {"type": "string", "description": "Use it to find the request in the log."},
        "errors": {
            "type": "array",
            "description": "The parts of a request that are wrong.",
            "items": {
                "type": "object",
                "properties": {"where": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
_log = logging.getLogger("starshl.service")
_MOST_ERRORS = 20  # of one request; the first ones tell what is wrong
_KINDS: dict[type[Exception], tuple[int, str]] = {
    UnknownError: (404, "not-found"),
    UnknownIdError: (404, "not-found"),
    ConflictError: (409, "conflict"),
    KeyReusedError: (422, "idempotency-key-reused"),
    NotWritableError: (403, "read-only"),
    TooLargeError: (413, "too-large"),
    NotInstalledError: (501, "not-installed"),
    MissingExtraError: (501, "not-installed"),
    BusyError: (503, "busy"),
}
_NAMES = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "too-slow",
    413: "too-large",
    415: "unsupported-media-type",
    422: "invalid-request",
    429: "too-many-requests",
    500: "internal-error",
    503: "busy",
}
_JSON_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}
_OF_TYPES = ("_type", "_parsing")  # what pydantic calls errors about the type of a value
_NOT_UNICODE = "string_unicode"
_DETAILS = {
    404: "There is nothing at this address. GET /api/v1/openapi.json lists the addresses.",
    405: "This address does not take this method. The header Allow names those that it takes.",
}


def problem(
    scope: Scope,
    status: int,
    detail: str,
    *,
    kind: str | None = None,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[Mapping[str, str]] | None = None,
) -> Response:
    """Return problem details as a response, which is a page if a browser asks for one outside of the API."""
    content: dict[str, Any] = {
        "type": f"/problems/{kind or _NAMES.get(status, 'problem')}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": scope.get("state", {}).get("request_id", ""),
    }
    if errors is not None:
        content["errors"] = list(errors)
    if _is_for_page(scope):
        page: Response = scope["app"].state.error_page(scope, content, dict(headers or {}))
        return page
    return Response(json.dumps(content), status, dict(headers or {}), PROBLEM_TYPE)


class Download(FileResponse):
    """A file, or the part of it that a client asks for; a part that it does not have is a problem like others."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused: list[Message] = []

        async def send_unless_refused(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                refused.append(message)
            if not refused:
                await send(message)

        await super().__call__(scope, receive, send_unless_refused)
        if refused:
            asked = Headers(scope=scope).get("range", "")[:80]
            detail = (
                f"The header Range is {asked!r}; write bytes=FIRST-LAST, with bytes that the file has, or leave it out."
            )
            found = Headers(raw=refused[0]["headers"])
            headers = {"Content-Range": found["content-range"]} if "content-range" in found else None
            await problem(scope, refused[0]["status"], detail, headers=headers)(scope, receive, send)


def _is_for_page(scope: Scope) -> bool:
    return not scope["path"].startswith("/api/") and "text/html" in Headers(scope=scope).get("accept", "")


def _problem_of(scope: Scope, error: Exception) -> Response:
    """Return the problem that an error of the library or the service stands for: what is not named is a bad value."""
    for kind, (status, name) in _KINDS.items():
        if isinstance(error, kind):
            headers = {"Retry-After": "1"} if status == 503 else None
            return problem(scope, status, str(error), kind=name, headers=headers)
    if isinstance(error, CollectionFormatError):
        _log.error("a collection is damaged", exc_info=error)
        return problem(scope, 500, "The collection is damaged; the log of the service has the details.", kind="damaged")
    if isinstance(error, CollectionError):
        _log.error("a collection cannot be used", exc_info=error)
        return problem(
            scope, 503, "The collection cannot be used now; the log of the service has the details.", kind="unavailable"
        )
    if isinstance(error, OSError):
        _log.error("the disk or the system failed", exc_info=error)
        return problem(
            scope, 503, f"The service cannot do this now ({error.strerror}). Tell its operator.", kind="disk"
        )
    if isinstance(error, ClientDisconnect):
        return problem(scope, 400, "The client left before it had sent everything.")
    return problem(scope, 422, worded(error))


def add_problem_handlers(app: FastAPI) -> None:
    """Let an app answer every error with problem details."""

    async def from_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        plain = error.detail == HTTPStatus(error.status_code).phrase
        detail = _DETAILS.get(error.status_code, str(error.detail)) if plain else str(error.detail)
        return problem(request.scope, error.status_code, detail, headers=error.headers)

    async def from_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _invalid(request.scope, error)

    async def from_library(request: Request, error: Exception) -> Response:
        return _problem_of(request.scope, error)

    app.add_exception_handler(HTTPException, from_http)
    app.add_exception_handler(RequestValidationError, from_validation)
    for kind in (
        ValueError,
        UnknownIdError,
        ServiceError,
        CollectionError,
        MissingExtraError,
        OSError,
        ClientDisconnect,
    ):
        app.add_exception_handler(kind, from_library)


def _invalid(scope: Scope, error: RequestValidationError) -> Response:
    """Say which parts of a request are wrong, without repeating what was sent."""
    # Where a value may be of several types, pydantic tells of all of them; text with half a character is of one.
    found = sorted(error.errors(), key=lambda entry: entry["type"] != _NOT_UNICODE)
    errors = [{"where": _place(entry["loc"]), "message": _message(entry, scope)} for entry in found[:_MOST_ERRORS]]
    first = f"{errors[0]['where']}: {errors[0]['message']}" if errors else "The request is not valid"
    more = f" ({len(found) - 1} more)" if len(found) > 1 else ""
    return problem(
        scope, 422, f"{first}{more}. GET /api/v1/openapi.json describes what this address takes.", errors=errors
    )


def _message(entry: Mapping[str, Any], scope: Scope) -> str:
    return _entry_message(entry, known_fields(scope.get("route"), entry["loc"]))


def validation_message(entry: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return where an error of pydantic is and what is wrong there; ``names`` are the fields that there are."""
    where = _place(entry["loc"])
    message = _entry_message(entry, names)
    return f"{where}: {message}" if where else message


def _place(where: Sequence[str | int]) -> str:
    """Return a place in a body, without what pydantic calls the types that a value could have."""
    return ".".join(str(part) for part in where if "[" not in str(part))[:200]


def _entry_message(entry: Mapping[str, Any], names: Sequence[str]) -> str:
    if entry["type"] in ("extra_forbidden", "missing"):
        what = "there is no such field" if entry["type"] == "extra_forbidden" else "this field is required"
        return f"{what}; the fields here are {', '.join(names)}" if names else what
    if entry["type"] == _NOT_UNICODE:
        return "the text contains half of a surrogate pair, which is not Unicode text; give whole characters"
    message = str(entry["msg"]).removeprefix("Value error, ")[:500]
    return f"{message}, and {_json_kind(entry['input'])} arrived" if entry["type"].endswith(_OF_TYPES) else message


def known_fields(route: Any, where: Sequence[str | int]) -> list[str]:
    """Return the names that a body has at the place of an error, which begins with "body"; none if that is unclear."""
    body = getattr(route, "body_field", None)
    model = None if body is None or where[:1] != ("body",) else _model_in(body.field_info.annotation)
    for part in where[1:-1]:
        if model is None or isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        model = None if field is None else _model_in(field.annotation)
    return [] if model is None else list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    return next(_models(annotation), None)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _json_kind(value: Any) -> str:
    return "null" if value is None else _JSON_KINDS.get(type(value), "something else")
