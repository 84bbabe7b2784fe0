"""Optional libraries: the one way to import them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ..exceptions import MissingExtraError


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional library, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs the library {module.partition('.')[0]!r}, which is not installed. "
            f"Install it with: pip install 'starshl[{extra}]'"
        ) from error
