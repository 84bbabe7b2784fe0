"""The routers of all pages."""

from . import assets, explore, exports, home, map, model, teach

__all__ = ["ROUTERS"]

ROUTERS = tuple(part.routes for part in (assets, home, explore, teach, map, model, exports))
