"""A gate that many pass at the same time, and that one can close for all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """A lock that any number of threads share, or that one thread has alone; one that wants it alone goes first.

    A thread that shares it may share it once more inside.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._of_thread = threading.local()
        self._n_inside = 0
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether a thread has it alone, or waits for that."""
        return self._is_closed

    @contextmanager
    def shared(self) -> Iterator[None]:
        if not self._depth:
            # Only at first: one that is inside must not wait for somebody who waits until it has left.
            with self._changed:
                self._changed.wait_for(lambda: not self._is_closed)
                self._n_inside += 1
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                with self._changed:
                    self._n_inside -= 1
                    self._changed.notify_all()

    @property
    def _depth(self) -> int:
        """How often this thread is inside."""
        return getattr(self._of_thread, "depth", 0)

    @_depth.setter
    def _depth(self, depth: int) -> None:
        self._of_thread.depth = depth

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
