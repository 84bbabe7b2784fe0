"""Imports on first use: names that a package offers, and libraries that take longer to import than a search does.

Searching codes needs neither scikit-learn nor most of SciPy, which take twice as long to import as all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from .extras import require


def on_first_use(
    package: str, homes: Mapping[str, Sequence[str]], *, libraries: Sequence[str] = (), extra: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    `homes` lists the names that each module defines: "base" is a module of the package, ".base" one of the package
    above. `libraries` are those that the modules need, which the given extra of starshl installs.
    """
    home_of = {name: f".{module}" for module, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        for library in libraries:
            require(library, extra=extra)
        return getattr(import_module(home_of[name], package), name)

    return get, lambda: sorted(home_of)


def library(name: str) -> Any:
    """Return a stand-in for a module of a library, which is imported when one of its names is first used."""
    return _Library(name)


class _Library:
    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self.__name__), name)
        # From now on, Python finds it here and does not ask again.
        setattr(self, name, found)
        return found
