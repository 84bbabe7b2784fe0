"""Do the runs of a plan, several at a time, each once.

Every run goes to a file of its own that is complete or not there, so a kill at any point loses no more than the runs
that were under way. Workers are processes: one that the system ends, for want of memory, say, costs its run alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from statistics import fmean

from joblib import effective_n_jobs

from .._threads import single_threaded_blas
from ..evaluation import Record, RecordFolder
from .plan import Job
from .scored import scores_of

__all__ = ["Outcome", "Progress", "execute"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The state after a run; ``seconds_left`` is judged by what the same methods took so far."""

    n_done: int
    n_total: int
    n_failed: int
    title: str
    seconds_left: float


@dataclass(slots=True)
class Outcome:
    """How many runs were done now and how many before, and the message of each one that failed, by title."""

    n_done: int = 0
    n_reused: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def execute(
    jobs: Sequence[Job],
    folder: RecordFolder,
    *,
    n_jobs: int | None = None,
    retry_failed: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Do all runs that the folder has no record of, or one of a method whose parameters were others.

    Parameters
    ----------
    jobs : sequence of Job
    folder : RecordFolder
    n_jobs : int, default=None
        Runs at a time; None is one, within this process; -1 is as many as there are cores.
    retry_failed : bool, default=False
        Do runs again whose record says that they failed.
    report : callable, default does nothing
        Called with a :class:`Progress` after every run.
    """
    outcome = Outcome()
    pending = []
    for job in jobs:
        record = folder.load(job.key) if folder.finished(job.key, retry_failed=retry_failed) else None
        # A default that was changed since is not in the key.
        if record is None or (record.ok and record.parameters != job.parameters()):
            pending.append(job)
            continue
        outcome.n_reused += 1
        if not record.ok:
            outcome.failed[job.title] = record.message
    n_workers = min(effective_n_jobs(n_jobs), len(pending))
    clock = _Clock(pending, max(1, n_workers))
    run_pending = _run_here if n_workers <= 1 else _run_in_workers
    for job, message, seconds in run_pending(pending, folder, n_workers):
        outcome.n_done += 1
        if message:
            outcome.failed[job.title] = message
        clock.note(job, seconds)
        report(Progress(outcome.n_done, len(pending), len(outcome.failed), job.title, clock.seconds_left()))
    return outcome


class _Clock:
    """Tells the time left from what runs of the same method took a bit."""

    def __init__(self, pending: Sequence[Job], n_workers: int):
        self.left, self.n_workers = {job.key.text: job for job in pending}, n_workers
        self.paces: dict[tuple[str, str], list[float]] = {}

    def note(self, job: Job, seconds: float) -> None:
        del self.left[job.key.text]
        self.paces.setdefault((job.protocol.name, job.contestant), []).append(seconds / (job.n_bits or 1))

    def seconds_left(self) -> float:
        overall = fmean(pace for paces in self.paces.values() for pace in paces)
        total = 0.0
        for job in self.left.values():
            paces = self.paces.get((job.protocol.name, job.contestant))
            total += (fmean(paces) if paces else overall) * (job.n_bits or 1)
        return total / self.n_workers


def _run_here(pending: Sequence[Job], folder: RecordFolder, n_workers: int) -> Iterator[tuple[Job, str, float]]:
    for job in pending:
        start = time.perf_counter()
        message = _run_and_keep(job, folder)
        yield job, message, time.perf_counter() - start


def _run_and_keep(job: Job, folder: RecordFolder) -> str:
    """Do a run, keep record and scores, and return why it failed, or an empty string."""
    with single_threaded_blas():
        record = job.perform()
        folder.save(record)
        if record.ok:
            scores_of(folder, record, n_jobs=1)
    return record.message


def _run_in_workers(pending: Sequence[Job], folder: RecordFolder, n_workers: int) -> Iterator[tuple[Job, str, float]]:
    queue = list(reversed(pending))
    workers = [_Worker(folder) for _ in range(n_workers)]
    try:
        for worker in workers:
            worker.give(queue)
        while busy := [worker for worker in workers if worker.job is not None]:
            for connection in wait([worker.connection for worker in busy]):
                worker = next(worker for worker in busy if worker.connection is connection)
                yield worker.take()
                worker.give(queue)
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that does one run after another, and is replaced if it dies."""

    def __init__(self, folder: RecordFolder):
        self.folder, self.job, self.started = folder, None, 0.0
        self._start()

    def _start(self) -> None:
        # Forking a process whose libraries have threads may deadlock.
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.folder.path), daemon=True)
        self.process.start()
        # Only the worker may hold its end: its death is then seen as the end of the pipe.
        theirs.close()

    def give(self, queue: list[Job]) -> None:
        """Start the next run of the queue, if there is one."""
        self.job = queue.pop() if queue else None
        self.started = time.perf_counter()
        if self.job is None:
            return
        try:
            self.connection.send(self.job)
        except OSError:  # it died between two runs
            self._replace()
            self.connection.send(self.job)

    def take(self) -> tuple[Job, str, float]:
        """Return the run that has ended, its message and how long it took."""
        try:
            message = self.connection.recv()
        except (EOFError, ConnectionResetError):
            message = self._bury()
        return self.job, message, time.perf_counter() - self.started

    def _bury(self) -> str:
        self.process.join()
        message = f"The process of this run ended with code {self.process.exitcode}; memory may have run out."
        if not self.folder.finished(self.job.key):
            self.folder.save(Record(self.job.key, self.job.protocol.dataset, "failed", message))
        self._replace()
        return message

    def _replace(self) -> None:
        self.connection.close()
        self._start()

    def end(self) -> None:
        """End the process, whatever it does."""
        self.connection.close()
        self.process.terminate()
        self.process.join()


def _serve(connection: Connection, path) -> None:
    folder = RecordFolder(path)
    # The pipe ends when the process that gave out the runs has ended or was killed.
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            connection.send(_run_and_keep(connection.recv(), folder))
