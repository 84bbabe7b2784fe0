"""starshl: short binary codes learned from labels, a few labels or none.

Names are imported on first use, so that ``import starshl`` and ``starshl --help`` answer at once.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "BinaryCodes": "starshl.codes",
    "BundleFormatError": "starshl.exceptions",
    "StarSHL": "starshl.models",
    "load": "starshl.catalog",
}

__all__ = ["BinaryCodes", "BundleFormatError", "StarSHL", "__version__", "load"]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'starshl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
