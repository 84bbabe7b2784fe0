"""The routers of all pages."""

from . import assets, explore, exports, home, teach

__all__ = ["ROUTERS"]

ROUTERS = tuple(part.routes for part in (assets, home, explore, teach, exports))
