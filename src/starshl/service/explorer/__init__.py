"""Pages for people over the service, to explore, teach and map; they are rendered here and hold no numerics."""

from __future__ import annotations

from . import description, explore, exports, guesses, home, map, model, rendering, teach, viewer
from .rendering import error_page

ROUTERS = tuple(
    part.routes for part in (rendering, home, explore, guesses, viewer, teach, map, model, exports, description)
)

__all__ = ["ROUTERS", "error_page"]
