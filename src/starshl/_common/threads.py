"""Threads that never change a result: fixed pieces of work, BLAS single-threaded inside each piece."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from threading import Lock, Thread
from typing import TypeVar

from threadpoolctl import LibController, ThreadpoolController

from .lazy import library

joblib = library("joblib")
Result = TypeVar("Result")


def run_all(tasks: Iterable[Callable[[], Result]], n_jobs: int | None = None) -> list[Result]:
    """Run independent tasks on ``n_jobs`` threads; return their results in the order of the tasks.

    The calling thread is one of them, so that a search of a fraction of a millisecond need not wait for others to
    start. If a task fails, those not yet begun are left out and the error is raised when the others are done.
    """
    tasks = list(tasks)
    # Counting the cores reads files; a single task, one row to encode, need not wait for that.
    n_threads = min(count_threads(n_jobs), len(tasks)) if len(tasks) > 1 else 1
    if n_threads == 1:
        return [task() for task in tasks]
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    waiting = deque(range(len(tasks)))

    def work() -> None:
        with suppress(IndexError):
            while True:
                number = waiting.popleft()
                try:
                    results[number] = tasks[number]()
                except BaseException as error:
                    waiting.clear()
                    errors.append(error)

    helpers = [Thread(target=work) for _ in range(n_threads - 1)]
    for helper in helpers:
        helper.start()
    try:
        with using_threads(1):  # a task that calls run_all itself stays on its thread, here as in the helpers
            work()
    finally:
        waiting.clear()
        for helper in helpers:
            helper.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(tasks))]


def count_threads(n_jobs: int | None) -> int:
    """Return how many threads :func:`run_all` would use for many tasks."""
    # None is one thread, unless joblib was told otherwise; as long as nobody has imported it, nobody has.
    return 1 if n_jobs is None and "joblib" not in sys.modules else joblib.effective_n_jobs(n_jobs)


def tiles(n_rows: int, size: int) -> list[slice]:
    """Cut ``range(n_rows)`` into slices of ``size`` rows; the cut never depends on the machine."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def using_threads(n_jobs: int | None) -> AbstractContextManager[object]:
    """Let :func:`run_all` use ``n_jobs`` threads inside this context; None leaves the number as it is."""
    return nullcontext() if n_jobs is None else joblib.parallel_config("threading", n_jobs=n_jobs)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread, because its sums change in the last bits with the number of threads."""
    _one_thread.acquire()
    try:
        yield
    finally:
        _one_thread.release()


class _SharedLimit:
    """A limit that lasts from the first holder to the last.

    The number of BLAS threads belongs to the process. If overlapping holders each restored the number they
    started with, the one that ends last would leave the limit of another in place for good. Each new holder sets the
    number again, because others may have changed it meanwhile, and libraries may have been loaded.
    """

    def __init__(self) -> None:
        self.lock, self.n_holders = Lock(), 0
        self.limited: dict[str, tuple[LibController, int]] = {}

    def acquire(self) -> None:
        with self.lock:
            for library in _threaded_libraries(len(sys.modules)):
                n_threads = library.num_threads
                self.limited.setdefault(library.filepath, (library, n_threads))
                if n_threads != 1:
                    library.set_num_threads(1)
            self.n_holders += 1

    def release(self) -> None:
        with self.lock:
            self.n_holders -= 1
            if self.n_holders == 0:
                for library, n_threads in self.limited.values():
                    library.set_num_threads(n_threads)
                self.limited.clear()


_one_thread = _SharedLimit()


@lru_cache(maxsize=1)
def _threaded_libraries(n_modules: int) -> list[LibController]:
    """Return the loaded libraries of BLAS and OpenMP; ``n_modules`` grows when Python may have loaded another."""
    # Finding them takes milliseconds, longer than encoding a row: do it once.
    return ThreadpoolController().lib_controllers
