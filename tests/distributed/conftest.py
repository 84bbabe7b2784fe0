"""One real cluster of processes for all tests of this folder."""

import os
import signal
from contextlib import suppress

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
        connected.wait_for_workers(2, timeout=120)
        yield connected


@pytest.fixture
def kill_a_worker(client, tmp_path, monkeypatch):
    """A function of a name: the first task of that name kills its worker, as the system does when memory runs out.

    What it returns tells whether a worker was killed.
    """
    submit, marker = client.submit, tmp_path / "killed"

    # Functions inside of functions travel by value: workers cannot import this file.
    def die_once(path, function, *arguments):
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    def kill_within(name):
        def submit_some_to_die(function, *arguments, key, **settings):
            if key.startswith(name):
                function, arguments = die_once, (str(marker), function, *arguments)
            return submit(function, *arguments, key=key, **settings)

        monkeypatch.setattr(client, "submit", submit_some_to_die)
        return marker.exists

    return kill_within
