"""Jobs: work in the background that reports its progress, can be canceled, and is known to the next service, too."""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

from .._common.files import replacing_file
from .._common.strict_json import parse_json
from ..client.answers import Job, JobState
from ..collection.collection import Collection
from ..exceptions import CollectionError, UnknownIdError
from .errors import BusyError, ConflictError, ServiceError, UnknownError, worded

_log = logging.getLogger(__name__)
# Tests replace these two by smaller numbers.
MOST_LINES = 10_000  # of a log; with more, most of them are about jobs that are forgotten
MOST_JOBS = 1000  # newest ones, which are remembered
_MOST_WAITING = 100  # one runs at a time, so more would wait too long


class Canceled(Exception):
    """Ends a job that was asked to stop."""


@dataclass(slots=True)
class RunningJob:
    """A job of this process, as its own function sees it."""

    kind: str
    collection: str
    key: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: JobState = "waiting"
    stage: str = ""
    done: int = 0
    total: int | None = None
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    error: str | None = None
    result: dict[str, Any] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    is_interrupted: bool = False
    log: Callable[[], None] = field(default=lambda: None)

    def report(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Say how far the job is, or end it here if it was canceled."""
        is_new = (stage, total) != (self.stage, self.total)
        self.stage, self.done, self.total = stage, done, total
        if is_new and not (total is None and done):
            self.log()
        self.check()

    def check(self) -> None:
        """End the job here if it was canceled."""
        if self.stop.is_set():
            raise Canceled

    def as_job(self) -> Job:
        """Return the job as others see it now."""
        return Job(**{each.name: getattr(self, each.name) for each in fields(Job)})


class Jobs:
    """One thread that works on jobs in the order in which they come.

    The last 1,000 are remembered, also by the next service of the same collections. A job that was canceled, or failed,
    may have stored the batches that it had finished; its state says so.

    Parameters
    ----------
    logs : dict of JobLog, default=None
        Where the jobs of each collection are written; without one, they are forgotten in the end.
    """

    def __init__(self, logs: Mapping[str, JobLog] | None = None) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobs")
        self._lock = threading.RLock()
        self._logs: dict[str, JobLog] = dict(logs or {})
        self._earlier: dict[str, Job] = {}
        self._jobs: dict[str, RunningJob] = {}
        self._is_closed = False

    def add_earlier(self, collection: str, log: JobLog, jobs: Iterable[Job]) -> None:
        """Remember the jobs of an earlier service, and write those to come to its log."""
        newest = list(jobs)[-MOST_JOBS:]
        log.replace(newest)
        self._logs[collection] = log
        self._earlier |= {job.id: job for job in newest}

    def start(
        self, kind: str, collection: str, work: Callable[[RunningJob], dict[str, Any]], *, key: str | None = None
    ) -> Job:
        """Begin a job as soon as those before it are done; ``work`` returns what to say about the result."""
        job = RunningJob(kind, collection, key)
        job.log = lambda: self._log_job(job)
        with self._lock:
            if self._is_closed:
                raise BusyError("The service is about to stop. Try again in a moment.")
            if sum(other.state == "waiting" for other in self._jobs.values()) >= _MOST_WAITING:
                raise BusyError(f"{_MOST_WAITING} jobs are waiting already. Try again when some are done.")
            self._forget_old()
            self._jobs[job.id] = job
            job.log()
            self._thread.submit(self._run, job, work)
        return job.as_job()

    def list(self, collection: str) -> list[Job]:
        """Return the jobs of a collection, the newest last."""
        with self._lock:
            jobs = [*self._earlier.values(), *(job.as_job() for job in self._jobs.values())]
        return [job for job in jobs if job.collection == collection]

    def get(self, collection: str, job: str) -> Job:
        with self._lock:
            running = self._jobs.get(job)
            found = self._earlier.get(job) if running is None else running.as_job()
        if found is None or found.collection != collection:
            raise UnknownError("There is no such job here. The service remembers the last 1,000.")
        return found

    def cancel(self, collection: str, job: str) -> Job:
        """Ask a job to stop; it ends at its next step, or before it has begun."""
        found = self.get(collection, job)
        if found.ended is not None:
            raise ConflictError(
                f"The job is over ({found.state}); you can only cancel a job that is waiting or running."
            )
        self._jobs[job].stop.set()
        return self._jobs[job].as_job()

    def close(self) -> None:
        """Interrupt all jobs and wait until they have stopped; the next service says what became of them."""
        with self._lock:
            self._is_closed = True
            for job in self._jobs.values():
                job.is_interrupted = not job.stop.is_set()
                job.stop.set()
        self._thread.shutdown(wait=True)

    def _forget_old(self) -> None:
        over = [*self._earlier, *(job.id for job in self._jobs.values() if job.ended is not None)]
        for old in over[: max(0, len(self._earlier) + len(self._jobs) - MOST_JOBS + 1)]:
            self._earlier.pop(old, None)
            self._jobs.pop(old, None)

    def _run(self, job: RunningJob, work: Callable[[RunningJob], dict[str, Any]]) -> None:
        job.started = time.time()
        try:
            job.check()
            job.state = "running"
            job.log()
            job.result = work(job)
            job.state = "done"
        except Canceled:
            job.state = "interrupted" if job.is_interrupted else "canceled"
        except Exception as error:
            job.state, job.error = "failed", _sentence(error)
        job.ended = time.time()
        # The next service finds an interrupted job as it was, and asks the collection what it has stored.
        if job.state != "interrupted":
            job.log()

    def _log_job(self, job: RunningJob) -> None:
        with self._lock:
            log = self._logs.get(job.collection)
            try:
                if log is not None:
                    log.append(job.as_job(), self.list(job.collection))
            except OSError as error:
                # The work is worth more than its log.
                _log.error("a job could not be logged", exc_info=error)


def _sentence(error: Exception) -> str:
    """Return what to say about an error: the words of an expected one, and of others only that they happened."""
    if isinstance(error, ValueError | UnknownIdError | ServiceError | CollectionError):
        return worded(error)
    _log.error("a job failed", exc_info=error)
    return "Something unexpected went wrong; the log of the service has the details."


class JobLog:
    """A file beside a collection, which exists from its first job on.

    A crash can tear the last line, which is ignored then. Nothing here says what a job has stored: the collection
    itself does, by its receipts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._n_lines = 0

    def read(self) -> list[Job]:
        """Return each job as it was last written, the oldest first."""
        found: dict[str, Job] = {}
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        for line in lines:
            try:
                job = Job.of(parse_json(line))
            except (ValueError, TypeError, AttributeError):
                _log.warning("a line of %s cannot be read and is skipped", self._path)
            else:
                found[job.id] = job
        return list(found.values())

    def append(self, job: Job, all_jobs: Iterable[Job] = ()) -> None:
        """Write how a job is now; once in a while, ``all_jobs`` replace the lines before."""
        with self._lock:
            if self._n_lines >= MOST_LINES:
                self._write(all_jobs)
            with self._path.open("ab") as file:
                file.write(_line(job))
            self._n_lines += 1

    def replace(self, jobs: Iterable[Job]) -> None:
        """Write these jobs and forget all others."""
        with self._lock:
            self._write(jobs)

    def _write(self, jobs: Iterable[Job]) -> None:
        lines = [_line(job) for job in jobs]
        if lines or self._path.exists():
            with replacing_file(self._path) as file:
                file.writelines(lines)
        self._n_lines = len(lines)


def _line(job: Job) -> bytes:
    return json.dumps(asdict(job)).encode() + b"\n"


def job_receipt(job: str) -> str:
    """Return the key of the receipt that a job stores together with its one change."""
    return f"job/{job}"


def batch_receipt(key: str, number: int) -> str:
    """Return the key of the receipt that an import stores together with a batch."""
    return f"import/{key}/{number}"


def resolve_interrupted(jobs: Iterable[Job], collection: Collection) -> list[Job]:
    """Return jobs of an earlier service; the receipts of the collection say what became of those that it cut short."""
    return [_resolved(job, collection) if job.state in ("waiting", "running") else job for job in jobs]


def _resolved(job: Job, collection: Collection) -> Job:
    over = replace(job, ended=time.time(), state="interrupted")
    if job.kind == "import" and job.key is not None:
        return _resolved_import(over, job.key, collection)
    receipt = collection.receipt(job_receipt(job.id))
    if receipt is not None:
        return replace(over, state="done", result=json.loads(receipt))
    return replace(
        over, error="The service stopped before this job was done. The job has changed nothing. Start it again."
    )


def _resolved_import(job: Job, key: str, collection: Collection) -> Job:
    n_stored = 0
    for number in count():
        receipt = collection.receipt(batch_receipt(key, number))
        if receipt is None:
            break
        n_stored += json.loads(receipt)["n"]
    if n_stored == job.total:
        return replace(job, state="done", done=n_stored, result={"stored": n_stored})
    of_all = "" if job.total is None else f" of {job.total}"
    error = (
        f"The service stopped before this job was done. {n_stored}{of_all} items are stored. Send the same lines "
        f"with the header Idempotency-Key: {key} to store the rest."
    )
    return replace(job, done=n_stored, error=error)
