"""One real cluster of processes for all tests of this folder."""

import os
import signal
import threading
import time

import pytest


@pytest.fixture(scope="session")
def cluster():
    """Two workers, each a process with one thread, and a nanny that replaces it when it dies."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    from starshl.distributed import local_cluster

    with local_cluster(2) as started:
        yield started


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected


@pytest.fixture
def kill_a_worker(client):
    """A function that kills one worker, as the system does when memory runs out, once tasks are under way."""
    threads = []

    def kill_soon(prefix, n_tasks=1):
        def kill():
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                states = client.run_on_scheduler(_running, prefix=prefix)
                if len(states) >= n_tasks:
                    os.kill(client.run(os.getpid, workers=[states[0]])[states[0]], signal.SIGKILL)
                    return
                time.sleep(0.005)

        threads.append(threading.Thread(target=kill))
        threads[-1].start()
        return threads[-1]

    yield kill_soon
    for thread in threads:
        thread.join()


def _running(dask_scheduler, prefix):
    return [
        worker.address
        for worker in dask_scheduler.workers.values()
        for task in worker.processing
        if prefix in str(task.run_spec) + task.key
    ]
