"""A gate that many pass at the same time, and that one can close for all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Gate"]


class Gate:
    """A lock that any number of threads share, or that one thread has alone; one that wants it alone goes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._n_inside = 0
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether a thread has it alone, or waits for that."""
        return self._is_closed

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_closed)
            self._n_inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_closed)
            self._is_closed = True
            self._changed.wait_for(lambda: self._n_inside == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_closed = False
                self._changed.notify_all()
