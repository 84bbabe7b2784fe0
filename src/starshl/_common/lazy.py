"""Names that a package offers but imports on first use, so that importing the package costs next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

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
