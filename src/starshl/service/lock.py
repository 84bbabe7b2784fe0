"""A lock that any number of readers share, or one writer has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadersWriterLock:
    """A lock that any number of threads share, or that one thread has exclusively; writers go before new readers.

    A thread that shares it may share it once more inside.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._of_thread = threading.local()
        self._n_readers = 0
        self._has_writer = False

    @property
    def has_writer(self) -> bool:
        """Whether a thread has it exclusively, or waits for that."""
        return self._has_writer

    @contextmanager
    def shared(self) -> Iterator[None]:
        if not self._depth:
            # Only at first: one that is inside must not wait for somebody who waits until it has left.
            with self._changed:
                self._changed.wait_for(lambda: not self._has_writer)
                self._n_readers += 1
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                with self._changed:
                    self._n_readers -= 1
                    self._changed.notify_all()

    @property
    def _depth(self) -> int:
        """How often this thread is inside."""
        return getattr(self._of_thread, "depth", 0)

    @_depth.setter
    def _depth(self, depth: int) -> None:
        self._of_thread.depth = depth

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._has_writer)
            self._has_writer = True
            self._changed.wait_for(lambda: self._n_readers == 0)
        try:
            yield
        finally:
            with self._changed:
                self._has_writer = False
                self._changed.notify_all()
