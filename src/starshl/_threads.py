"""Threads that never change a result: fixed pieces of work, BLAS single-threaded inside each piece."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  (loads SciPy's own BLAS before the controller looks for libraries)
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController


@cache
def _blas_libraries() -> ThreadpoolController:
    # Finding the loaded libraries takes milliseconds, longer than encoding a row: do it once.
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread, because its sums change in the last bits with the number of threads."""
    with _blas_libraries().limit(limits=1):
        yield


def run_all(tasks: Iterable[Callable[[], object]], n_jobs: int | None = None) -> list:
    """Run independent tasks on ``n_jobs`` threads; return their results in the order of the tasks."""
    tasks = list(tasks)
    n_threads = min(effective_n_jobs(n_jobs), len(tasks))
    if n_threads <= 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def tiles(n_rows: int, size: int) -> list[slice]:
    """Cut ``range(n_rows)`` into slices of ``size`` rows; the cut never depends on the machine."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
