"""Templates, with escaping everywhere."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from ...._words import counted
from .assets import asset_address

__all__ = ["may_write", "render"]


def _percent(share: float) -> str:
    """Write a share with as many digits as it deserves: 7%, 99.8%."""
    percent = 100 * share
    return f"{percent:.1f}%" if percent > 99 and round(percent, 1) < 100 else f"{percent:.0f}%"


def _label(label: object) -> str:
    return "unlabeled" if label is None else str(label).lower() if isinstance(label, bool) else str(label)


_environment = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.globals["asset"] = asset_address
_environment.globals["counted"] = counted
_environment.filters |= {"percent": _percent, "label": _label}


def render(template: str, request: Request, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page, or the part of one that a script asks for."""
    common = {"path": request.url.path, "has_tokens": request.app.state.has_tokens}
    return HTMLResponse(_environment.get_template(template).render(common | values), status)


def may_write(request: Request) -> bool:
    """Return whether the visitor may change something, as far as tokens go."""
    token: str = request.scope["state"].get("token", "")
    return not request.app.state.has_tokens or token.startswith("write:")
