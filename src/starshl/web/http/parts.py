"""What routes share: the service, the collection in the address, the key of a write, and the way to their answers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Annotated, Any, ParamSpec, TypeVar

from fastapi import APIRouter, Depends, Header, Path, Request

from ..requests import WriteKey
from ..searcher import Searcher
from ..service import Service
from .metrics import Metrics
from .problems import PROBLEM_TYPE
from .strict_json import StrictRoute

__all__ = ["CollectionName", "InCollection", "Key", "TheMetrics", "TheService", "answer", "in_thread", "router"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem",
        "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}


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
TheService = Annotated[Service, Depends(_service)]
TheMetrics = Annotated[Metrics, Depends(_metrics)]
CollectionName = Annotated[str, Path(description="The name of a collection.", max_length=100)]


async def _searcher(name: CollectionName, service: TheService) -> Searcher:
    return service.searcher(name)


InCollection = Annotated[Searcher, Depends(_searcher)]


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


Key = Annotated[WriteKey | None, Depends(_key)]


async def answer(future: Future[Result]) -> Result:
    """Wait for a future without keeping other requests waiting."""
    return await asyncio.wrap_future(future)


async def in_thread(
    function: Callable[Parameters, Result], *arguments: Parameters.args, **settings: Parameters.kwargs
) -> Result:
    """Call a function that may wait for the disk."""
    return await asyncio.to_thread(function, *arguments, **settings)
