"""A search service over collections: plain Python, HTTP on top of it in ``http``, pages for people in ``explorer``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._common.lazy import on_first_use

if TYPE_CHECKING:
    from .app import create_app
    from .http.server import BackgroundServer
    from .notebook import Explorer
    from .searcher import Searcher
    from .service import Service

__all__ = [
    "BackgroundServer",
    "Explorer",
    "Searcher",
    "Service",
    "create_app",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "app": ["create_app"],
        "http.server": ["BackgroundServer"],
        "notebook": ["Explorer"],
        "searcher": ["Searcher"],
        "service": ["Service"],
    },
    libraries=("fastapi", "uvicorn", "prometheus_client", "jinja2", "python_multipart"),
    extra="serve",
)
