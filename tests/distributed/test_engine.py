"""The engine of Dask: order, sums in a fixed tree, errors of tasks as they are and of clusters in one sentence."""

import operator
import os
import sys
import time

import pytest

pytest.importorskip("distributed", reason="the extra dask is not installed")

from distributed import Client, Event, LocalCluster, secede

from starshl.distributed import local_cluster
from starshl.distributed.engine import DaskEngine, connected
from starshl.exceptions import ClusterError, MissingExtraError


@pytest.fixture(scope="module")
def fail():
    # Functions inside of functions travel by value: workers cannot import this file.
    def fail_at_three(item):
        if item == 3:
            raise ValueError("item 3 is bad")
        return item

    return fail_at_three


def test_results_come_in_the_order_of_the_items_or_as_they_are_done(client):
    # A task that waits gives its thread back, so that the others are done whichever worker they are on.
    def first_waits(item, shared, other_is_done):
        if item == 0:
            secede()
            other_is_done.wait(timeout=120)
        return item + shared

    def first_waits_for_a_task(item, shared, other_is_done):
        result = first_waits(item, shared, other_is_done)
        other_is_done.set()
        return result

    engine, other_is_done, other_is_here = DaskEngine(client), Event(client=client), Event(client=client)
    shared = engine.submit(operator.add, 90, 10)
    assert list(engine.map(first_waits_for_a_task, range(20), shared, other_is_done)) == list(range(100, 120))
    items = []
    for item, result in engine.unordered(first_waits, range(20), shared, other_is_here):
        assert result == item + 100
        items.append(item)
        other_is_here.set()
    assert sorted(items) == list(range(20))
    assert items[0] != 0


def test_sums_are_taken_in_an_order_that_depends_on_nothing_but_their_number(client):
    engine, done = DaskEngine(client), []
    total = engine.total(lambda item: f"({item})", range(11), report=done.append)
    assert engine.fetch(total) == "".join(f"({item})" for item in range(11))
    assert sorted(done) == list(range(11))


def test_an_error_of_a_task_arrives_as_it_was_raised(client, fail):
    engine = DaskEngine(client)
    for run in (
        lambda: list(engine.map(fail, range(9))),
        lambda: list(engine.unordered(fail, range(9))),
        lambda: engine.fetch(engine.total(fail, range(9), report=lambda item: None)),
    ):
        with pytest.raises(ValueError, match="item 3 is bad"):
            run()


@pytest.mark.server
def test_a_cluster_that_fails_is_one_kind_of_error(fail):
    with LocalCluster(1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        client = Client(cluster, set_as_default=False)
        engine = DaskEngine(client, patience=0.5)
        cluster.scale(0)
        while client.nthreads():  # no task may find the worker that is about to go
            time.sleep(0.05)
        with pytest.raises(ClusterError, match=r"no worker for 0\.5 seconds"):
            engine.fetch(engine.submit(fail, 1))
        waiting = engine.submit(time.sleep, 60)
    with pytest.raises(ClusterError, match="is gone"):
        engine.fetch(waiting)
    client.close()


@pytest.mark.server
def test_a_scheduler_that_goes_is_one_error_and_no_log(caplog, capfd):
    cluster = LocalCluster(1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with connected(cluster.scheduler_address) as engine:
        waiting = engine.submit(time.sleep, 60)
        capfd.readouterr()
        cluster.close()
        with pytest.raises(ClusterError, match="is gone"):
            engine.fetch(waiting)
    assert [record for record in caplog.records if record.name == "distributed.client"] == []
    assert "Traceback" not in capfd.readouterr().err


def test_without_the_extra_the_line_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'starshl\[dask\]'"), connected("tcp://127.0.0.1:9"):
        pass


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_given_up(client):
    with pytest.raises(ClusterError, match="4 workers died"):
        list(DaskEngine(client).map(lambda item: os._exit(1), [0]))


def test_a_worker_that_is_slow_to_end_spoils_nothing_that_is_done(monkeypatch):
    class SlowToEnd:
        def __init__(self, **settings):
            pass

        def close(self):
            raise TimeoutError

    monkeypatch.setattr("distributed.LocalCluster", SlowToEnd)
    with local_cluster(1) as cluster:
        done = isinstance(cluster, SlowToEnd)
    assert done
