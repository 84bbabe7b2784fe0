"""Pages for people over the service, to explore, teach and map; they are rendered here and hold no numerics."""

from __future__ import annotations

from . import classes, description, explore, exports, guesses, home, map, model, rendering, teach, viewer
from .rendering import error_page

_PARTS = (rendering, home, explore, guesses, viewer, classes, teach, map, model, exports, description)
ROUTERS = tuple(part.routes for part in _PARTS)

__all__ = ["ROUTERS", "error_page"]
