"""Jobs: work in the background that reports its progress and can be canceled."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .errors import BusyError, ConflictError, UnknownError

__all__ = ["Canceled", "Job", "JobState", "Jobs"]

_KEPT = 1000
_MOST_WAITING = 100
_log = logging.getLogger(__name__)


class Canceled(Exception):
    """Ends a job that was asked to stop."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as it was at one moment; times are seconds since 1970."""

    id: str
    kind: str
    collection: str
    state: str
    stage: str
    done: int
    total: int | None
    created: float
    started: float | None
    ended: float | None
    error: str | None
    result: dict[str, Any] | None


@dataclass(slots=True)
class Job:
    """A job under way, as its own function sees it."""

    kind: str
    collection: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: str = "waiting"
    stage: str = ""
    done: int = 0
    total: int | None = None
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    error: str | None = None
    result: dict[str, Any] | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def report(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Note how far the job is, or end it here if it was canceled."""
        self.stage, self.done, self.total = stage, done, total
        self.check()

    def check(self) -> None:
        """End the job here if it was canceled."""
        if self.stop.is_set():
            raise Canceled

    def snapshot(self) -> JobState:
        return JobState(**{name: getattr(self, name) for name in JobState.__slots__})


class Jobs:
    """One thread that works on jobs in the order in which they come.

    The last 1,000 are remembered until the service stops. A job that was canceled, or failed, may have stored the
    batches that it had finished; its state says so.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobs")
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._is_closed = False

    def start(self, kind: str, collection: str, work: Callable[[Job], dict[str, Any]]) -> JobState:
        """Begin a job as soon as those before it are done; ``work`` returns what to tell about the result."""
        job = Job(kind, collection)
        with self._lock:
            if self._is_closed:
                raise BusyError("The service is about to stop. Try again in a moment.")
            if sum(other.state == "waiting" for other in self._jobs.values()) >= _MOST_WAITING:
                raise BusyError(f"{_MOST_WAITING} jobs are waiting already. Try again when some are done.")
            self._forget_old()
            self._jobs[job.id] = job
            self._thread.submit(self._run, job, work)
        return job.snapshot()

    def list(self, collection: str) -> list[JobState]:
        """Return the jobs of a collection, the newest last."""
        with self._lock:
            return [job.snapshot() for job in self._jobs.values() if job.collection == collection]

    def get(self, collection: str, job: str) -> JobState:
        return self._job(collection, job).snapshot()

    def cancel(self, collection: str, job: str) -> JobState:
        """Ask a job to stop; it ends at its next step, or before it has begun."""
        found = self._job(collection, job)
        if found.ended is not None:
            raise ConflictError(f"The job is over ({found.state}); only one that waits or runs can be canceled.")
        found.stop.set()
        return found.snapshot()

    def close(self) -> None:
        """Cancel all jobs and wait until they have stopped."""
        with self._lock:
            self._is_closed = True
            for job in self._jobs.values():
                job.stop.set()
        self._thread.shutdown(wait=True)

    def _job(self, collection: str, job: str) -> Job:
        with self._lock:
            found = self._jobs.get(job)
        if found is None or found.collection != collection:
            raise UnknownError("There is no such job here. Jobs are forgotten when the service stops.")
        return found

    def _forget_old(self) -> None:
        over = [job.id for job in self._jobs.values() if job.ended is not None]
        for old in over[: max(0, len(self._jobs) - _KEPT + 1)]:
            del self._jobs[old]

    def _run(self, job: Job, work: Callable[[Job], dict[str, Any]]) -> None:
        job.started = time.time()
        try:
            job.check()
            job.state = "running"
            job.result = work(job)
            job.state = "done"
        except Canceled:
            job.state = "canceled"
        except Exception as error:
            job.state, job.error = "failed", _sentence(error)
        job.ended = time.time()


def _sentence(error: Exception) -> str:
    """Return what to tell about an error: the words of an expected one, and of others only that they happened."""
    from ..exceptions import CollectionError
    from .errors import ServiceError

    if isinstance(error, ValueError | ServiceError | CollectionError):
        return str(error)
    _log.error("a job failed", exc_info=error)
    return "Something went wrong that was not expected; the log of the service has the details."
