"""Routes for monitoring the service."""

from __future__ import annotations

from fastapi import Response

from ..errors import BusyError
from .answers import Health
from .parts import TheMetrics, TheService, in_thread, router

__all__ = ["routes"]

routes = router("health")


@routes.get("/health/live")
async def live() -> Health:
    """Answer as long as the process is alive; needs no token."""
    return Health(status="live")


@routes.get("/health/ready")
async def ready(service: TheService) -> Health:
    """Answer 200 if all collections answer, 503 while the service is stopping or restoring one; needs no token."""
    if not service.is_ready:
        raise BusyError("The service is about to stop, or is restoring a collection.")
    return Health(status="ready")


@routes.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(metrics: TheMetrics) -> Response:
    """Return counts and times for Prometheus."""
    return Response(await in_thread(metrics.text), media_type="text/plain; version=0.0.4; charset=utf-8")
