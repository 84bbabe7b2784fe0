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
    """A function that kills one worker, as the system does when memory runs out, once a task of some name is under way.

    What it returns waits for that, and tells whether a worker was killed.
    """
    threads, killed, over = [], [], threading.Event()

    def kill(name):
        while not over.is_set():
            addresses = client.run_on_scheduler(_busy_workers, name=name)
            if addresses:
                process = client.run(os.getpid, workers=addresses[:1])[addresses[0]]
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                return
            time.sleep(0.005)

    def kill_soon(name):
        threads.append(threading.Thread(target=kill, args=(name,)))
        threads[-1].start()
        return lambda: (over.set(), threads[-1].join(), len(killed) == 1)[-1]

    yield kill_soon
    over.set()
    for thread in threads:
        thread.join()


def _busy_workers(dask_scheduler, name):
    workers = dask_scheduler.workers.values()
    return [worker.address for worker in workers if any(task.key.startswith(name) for task in worker.processing)]
