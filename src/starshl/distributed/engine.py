"""Tasks on a Dask cluster, with bounded memory and one kind of error when the cluster fails; and how to reach one."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from operator import add
from typing import Any
from uuid import uuid4

from joblib import effective_n_jobs

from .._common.extras import require
from .._common.threads import single_threaded_blas
from ..exceptions import ClusterError

_N_AHEAD = 4  # tasks per thread that are on the cluster at a time: enough that none waits, few enough for flat memory
_FAN_IN = 4  # results that one task adds up
_PULSE_SECONDS = 2.0  # between two looks at a cluster that does not answer
_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"
# Tests replace it to wait less.
CONNECT_SECONDS = 10.0  # a scheduler on the network answers much sooner
# Run by each worker when it starts. A terminal sends Ctrl+C to all processes of a command, and each worker would print
# a traceback; the process that started them ends them.
_LEAVE_CTRL_C_TO_US = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


class DaskEngine:
    """The :class:`starshl._common.engine.Engine` of a Dask client.

    What tasks share is itself made by a task, so that Dask makes it again wherever the worker that held it is lost.

    Parameters
    ----------
    client : distributed.Client
    patience : float, default=60.0
        Seconds to wait for a worker while there is none.
    """

    def __init__(self, client: Any, *, patience: float = 60.0):
        self._dask = require("dask", extra="dask")
        self._distributed = require("distributed", extra="dask")
        self.client = client
        self.patience = patience
        self._without_workers_since: float | None = None

    def submit(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """Compute a value that tasks share; return the future of it."""
        with self._failures(), self._dask.config.set({_LARGE_GRAPH: "1 TB"}):
            return self._submit(make, *arguments)

    def fetch(self, handle: Any) -> Any:
        """Return the value of a future."""
        self._wait_for_some([handle])
        with self._failures():
            return handle.result()

    def map(self, function: Callable[..., Any], items: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Yield results in the order of the items; no more than a few are on the cluster at a time."""
        waiting: deque[Any] = deque()
        n_ahead = self._n_ahead()
        for item in items:
            waiting.append(self._submit(function, item, *shared))
            if len(waiting) >= n_ahead:
                yield self.fetch(waiting.popleft())
        while waiting:
            yield self.fetch(waiting.popleft())

    def unordered(self, function: Callable[..., Any], items: Iterable[Any], *shared: Any) -> Iterator[tuple[Any, Any]]:
        """Yield each item with its result as soon as there is one: a slow task does not keep others waiting."""
        running: dict[Any, Any] = {}
        n_ahead = self._n_ahead()
        for item in items:
            running[self._submit(function, item, *shared)] = item
            while len(running) >= n_ahead:
                yield from self._collect(running)
        while running:
            yield from self._collect(running)

    def total(
        self, function: Callable[..., Any], items: Iterable[Any], *shared: Any, report: Callable[[Any], None]
    ) -> Any:
        """Add up results in a tree of fixed shape; results stay on the workers."""
        running = {self._submit(function, item, *shared): item for item in items}
        level = list(running)
        while len(level) > 1:
            groups = [level[start : start + _FAN_IN] for start in range(0, len(level), _FAN_IN)]
            # Before tasks that make more of what has to be added up.
            level = [self._submit(_added, *group, priority=10) for group in groups]
        (root,) = level
        while running:
            for done in self._wait_for_some(list(running)):
                report(running.pop(done))
                if done.status == "error":
                    self.fetch(done)
        self._wait_for_some([root])
        return root

    def _collect(self, running: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
        for done in self._wait_for_some(list(running)):
            with self._failures():
                result = done.result()
            yield running.pop(done), result

    def _submit(self, function: Callable[..., Any], *arguments: Any, priority: int = 0) -> Any:
        with self._failures():
            # Progress pages of Dask group tasks by what comes before the last dash.
            name = getattr(function, "func", function).__name__.strip("_<>")
            key = f"{name}-{uuid4().hex}"
            return self.client.submit(_on_one_thread, function, *arguments, key=key, pure=False, priority=priority)

    def _n_ahead(self) -> int:
        with self._failures():
            return max(_N_AHEAD, _N_AHEAD * sum(self.client.nthreads().values()))

    def _wait_for_some(self, futures: list[Any]) -> set[Any]:
        """Return the futures that are done once there is one, in any state; raise if no worker is left."""
        while True:
            with self._failures():
                done = {future for future in futures if future.done()}
                if done:
                    return done
                try:
                    with self.client.as_current():
                        self._distributed.wait(futures, timeout=_PULSE_SECONDS, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    self._require_workers()

    def _require_workers(self) -> None:
        if self.client.nthreads():
            self._without_workers_since = None
            return
        now = time.monotonic()
        self._without_workers_since = self._without_workers_since or now
        if now - self._without_workers_since > self.patience:
            raise ClusterError(
                f"The cluster at {self._address()} has had no worker for {self.patience:g} seconds. "
                "Start workers, then run this again."
            )

    def _address(self) -> str:
        return str(getattr(getattr(self.client, "scheduler", None), "address", "an unknown address"))

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn what Dask raises when a cluster fails into one error; errors of tasks themselves stay as they are."""
        distributed = self._distributed
        try:
            yield
        except distributed.KilledWorker as error:
            raise ClusterError(
                f"The cluster at {self._address()} gave up a task: {error.allowed_failures + 1} workers died while "
                "they worked on it, most likely because they ran out of memory. Give workers more memory, or make "
                "blocks smaller."
            ) from error
        except (distributed.CancelledError, distributed.core.CommClosedError) as error:
            raise ClusterError(
                f"The cluster at {self._address()} is gone: its scheduler does not answer. Start a cluster, then run "
                "this again."
            ) from error


def _on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task with BLAS on one thread, as on a single machine; the sums of several differ in their last bits."""
    with single_threaded_blas():
        return function(*arguments)


def _added(*results: Any) -> Any:
    return reduce(add, results)


@contextmanager
def connected(client: Any) -> Iterator[DaskEngine]:
    """Yield the engine of a ``distributed.Client``, or of a new one for the address of a scheduler."""
    if not isinstance(client, str):
        if not hasattr(client, "submit") or not hasattr(client, "nthreads"):
            raise TypeError(
                f"client is a {type(client).__name__}; it must be a distributed.Client or the address of a scheduler, "
                "such as 'tcp://127.0.0.1:8786'."
            )
        yield DaskEngine(client)
        return
    distributed = require("distributed", extra="dask")
    if "://" not in client:
        raise ValueError(f"{client!r} is not the address of a scheduler. An address looks like tcp://127.0.0.1:8786.")
    try:
        own = distributed.Client(client, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"There is no Dask scheduler at {client!r} that answers within {CONNECT_SECONDS:g} seconds. An address "
            "looks like tcp://127.0.0.1:8786; `starshl cluster local` starts a cluster and prints one."
        ) from error
    with _muted_dask_logs():
        try:
            yield DaskEngine(own)
        finally:
            own.close(timeout=CONNECT_SECONDS)


@contextmanager
def _muted_dask_logs() -> Iterator[None]:
    """Let errors speak for themselves: Dask also logs a traceback when a scheduler is gone."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def local_cluster(n_workers: int | None = None, *, port: int = 0) -> Iterator[Any]:
    """Yield a Dask cluster of processes on this machine, each with one thread; None is one process per core."""
    distributed = require("distributed", extra="dask")
    cluster = distributed.LocalCluster(
        n_workers=n_workers or effective_n_jobs(-1),
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        scheduler_port=port,
        dashboard_address="127.0.0.1:0",  # not 8787, which another cluster may have
        silence_logs=logging.ERROR,
        preload=[_LEAVE_CTRL_C_TO_US],
    )
    try:
        yield cluster
    finally:
        # A worker that does not end in time was killed by then, and what it was asked for is done.
        with suppress(TimeoutError):
            cluster.close()
