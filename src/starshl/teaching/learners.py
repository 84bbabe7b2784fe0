"""Where the codes of a lesson are learned: here, or in a process of their own that keeps no answer waiting."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..hybrid import HybridHasher
from .codes import CodesTask, learn_codes

__all__ = ["Learner", "LearnsApart", "LearnsHere"]

_SECONDS_IDLE = 60.0  # a process that waits for longer is ended: it holds memory, and a new one starts within seconds
_MODULE = f"{__package__}.learning_process"


class Learner(Protocol):
    """Learns codes of the same rows, again and again."""

    def learn(self, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
        """Return what :func:`learn_codes` does."""

    def stop(self) -> None:
        """End what is running, as far as that is possible; the next task begins anew."""


class LearnsHere:
    """Learns in the thread that asks."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows

    def learn(self, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
        return learn_codes(self._rows, task, report)

    def stop(self) -> None:
        pass


class LearnsApart:
    """Learns in another process, of low priority.

    In this one, a fit would compete with every answer for the interpreter and for the threads of BLAS, which take turns
    however many cores there are.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: threading.Timer | None = None

    @property
    def process_id(self) -> int | None:
        """The number of the process, None if there is none."""
        process = self._process
        return None if process is None else process.pid

    def learn(self, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
        process, is_new = self._running()
        try:
            # After the process has begun: whoever cancels from now on ends it.
            report("fitting")
            if is_new:
                _send(process, self._rows)
            return _asked(process, task, report)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            report("fitting")  # ends this if it was canceled, which is why the process is gone
            self.stop()
            raise RuntimeError(f"The process that learns codes has ended (code {process.returncode}).") from error
        except BaseException:
            # It may be in the middle of something that nobody waits for any more.
            self.stop()
            raise
        finally:
            self._end_later()

    def stop(self) -> None:
        with self._lock:
            process, self._process = self._process, None
            if self._ending is not None:
                self._ending.cancel()
        if process is not None:
            process.kill()
            # Only this: a thread may be reading from it, and gets to know that it has ended.
            process.wait()

    def _running(self) -> tuple[subprocess.Popen[bytes], bool]:
        """Return the process, and whether it has just begun and knows no rows yet."""
        with self._lock:
            if self._ending is not None:
                self._ending.cancel()
            if self._process is not None and self._process.poll() is None:
                return self._process, False
            # Not from the folder of the user, whose files may be called like modules; Ctrl+C is for this process alone,
            # and warnings of a fit that nobody called are for nobody.
            command = [sys.executable, "-P", "-W", "ignore", "-m", _MODULE]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, start_new_session=True
            )
            self._process = process
        return process, True

    def _end_later(self) -> None:
        with self._lock:
            if self._process is not None:
                self._ending = threading.Timer(_SECONDS_IDLE, self.stop)
                self._ending.daemon = True
                self._ending.start()


def _asked(
    process: subprocess.Popen[bytes], task: CodesTask, report: Callable[[str], None]
) -> tuple[HybridHasher, np.ndarray]:
    _send(process, task)
    assert process.stdout is not None
    while True:
        kind, content = pickle.load(process.stdout)
        if kind == "error":
            raise ValueError(content)
        if kind == "learned":
            hasher, packed = content
            return hasher, packed
        report(content)


def _send(process: subprocess.Popen[bytes], value: Any) -> None:
    assert process.stdin is not None
    pickle.dump(value, process.stdin, pickle.HIGHEST_PROTOCOL)
    process.stdin.flush()
