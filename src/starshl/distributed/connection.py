"""Clients of Dask clusters: given, or connected to by an address."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from joblib import effective_n_jobs

from .._extras import require
from ..exceptions import ClusterError
from .engine import DaskEngine

__all__ = ["connected", "local_cluster"]

_CONNECT_SECONDS = 10.0  # a scheduler on the network answers much sooner
# Run by each worker when it starts. A terminal sends Ctrl+C to all processes of a command, and each worker would print
# a traceback; the process that started them ends them.
_LEAVE_CTRL_C_TO_US = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


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
        own = distributed.Client(client, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"There is no Dask scheduler at {client!r} that answers within {_CONNECT_SECONDS:g} seconds. An address "
            "looks like tcp://127.0.0.1:8786; `starshl cluster local` starts a cluster and prints one."
        ) from error
    with _one_voice():
        try:
            yield DaskEngine(own)
        finally:
            own.close(timeout=_CONNECT_SECONDS)


@contextmanager
def _one_voice() -> Iterator[None]:
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
