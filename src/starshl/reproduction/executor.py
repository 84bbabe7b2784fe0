"""Do many runs, each of them once, several at a time.

Runs of one group, such as the code lengths of one method on the same rows, are done one after the other by the same
process, which computes what they have in common once.

Every run goes to its own record, which is complete or absent, and then to a line of the summaries; a kill at any
point loses no more than the runs in progress. Workers are processes: if the system ends one, for example for lack of
memory, only its run is lost.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Protocol

from joblib import effective_n_jobs

from .._common.platform import available_bytes
from .._common.result_cache import ResultCache, caching_results
from .._common.threads import single_threaded_blas
from .._common.worker import Worker, WorkerDiedError
from ..exceptions import RecordFormatError
from .records import Record, RecordFolder, RunKey
from .summaries import RunSummary, SummaryFolder, summarize_record

Kind = tuple[Hashable, ...]
# The kernels of 10,000 training rows and 60,000 others take 4.4 GiB. With less room, each code length would push out
# what the next one needs.
_SHARED_MEMORY = 0.5  # of what is free, for all workers together
_SHARED_BYTES_ELSEWHERE = 4 << 30  # where the system does not tell what is free


class Clock:
    """Estimates the time left of tasks, from the pace of those that are done.

    Parameters
    ----------
    efforts : mapping of the name of each task to (kind, effort)
        Efforts are expected seconds on some machine; only their ratios matter. A kind is a tuple that goes from the
        general to the special. Tasks go on at the pace of those whose kinds begin like theirs for longest.
    n_workers : int, default=1

    Examples
    --------
    >>> clock = Clock({"a": (("lsh",), 1.0), "b": (("lsh",), 3.0), "c": (("ksh",), 10.0)})
    >>> clock.note("a", 2.0)
    >>> clock.seconds_left()
    26.0
    """

    def __init__(self, efforts: Mapping[str, tuple[Kind, float]], n_workers: int = 1):
        self._left = dict(efforts)
        self._n_workers = n_workers
        # Seconds and effort of what is done, by every beginning of a kind.
        self._done: dict[Kind, tuple[float, float]] = {}

    def note(self, task: str, seconds: float) -> None:
        """Take a task for done."""
        kind, effort = self._left.pop(task)
        for beginning in _beginnings(kind):
            known = self._done.get(beginning, (0.0, 0.0))
            self._done[beginning] = (known[0] + seconds, known[1] + effort)

    def seconds_left(self) -> float:
        """Return the time that the other tasks will take, zero before any is done."""
        total = sum(effort * self._pace(kind) for kind, effort in self._left.values())
        return total / max(1, min(self._n_workers, len(self._left)))

    def _pace(self, kind: Kind) -> float:
        for beginning in _beginnings(kind):
            seconds, effort = self._done.get(beginning, (0.0, 0.0))
            if effort:
                return seconds / effort
        return 0.0


def _beginnings(kind: Kind) -> list[Kind]:
    """Return the kind itself and all that it begins with, the longest first."""
    return [kind[:length] for length in range(len(kind), -1, -1)]


class RunTask(Protocol):
    """A run to do: picklable, and the same record wherever it is performed."""

    @property
    def key(self) -> RunKey: ...

    @property
    def dataset(self) -> str: ...

    @property
    def title(self) -> str:
        """What a progress line says."""
        ...

    @property
    def group(self) -> tuple[object, ...]:
        """Runs of one group have work in common."""
        ...

    def effort(self, *, first: bool) -> float:
        """About how long it takes, in any unit that all tasks share, as the first of its group or after others."""
        ...

    @property
    def needs_codes(self) -> bool:
        """Whether the run needs its record: if that is missing, the run is repeated in spite of a summary."""
        ...

    def perform(self) -> Record:
        """Do the run; a method that raises gives a failed record."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """The state after a run; ``seconds_left`` is an estimate, see :class:`starshl.reproduction.executor.Clock`."""

    n_done: int
    n_total: int
    n_failed: int
    title: str
    seconds_left: float


@dataclass(slots=True)
class Outcome:
    """How the runs ended.

    Attributes
    ----------
    n_done, n_reused : int
        Runs done now, and runs done before.
    failed : dict
        The message of each run that failed, by title.
    damaged : list of str
        Records that could not be read; their runs were done again.
    """

    n_done: int = 0
    n_reused: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)


def execute(
    tasks: Sequence[RunTask],
    folder: RecordFolder,
    summaries: SummaryFolder,
    *,
    n_jobs: int | None = None,
    retry_failed: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Do all runs that have neither a summary nor a record under their key, and add their summaries; each key once.

    Parameters
    ----------
    tasks : sequence of RunTask
    folder : RecordFolder
    summaries : SummaryFolder
    n_jobs : int, default=None
        Runs at a time; None is one, within this process; -1 is as many as there are cores.
    retry_failed : bool, default=False
        Repeat runs that failed before.
    report : callable, default does nothing
        Called with a :class:`Progress` after every run.
    """
    outcome = Outcome()
    pending = []
    for task in {task.key.text: task for task in tasks}.values():
        summary = _earlier(task, folder, summaries, outcome)
        if summary is None or (retry_failed and not summary.record.ok):
            pending.append(task)
            continue
        outcome.n_reused += 1
        if not summary.record.ok:
            outcome.failed[task.title] = summary.record.message
    n_workers = min(effective_n_jobs(n_jobs), len(pending))
    clock = Clock(_efforts(pending), max(1, n_workers))
    run_pending = _run_here if n_workers <= 1 else _run_in_workers
    # Closed whatever happens: workers end with it.
    with closing(run_pending(pending, folder, n_workers)) as runs:
        for task, summary, seconds in runs:
            summaries.add(summary)
            outcome.n_done += 1
            if not summary.record.ok:
                outcome.failed[task.title] = summary.record.message
            # Loops are compiled once, so that says nothing about other runs.
            clock.note(task.key.text, max(0.0, seconds - summary.record.seconds.get("compile", 0.0)))
            report(Progress(outcome.n_done, len(pending), len(outcome.failed), task.title, clock.seconds_left()))
    return outcome


