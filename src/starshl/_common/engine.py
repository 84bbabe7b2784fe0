"""Engine: runs the large parts of a computation on other machines; without one, everything stays here.

A plain ``map`` would do for bits, but not for blocks of rows: their sums are matrices of megabytes, which must be added
up where they are, and what all tasks share must be sent once, not with every task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

_ENGINE: ContextVar[Engine | None] = ContextVar("engine", default=None)


class Engine(Protocol):
    """Runs tasks elsewhere. Functions, items and values can be pickled; a task that is lost is run again."""

    def submit(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """Compute ``make(*arguments)`` where the tasks run; return a handle, which may be an argument in its turn."""
        ...

    def map(self, function: Callable[..., Any], items: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Yield ``function(item, *shared)`` for each item, in the order of the items; ``shared`` are handles."""
        ...

    def total(
        self, function: Callable[..., Any], items: Iterable[Any], *shared: Any, report: Callable[[Any], None]
    ) -> Any:
        """Add up ``function(item, *shared)`` over all items, in an order that depends on their number alone.

        ``report`` is called with each item that is done. The answer is a handle.
        """
        ...

    def fetch(self, handle: Any) -> Any:
        """Return the value behind a handle."""
        ...


def scatter(engine: Engine, value: Any) -> Any:
    """Send a value to where the tasks run; return its handle."""
    return engine.submit(_identity, value)


def _identity(value: Any) -> Any:
    return value


def current_engine() -> Engine | None:
    """Return the engine of this context, None if computations stay here."""
    return _ENGINE.get()


@contextmanager
def using_engine(engine: Engine) -> Iterator[None]:
    """Let fits inside this context hand their large parts to an engine."""
    token = _ENGINE.set(engine)
    try:
        yield
    finally:
        _ENGINE.reset(token)
