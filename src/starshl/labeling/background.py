"""Refits in the background after changes of labels: one at a time, and each can be canceled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Literal, NamedTuple

_log = logging.getLogger(__name__)


class CodesState(NamedTuple):
    """Whether the codes of a collection follow from the labels of a lesson.

    ``state`` is "idle" if nothing was asked for yet; ``error`` says why it is "failed". ``version`` is that of the
    labels which the codes follow from, None before the first time.
    """

    state: Literal["idle", "waiting", "running", "current", "canceled", "failed"]
    stage: str = ""
    version: int | None = None
    error: str | None = None


class RefitCanceled(Exception):
    """Ends a refit that was canceled."""


class BackgroundRefit:
    """A thread that calls ``refit`` once for all requests that came before it began.

    ``refit`` gets this object, to report its stages, and returns the version that the codes follow from then.
    """

    def __init__(self, refit: Callable[[BackgroundRefit], int | None]) -> None:
        self._refit = refit
        self._changed = threading.Condition()
        self._state = CodesState("idle")
        self._is_requested = self._is_canceled = self._is_closed = False
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> CodesState:
        return self._state

    def request(self) -> None:
        """Refit once more, as soon as the current refit has ended, which is not cut short."""
        with self._changed:
            if self._is_closed:
                return
            self._is_requested, self._is_canceled = True, False
            if self._state.state != "running":
                self._state = self._state._replace(state="waiting", error=None)
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="lesson codes", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def cancel(self) -> None:
        """Cancel what is waiting, and what is running at its next stage."""
        with self._changed:
            self._is_requested, self._is_canceled = False, True
            if self._state.state == "waiting":
                self._state = self._state._replace(state="canceled")
            self._changed.notify_all()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is waiting or running; return False if that took longer."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state.state not in ("waiting", "running"), seconds)

    def close(self) -> None:
        """Cancel, and wait for the thread to end."""
        self.cancel()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def report(self, stage: str) -> None:
        """Say at which stage a refit is, or end it here if it was canceled."""
        with self._changed:
            self.check()
            self._state = self._state._replace(stage=stage)

    def check(self) -> None:
        """End a refit here if it was canceled."""
        if self._is_canceled:
            raise RefitCanceled

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_requested or self._is_closed)
                if self._is_closed:
                    return
                self._is_requested = self._is_canceled = False
                self._state = self._state._replace(state="running", stage="", error=None)
            ended = self._run()
            with self._changed:
                waits = ended.state != "canceled" and self._is_requested
                self._state = ended._replace(state="waiting") if waits else ended
                self._changed.notify_all()

    def _run(self) -> CodesState:
        known = self._state.version
        try:
            version = self._refit(self)
        except RefitCanceled:
            return CodesState("canceled", version=known)
        except Exception as error:
            _log.warning("codes could not follow the labels", exc_info=error)
            return CodesState("failed", version=known, error=str(error))
        return CodesState("idle", version=known) if version is None else CodesState("current", version=version)
