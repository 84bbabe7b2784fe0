"""Whoever has no token cannot take the service from those who have one."""

import json
import socket
from contextlib import contextmanager, suppress

import httpx
import pytest

from starshl.service import Service, create_app
from starshl.service.http import server
from starshl.service.settings import READ, Limits, Settings, Token, Tokens

pytestmark = pytest.mark.server

READER = "reader-" + "r" * 20
KNOWN = {"Authorization": f"Bearer {READER}"}
LOGIN = b"POST /login HTTP/1.1\r\nHost: localhost\r\n"


@contextmanager
def served(folder, **limits):
    settings = Settings(port=0, tokens=Tokens([Token.of(READER, READ)]), limits=Limits(**limits))
    app = create_app(lambda observer: Service([folder], observer=observer), settings)
    with server.BackgroundServer(app, settings) as running:
        yield running


def sending(running, content):
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=60)
    connection.sendall(content)
    return connection


def answer(connection):
    content = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            content += chunk
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_half_a_login_from_strangers_leaves_room_for_tokens_and_health(folder):
    with served(folder, requests_at_once=2, strangers_per_address=3, login_seconds=30.0, body_seconds=30.0) as running:
        half = [sending(running, LOGIN + b"Content-Length: 9\r\n\r\nt") for _ in range(6)]
        # The first three hold the places of this address; the others learn at once that there is none.
        assert [answer(connection)[0] for connection in half[3:]] == [503] * 3
        assert httpx.get(f"{running.address}/login", timeout=60).status_code == 503
        for _ in range(5):
            assert httpx.get(f"{running.address}/api/v1/collections", headers=KNOWN, timeout=60).status_code == 200
            for kind in ("live", "ready"):
                assert httpx.get(f"{running.address}/api/v1/health/{kind}", timeout=60).status_code == 200
        for connection in half:
            connection.close()


def test_silent_connections_give_way_to_those_who_ask(folder):
    with served(folder, requests_at_once=1) as running:
        silent = [sending(running, b"GET / HTTP/1.1\r\n") for _ in range(30)]
        for _ in range(3):
            assert httpx.get(f"{running.address}/api/v1/collections", headers=KNOWN, timeout=60).status_code == 200
            assert httpx.get(f"{running.address}/api/v1/health/ready", timeout=60).status_code == 200
        for connection in silent:
            connection.close()


def test_health_answers_when_no_place_is_left(folder):
    with served(folder, strangers_at_once=0, rate=0.001, burst=1) as running:
        assert httpx.get(f"{running.address}/login", timeout=60).status_code == 503
        for _ in range(3):
            assert httpx.get(f"{running.address}/api/v1/health/ready", timeout=60).status_code == 200


def test_the_body_of_a_login_has_less_time_than_others(folder):
    with served(folder, login_seconds=0.5, body_seconds=600.0) as running:
        assert answer(sending(running, LOGIN + b"Content-Length: 9\r\n\r\nt"))[0] == 408


def test_the_body_of_a_login_is_refused_on_the_way(folder):
    with served(folder, login_bytes=1000, login_seconds=30.0) as running:
        chunk = b"258\r\n" + b"a" * 600 + b"\r\n"
        # No end follows: whoever waits for it waits for ever.
        assert answer(sending(running, LOGIN + b"Transfer-Encoding: chunked\r\n\r\n" + 2 * chunk))[0] == 413


@pytest.mark.parametrize("size", [1, 10, 60])
def test_a_body_in_tiny_chunks_is_refused(folder, size):
    chunk = f"{size:x}\r\n".encode() + b"a" * size + b"\r\n"
    with served(folder, login_seconds=30.0, login_bytes=10**6) as running:
        connection = sending(running, LOGIN + b"Transfer-Encoding: chunked\r\n\r\n" + 1001 * chunk)
        status, body = answer(connection)
        assert (status, "chunks" in json.loads(body)["detail"]) == (400, True)


@pytest.mark.parametrize("lengths", [[1] * 900, [100] * 1500])
def test_honest_chunks_are_taken(folder, lengths):
    with served(folder, login_bytes=10**6, login_seconds=30.0) as running:
        sent = httpx.post(f"{running.address}/login", content=(b"a" * length for length in lengths), timeout=60)
        assert sent.status_code == 401


def test_a_body_with_two_lengths_is_refused_and_the_connection_closed(folder):
    both = LOGIN + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with served(folder) as running:
        status, body = answer(sending(running, both + b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        assert (status, "Transfer-Encoding" in json.loads(body)["detail"]) == (400, True)
