"""Work that nobody waits for stops, and whoever asks for much keeps nobody else waiting."""

import json
import logging
import socket
import threading
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

from starshl.collection.store import Store
from starshl.service import Service, create_app
from starshl.service.http import server
from starshl.service.settings import Limits, Settings

pytestmark = pytest.mark.server
SEARCH = "/api/v1/collections/things/search"
MANY = np.random.default_rng(1).standard_normal((1000, 8)).round(3).tolist()


class Pieces:
    """Counts the pieces of searches, which all end by reading rows, and holds the first ones."""

    def __init__(self, monkeypatch, n_held):
        self.n, self.held, self.go_on = 0, threading.Semaphore(0), threading.Event()
        read, lock = Store.rows, threading.Lock()

        def rows(store, ids):
            with lock:
                self.n += 1
                is_held = self.n <= n_held
            if is_held:
                self.held.release()
                assert self.go_on.wait(60)
            return read(store, ids)

        monkeypatch.setattr(Store, "rows", rows)


@contextmanager
def served(folder, **limits):
    settings = Settings(port=0, limits=Limits(**limits))
    app = create_app(lambda observer: Service([folder], observer=observer), settings)
    with server.BackgroundServer(app, settings) as running:
        yield running


def sent(running, body, path=SEARCH):
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=60)
    connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return connection


def wait_for(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("It did not happen within a minute.")


def has_status(caplog, status):
    records = [getattr(record, "fields", {}) for record in caplog.records]
    return any(fields.get("path") == SEARCH and fields.get("status") == status for fields in records)


HEAVY = [{"vectors": MANY}, {"vectors": MANY, "rescore": False}, {"vectors": MANY[:100], "k": 10, "explain": True}]


@pytest.mark.parametrize("body", HEAVY, ids=["rescored", "by codes", "explained"])
def test_a_search_ends_when_its_client_leaves(folder, monkeypatch, caplog, body):
    caplog.set_level(logging.INFO, "starshl.service.requests")
    with served(folder) as running:
        pieces = Pieces(monkeypatch, n_held=1)
        connection = sent(running, body)
        assert pieces.held.acquire(timeout=60)
        connection.close()
        wait_for(lambda: has_status(caplog, 499))
        pieces.go_on.set()
    # Closed: what was to run has run.
    assert pieces.n == 1


def test_a_search_that_took_too_long_ends(folder, monkeypatch):
    with served(folder, request_seconds=1.0) as running:
        pieces = Pieces(monkeypatch, n_held=1)
        answer = httpx.post(f"{running.address}{SEARCH}", json={"vectors": MANY}, timeout=60)
        assert answer.status_code == 503
        pieces.go_on.set()
    assert pieces.n == 1


def test_a_batch_of_searches_ends_with_its_client(folder, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "starshl.service.requests")
    searches = [{"vectors": MANY[:1], "k": k} for k in range(1, 101)]
    with served(folder) as running:
        pieces = Pieces(monkeypatch, n_held=10**6)
        connection = sent(running, {"searches": searches}, f"{SEARCH}/batch")
        assert pieces.held.acquire(timeout=60)
        connection.close()
        wait_for(lambda: any(getattr(record, "fields", {}).get("status") == 499 for record in caplog.records))
        pieces.go_on.set()
    assert pieces.n <= 8


def test_small_searches_are_answered_while_large_ones_run(folder, monkeypatch):
    with served(folder) as running:
        pieces = Pieces(monkeypatch, n_held=2)
        large = [sent(running, {"vectors": MANY, "k": k}) for k in (9, 10)]
        for _ in large:
            assert pieces.held.acquire(timeout=60)
        for k in range(1, 20):
            found = httpx.post(f"{running.address}{SEARCH}", json={"vectors": MANY[:2], "k": k}, timeout=60)
            assert [len(result["hits"]) for result in found.json()["results"]] == [k, k]
            assert httpx.get(f"{running.address}/api/v1/health/ready", timeout=60).status_code == 200
        pieces.go_on.set()
        for connection in large:
            assert connection.recv(20).startswith(b"HTTP/1.1 200")
            connection.close()


def test_a_write_is_stored_though_its_client_has_left(folder, monkeypatch):
    begun, go_on, put = threading.Event(), threading.Event(), Store.put

    def slow(store, *arguments, **settings):
        begun.set()
        assert go_on.wait(60)
        return put(store, *arguments, **settings)

    with served(folder) as running:
        monkeypatch.setattr(Store, "put", slow)
        connection = sent(running, {"items": [{"vector": MANY[0], "id": 1000}]}, SEARCH.replace("search", "items"))
        assert begun.wait(60)
        connection.close()
        go_on.set()
        where = f"{running.address}/api/v1/collections/things/items/1000"
        wait_for(lambda: httpx.get(where, timeout=60).status_code == 200)
