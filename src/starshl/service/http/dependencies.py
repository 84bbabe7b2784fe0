"""What routes share: the service, the collection in the address, the key of a write, and the way to their answers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Annotated, Any, ParamSpec, TypeVar, get_type_hints

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from ..._common.strict_json import parse_json
from ..searcher import Searcher
from ..service import Service
from ..writes import WriteKey
from .metrics import Metrics
from .problems import PROBLEM_TYPE

# A megabyte takes about 20 ms to read.
_LARGE = 1 << 18
# Reading them holds all other threads up, half a million for about 0.1 s; no other content of a body does so.
_MOST_CONTAINERS = 500_000
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem",
        "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
CollectionName = Annotated[str, Path(description="The name of a collection.", max_length=100)]


class _StrictRequest(Request):
    model: type[BaseModel] | None = None

    async def json(self) -> Any:
        """Return the body; refuse repeated keys, NaN, infinite numbers and deep nesting."""
        body = await self.body()
        if body.count(b"[") + body.count(b"{") > _MOST_CONTAINERS:
            raise HTTPException(413, f"The body has over {_MOST_CONTAINERS:,} lists and objects. Send it in parts.")
        try:
            return await asyncio.to_thread(_read, body, self.model) if len(body) > _LARGE else parse_json(body)
        except ValueError as error:
            raise HTTPException(400, f"The body is not readable JSON: {error}. Send valid JSON.") from error


def _read(body: bytes, model: type[BaseModel] | None) -> Any:
    """Read a large body and check it here, so that the event loop need not; FastAPI reports what is wrong with it."""
    content = parse_json(body)
    try:
        return content if model is None else model.model_validate(content)
    except ValidationError:
        return content


class StrictRoute(APIRoute):
    """A route whose requests are read strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        known = _query_parameters(self.endpoint)
        kind = None if self.body_field is None else self.body_field.field_info.annotation
        model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None

        async def handle_strictly(request: Request) -> Response:
            _check_query(request, known)
            if self.body_field is not None:
                _check_type(request)
            strict = _StrictRequest(request.scope, request.receive)
            strict.model = model
            return await handle(strict)

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


def router(tag: str, prefix: str = "") -> APIRouter:
    """Return a router whose routes read strictly and answer errors with problems."""
    return APIRouter(prefix=f"/api/v1{prefix}", tags=[tag], route_class=StrictRoute, responses=_PROBLEMS)


async def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def _metrics(request: Request) -> Metrics:
    found: Metrics = request.app.state.metrics
    return found


# Asynchronous, like the routes: FastAPI would call plain functions in other threads, which costs more than they do.
ServiceDep = Annotated[Service, Depends(_service)]
MetricsDep = Annotated[Metrics, Depends(_metrics)]


async def _searcher(name: CollectionName, service: ServiceDep) -> Searcher:
    return service.searcher(name)


SearcherDep = Annotated[Searcher, Depends(_searcher)]


async def _key(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=200,
            pattern=r"^[!-~]+$",
            description="Any text of your choice. A write with the same key is stored once, however often it is sent.",
        ),
    ] = None,
) -> WriteKey | None:
    if idempotency_key is None:
        return None
    query = f"?{request.url.query}" if request.url.query else ""
    what = f"{request.method} {request.url.path}{query}\n".encode()
    return WriteKey(f"request/{idempotency_key}", hashlib.sha256(what + await request.body()).hexdigest())


WriteKeyDep = Annotated[WriteKey | None, Depends(_key)]


async def result_of(future: Future[Result]) -> Result:
    """Wait for a future without keeping other requests waiting."""
    return await asyncio.wrap_future(future)


async def in_thread(
    function: Callable[Parameters, Result], *arguments: Parameters.args, **settings: Parameters.kwargs
) -> Result:
    """Call a function that may wait for the disk."""
    return await asyncio.to_thread(function, *arguments, **settings)
