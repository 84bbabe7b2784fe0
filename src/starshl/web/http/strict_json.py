"""Requests with one meaning: strict JSON, no unknown parameters; read without keeping other requests waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.params import Query
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from ..._json import parse_json

__all__ = ["StrictRoute"]

# A megabyte takes about 20 ms to read.
_LARGE = 1 << 18


class _StrictRequest(Request):
    async def json(self) -> Any:
        """Return the body; refuse repeated keys, NaN, infinite numbers and deep nesting."""
        body = await self.body()
        try:
            return await asyncio.to_thread(parse_json, body) if len(body) > _LARGE else parse_json(body)
        except ValueError as error:
            raise HTTPException(400, f"The body is not readable JSON: {error}. Send valid JSON.") from error


class StrictRoute(APIRoute):
    """A route whose requests are read strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        known = _query_parameters(self.endpoint)

        async def handle_strictly(request: Request) -> Response:
            _check_query(request, known)
            if self.body_field is not None:
                _check_type(request)
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


def _query_parameters(endpoint: Callable[..., Any]) -> set[str]:
    """Return the parameters of an endpoint that are declared with Query."""
    hints = get_type_hints(endpoint, include_extras=True)
    return {
        name
        for name, hint in hints.items()
        if any(isinstance(part, Query) for part in getattr(hint, "__metadata__", ()))
    }


def _check_query(request: Request, known: set[str]) -> None:
    """Refuse a parameter that this address does not have: it is usually a typo."""
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        allowed = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
        raise HTTPException(422, f"This address has no parameter {unknown[0][:80]!r}; {allowed}.")


def _check_type(request: Request) -> None:
    """Refuse a body that does not say that it is JSON: a page of another site could make a browser send that."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    if has_body and kind != "application/json":
        given = f"has the type {kind[:80]!r}" if kind else "does not say what type it has"
        raise HTTPException(415, f"The body {given}. Send JSON, and the header Content-Type: application/json.")
