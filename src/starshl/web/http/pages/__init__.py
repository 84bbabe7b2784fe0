"""Pages for people over the service: explore, teach, map. They are rendered here, and hold no numerics."""

from ...._extras import require

for _library in ("jinja2", "python_multipart"):
    require(_library, extra="serve")

from .error_pages import ErrorPages  # noqa: E402  # after the check for what it needs
from .site import ROUTERS  # noqa: E402

__all__ = ["ROUTERS", "ErrorPages"]
