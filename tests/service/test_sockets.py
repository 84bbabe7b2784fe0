"""The service behind a real socket: clients that are slow, cut short, or send too much."""

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace

import httpx
import pytest

from starshl import Collection
from starshl.service import Service, create_app
from starshl.service.http import server
from starshl.service.settings import Limits, Settings

pytestmark = pytest.mark.server

SMALL = Limits(body_bytes=20_000, upload_bytes=400_000)
# Short enough to wait for, and long enough for a busy machine to send what has to arrive in time.
IMPATIENT = replace(SMALL, head_seconds=2, idle_seconds=2, body_seconds=2)
SEARCH = "/api/v1/collections/things/search"
JSON = {"Content-Type": "application/json"}


@contextmanager
def served(folder, limits):
    """Serve in a thread; yield the port."""
    settings = Settings(port=0, limits=limits)
    app = create_app(lambda observer: Service([folder], observer=observer), settings)
    with server.BackgroundServer(app, settings) as running:
        yield running.port


@pytest.fixture
def port(folder):
    with served(folder, SMALL) as port:
        yield port


@pytest.fixture
def impatient(folder):
    with served(folder, IMPATIENT) as port:
        yield port


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def read_all(connection):
    """Return what arrives until the other side closes the connection."""
    content = b""
    while True:
        try:
            chunk = connection.recv(65536)
        except ConnectionResetError:
            return content
        if not chunk:
            return content
        content += chunk


def status_and_problem(content):
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def head(length, path=SEARCH, more=""):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def assert_alive(port):
    assert httpx.get(f"http://127.0.0.1:{port}/api/v1/health/ready", timeout=60).status_code == 200


def test_clients_that_send_nothing_or_half_a_head_are_dropped(impatient):
    silent, half = connect(impatient), connect(impatient)
    half.sendall(b"POST /api/v1/coll")
    drip = connect(impatient)
    with suppress(OSError):
        for letter in b"GET / HT":
            drip.sendall(bytes([letter]))
            time.sleep(0.01)
    assert [read_all(connection) for connection in (silent, half, drip)] == [b"", b"", b""]
    assert_alive(impatient)


def test_a_second_half_request_on_a_kept_connection_is_dropped(impatient):
    connection = connect(impatient)
    connection.sendall(b"GET /api/v1/health/live HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/v1/hea")
    assert read_all(connection).startswith(b"HTTP/1.1 200")
    assert_alive(impatient)


def test_a_body_that_comes_too_slowly_is_refused(impatient):
    connection = connect(impatient)
    connection.sendall(head(1000) + b'{"items": ')
    status, problem = status_and_problem(read_all(connection))
    assert (status, problem["type"]) == (408, "/problems/too-slow")
    assert_alive(impatient)


def test_a_client_that_does_not_take_its_answer_is_dropped(folder):
    """Its answer is larger than what the system takes in, so the service would hold the rest for ever."""
    settings = Settings(port=0, limits=Limits(request_seconds=3.0))
    app = create_app(lambda observer: Service([folder], observer=observer), settings)
    with server.BackgroundServer(app, settings) as running, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", running.port))
        body = json.dumps({"items": list(range(60)) * 16, "k": 60}).encode()
        connection.sendall(head(len(body)) + body)
        end = time.monotonic() + 60
        while not connection.recv(1, socket.MSG_PEEK) or running._server.server_state.connections:
            assert time.monotonic() < end
            time.sleep(0.05)
        connection.settimeout(30)
        answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 200")
        assert len(answer) < int(answer.partition(b"content-length: ")[2].split()[0])


def test_the_head_of_an_answer_can_be_asked_for_alone(port):
    connection = connect(port)
    connection.sendall(b"HEAD /api/v1/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert (answer.split()[1], body) == (b"200", b"")
    assert b"content-length: 17" in answer


def test_clients_that_leave_in_the_middle_do_no_harm(port):
    for sent in (head(1000) + b"{", head(1000)[:40], head(10**9)):
        connection = connect(port)
        connection.sendall(sent)
        connection.close()
    assert_alive(port)


def test_a_body_that_is_announced_too_large_is_refused_before_it_is_sent(port):
    connection = connect(port)
    connection.sendall(head(10**12))
    status, problem = status_and_problem(read_all(connection))
    assert (status, problem["type"]) == (413, "/problems/too-large")


def test_a_body_that_grows_too_large_is_refused_on_the_way(port):
    connection = connect(port)
    start = head(1).replace(b"Content-Length: 1", b"Transfer-Encoding: chunked")
    connection.sendall(start)
    for _ in range(20):
        try:
            connection.sendall(b"1000\r\n" + b"[" * 4096 + b"\r\n")
        except OSError:
            break
    status, problem = status_and_problem(read_all(connection))
    assert (status, problem["type"]) == (413, "/problems/too-large")
    assert_alive(port)


def test_uploads_have_a_limit_of_their_own(port):
    url = f"http://127.0.0.1:{port}/api/v1/collections/things"
    assert httpx.post(f"{url}/import", content=b"\n" * 30_000, timeout=60).status_code == 202
    assert httpx.post(f"{url}/import", content=b"\n" * 500_000, timeout=60).status_code == 413
    assert httpx.put(f"{url}/model", content=b"x" * 30_000, timeout=60).status_code == 422


@pytest.mark.parametrize("sent", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n"])
def test_what_is_not_http_gets_a_problem(port, sent):
    connection = connect(port)
    connection.sendall(sent)
    status, problem = status_and_problem(read_all(connection))
    assert (status, problem["type"]) == (400, "/problems/bad-request")


def test_an_endless_head_is_refused(port):
    connection = connect(port)
    with suppress(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\nx: " + b"y" * 200_000)
    answer = read_all(connection)
    assert answer == b"" or status_and_problem(answer)[0] == 400
    assert_alive(port)


def test_a_request_that_takes_too_long_is_answered_and_others_are_too_many(folder, monkeypatch):
    limits = Limits(request_seconds=2, requests_at_once=2)
    with served(folder, limits) as port:
        release = threading.Event()
        monkeypatch.setattr(Collection, "answer", lambda *_, **__: release.wait(60) and [])
        url = f"http://127.0.0.1:{port}"
        statuses = []

        def search():
            statuses.append(httpx.post(f"{url}{SEARCH}", json={"items": [1]}, timeout=60).json()["type"])

        threads = [threading.Thread(target=search) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        release.set()
        assert set(statuses) == {"/problems/busy"}
        assert len(statuses) == 6
        assert_alive(port)


def test_a_service_that_cannot_start_says_so():
    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    with pytest.raises(RuntimeError, match="did not start"):
        server.BackgroundServer(app)


def test_a_port_in_use_is_reported():
    with server.bound_socket(Settings(port=0)) as taken:
        taken.listen()
        with pytest.raises(ValueError, match="cannot listen on port"):
            server.bound_socket(Settings(port=taken.getsockname()[1]))
