"""The service over HTTP, on FastAPI and uvicorn, which the extra ``serve`` installs."""

from __future__ import annotations

from ..._common.extras import require
from .server import BackgroundServer

for _library in ("fastapi", "uvicorn", "prometheus_client"):
    require(_library, extra="serve")

__all__ = [
    "BackgroundServer",
]
