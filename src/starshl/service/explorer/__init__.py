"""Pages for people over the service, to explore, teach and map; they are rendered here and hold no numerics."""

from __future__ import annotations

from ..._common.extras import require
from . import explore, exports, home, map, model, teach
from . import rendering as assets
from .rendering import ErrorPages

ROUTERS = tuple(part.routes for part in (assets, home, explore, teach, map, model, exports))
for _library in ("jinja2", "python_multipart"):
    require(_library, extra="serve")

__all__ = [
    "ErrorPages",
    "assets",
    "explore",
    "exports",
    "home",
    "map",
    "model",
    "teach",
]