def _earlier(task: RunTask, folder: RecordFolder, summaries: SummaryFolder, outcome: Outcome) -> RunSummary | None:
    """Return the summary of a finished run, made from its record if necessary; None if the run must be done."""
    path = folder.path_of(task.key)
    summary = summaries.get(task.key)
    if not path.exists():
        return None if task.needs_codes and summary is not None and summary.record.ok else summary
    try:
        record = folder.load(task.key)
    except RecordFormatError:
        outcome.damaged.append(path.relative_to(folder.path).as_posix())
        return None
    if summary is None:
        summary = summarize_record(record)
        summaries.add(summary)
    return summary


def _run_here(
    pending: Sequence[RunTask], folder: RecordFolder, n_workers: int
) -> Generator[tuple[RunTask, RunSummary, float], None, None]:
    performer = _Performer(folder, bytes_to_share(n_workers))
    for task in itertools.chain.from_iterable(_grouped(pending)):
        start = time.perf_counter()
        summary = performer.run_and_save(task)
        yield task, summary, time.perf_counter() - start


def _grouped(tasks: Sequence[RunTask]) -> list[list[RunTask]]:
    """Return the tasks of each group, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[RunTask]] = {}
    for task in tasks:
        groups.setdefault(task.group, []).append(task)
    return list(groups.values())


def bytes_to_share(n_workers: int) -> int:
    """Return how much memory each worker may fill with what its runs have in common."""
    free = available_bytes()
    return int(_SHARED_BYTES_ELSEWHERE if free is None else _SHARED_MEMORY * free) // max(1, n_workers)


def _efforts(tasks: Sequence[RunTask]) -> dict[str, tuple[tuple[object, ...], float]]:
    """Return kind and effort of each task: a method has the same pace at all lengths and in all runs of a protocol."""
    return {
        task.key.text: ((task.key.protocol, task.key.method, number == 0), task.effort(first=number == 0))
        for group in _grouped(tasks)
        for number, task in enumerate(group)
    }


class _Performer:
    """Does one run after another, and keeps what runs of one group have in common."""

    def __init__(self, folder: RecordFolder, max_bytes: int):
        self.folder = folder
        self.group: tuple[object, ...] | None = None
        self.work = ResultCache(max_bytes)

    def run_and_save(self, task: RunTask) -> RunSummary:
        if task.group != self.group:
            self.work.clear()
            self.group = task.group
        with single_threaded_blas(), caching_results(self.work):
            record = task.perform()
            self.folder.save(record)
            return summarize_record(record, n_jobs=1)


def _run_in_workers(
    pending: Sequence[RunTask], folder: RecordFolder, n_workers: int
) -> Generator[tuple[RunTask, RunSummary, float], None, None]:
    queue, max_bytes = _grouped(pending), bytes_to_share(n_workers)
    workers = [_RunWorker(folder, max_bytes, queue) for _ in range(n_workers)]
    # Each thread waits for one process.
    with ThreadPoolExecutor(n_workers, thread_name_prefix="runs") as threads:
        try:
            running = {threads.submit(worker.run, task): worker for worker in workers for task in worker.next_task()}
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker = running.pop(future)
                    yield future.result()
                    running |= {threads.submit(worker.run, task): worker for task in worker.next_task()}
        finally:
            for worker in workers:
                worker.stop()


class _RunWorker:
    """A process that does one run after another, all of a group before the next one, and is replaced if it dies."""

    def __init__(self, folder: RecordFolder, max_bytes: int, queue: list[list[RunTask]]):
        self._folder, self._queue = folder, queue
        self._rest_of_group: list[RunTask] = []
        self._worker = Worker(_Performer(folder, max_bytes).run_and_save)
        self._is_stopped = False

    def next_task(self) -> list[RunTask]:
        """Return the next run of its group or else of the next group in the queue, if there is one."""
        if not self._rest_of_group and self._queue:
            self._rest_of_group = self._queue.pop(0)
        return [self._rest_of_group.pop(0)] if self._rest_of_group else []

    def run(self, task: RunTask) -> tuple[RunTask, RunSummary, float]:
        """Do a run; return its summary and how long it took."""
        started = time.perf_counter()
        try:
            summary = self._worker.call(task)
        except WorkerDiedError as error:
            if self._is_stopped:
                raise
            summary = self._failure(task, error.exit_code)
        return task, summary, time.perf_counter() - started

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._is_stopped = True
        self._worker.stop()

    def _failure(self, task: RunTask, exit_code: int) -> RunSummary:
        with suppress(FileNotFoundError, RecordFormatError):
            # It may have died after the run was saved.
            if (saved := self._folder.load(task.key)).ok:
                return summarize_record(saved)
        message = f"The process of this run ended with code {exit_code}; memory may have run out."
        record = Record(task.key, task.dataset, "failed", message)
        self._folder.save(record)
        return RunSummary(record)
