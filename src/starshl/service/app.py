"""The app: all routes and the layers around them, problems, health and metrics, and the OpenAPI document."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Response

from .._version import __version__
from . import explorer as pages
from .errors import BusyError
from .http import access, collections, guesses, jobs, search, snapshots
from .http.access import Guard, needed_right
from .http.dependencies import MetricsDep, ServiceDep, in_thread, router
from .http.metrics import Metrics
from .http.middleware import RequestContext, RequestLimits
from .http.problems import PROBLEM_SCHEMA, add_problem_handlers
from .http.schemas import Health
from .observer import Observer
from .service import Service
from .settings import Settings

routes = router("health")
_N_THREADS = 64  # more than the processors: most of them wait


@routes.get("/health/live")
async def live() -> Health:
    """Answer as long as the process is alive; needs no token."""
    return Health(status="live")


@routes.get("/health/ready")
async def ready(service: ServiceDep) -> Health:
    """Answer 200 if all collections answer, 503 while the service is stopping or restoring one; needs no token."""
    if not service.is_ready:
        raise BusyError("The service is about to stop, or is restoring a collection.")
    return Health(status="ready")


@routes.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(metrics: MetricsDep) -> Response:
    """Return counts and times for Prometheus."""
    return Response(await in_thread(metrics.text), media_type="text/plain; version=0.0.4; charset=utf-8")


#: The routers of the app, those that are asked most first: each route before the right one takes time. The tests of
#: tokens go through all of their routes.
PARTS = (
    search.routes,
    routes,
    collections.routes,
    collections.items_routes,
    guesses.routes,
    search.picture_routes,
    snapshots.routes,
    jobs.routes,
    access.routes,
    *pages.ROUTERS,
)


def create_app(open_service: Callable[[Observer], Service], settings: Settings | None = None) -> FastAPI:
    """Return the app of a service, which is open while the app runs.

    Parameters
    ----------
    open_service : function of an observer that returns a service
        Called now, so that you learn at the start what is wrong with a collection.
    settings : Settings, default=None
        Tokens and limits; without tokens, only requests to localhost are answered.
    """
    settings = Settings() if settings is None else settings
    metrics = Metrics()
    service = open_service(metrics)
    metrics.watch(service)

    @asynccontextmanager
    async def open_while_running(_: FastAPI) -> AsyncIterator[None]:
        # asyncio's own pool has a few threads only, and some calls wait for a long change to end.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_N_THREADS, thread_name_prefix="request"))
        try:
            yield
        finally:
            # In a thread of its own: where a process ends, pools take nothing any more.
            closing = threading.Thread(target=service.close)
            closing.start()
            while closing.is_alive():
                await asyncio.sleep(0.01)

    app = _DescribedApp(
        title="starshl",
        version=__version__,
        summary="Search in collections of short binary codes",
        openapi_url="/api/v1/openapi.json",
        # Their pages load scripts from other sites.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=open_while_running,
    )
    app.state.service, app.state.metrics = service, metrics
    app.state.tokens, app.state.has_tokens = settings.tokens, len(settings.tokens) > 0
    app.state.error_page = pages.error_page
    add_problem_handlers(app)
    for part in PARTS:
        app.include_router(part)
    app.add_middleware(RequestLimits, settings=settings)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(RequestContext, metrics=metrics, settings=settings)
    return app


class _DescribedApp(FastAPI):
    """An app whose description has what FastAPI does not know: problems, and who may call what."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is not None:
            return self.openapi_schema
        schema = super().openapi()
        components = schema.setdefault("components", {})
        components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
        if self.state.has_tokens:
            components["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer", "description": "A token for reading or for writing."}
            }
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                right = needed_right(method.upper(), path)
                operation["x-right"] = right or "none"
                if self.state.has_tokens:
                    operation["security"] = [] if right is None else [{"token": []}]
        return schema
