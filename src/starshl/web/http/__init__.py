"""The service over HTTP, on FastAPI and uvicorn, which the extra ``serve`` installs."""

from ..._extras import require

for _library in ("fastapi", "uvicorn", "prometheus_client"):
    require(_library, extra="serve")

from .app import create_app  # noqa: E402  # after the check for what it needs
from .server import BackgroundServer  # noqa: E402

__all__ = ["BackgroundServer", "create_app"]
