"""Send requests that are damaged in every way to a service over its socket, whole, in pieces, or cut short.

    python tests/campaigns/malformed_requests.py --requests 10000

Every answer must be one of HTTP, none may be an error of the server, every refusal must be problem details, and the
service must answer ordinary requests all the while and stop in order. The last lines count the answers by status, and
say how much memory this process took, in which the service runs; a violation ends the campaign with an error.
"""

import argparse
import collections
import json
import os
import socket
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np

from starshl import Collection
from starshl.hashers.baselines import LSHash
from starshl.service import BackgroundServer, Service, create_app
from starshl.service.settings import Limits, Settings

N_COLUMNS = 8
ROOT = "/api/v1/collections/things"
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW", "get", ""]
PATHS = [
    *("/search", "/search/batch", "/recommend", "/encode", "/predict", "/items", "/items/get", "/items/list"),
    *("/items/count", "/items/remove", "/items/3", "/labels", "/fields", "/fit", "/import", "/model", "/jobs"),
    *("/snapshots", "/snapshots/a", "/snapshots/a/restore", "/snapshots/..%2f..", "", "/items?limit=x", "/%00"),
]
BODIES = [
    {"vectors": [[0.5] * N_COLUMNS], "k": 3, "where": {"price": {"<": 9}}, "explain": True},
    {"items": [1, 2], "labels": ["a"], "radius": 3},
    {"items": [{"vector": [0.5] * N_COLUMNS, "id": 7, "label": "a", "metadata": {"x": [1, {"y": None}]}}]},
    {"items": [{"id": 3, "label": None}]},
    {"ids": [1, 2, 3]},
    {"like": [1, 2], "unlike": [3]},
    {"searches": [{"items": [1]}, {"items": [2], "k": 2}]},
    {"fields": {"price": "int"}},
    {"name": "a"},
    {"method": "NoSuchMethod", "n_bits": 8},
]
WORDS = [*b'NaN 1e999 -0 null true "\\ud800" { } "" \x00 \xff\xfe'.split(b" "), b"[" * 90, b"9" * 40]
HEADERS = b"""Transfer-Encoding: chunked
Content-Length: -1
Content-Length: 5
Content-Length: 99999999999999999999
Content-Type: text/html
Content-Encoding: gzip
Expect: 100-continue
Upgrade: websocket
Host: other.example
Origin: http://[
Idempotency-Key: a
Idempotency-Key: \x80
Cookie: starshl-token=\xff; =;
Authorization: Bearer
Range: bytes=5-1
X-Request-Id: %s
: empty
a\x00b: c"""
HEADERS = (HEADERS % (b"y" * 3000)).split(b"\n")


def damaged_request(rng):
    """Return the bytes of a request with a few things wrong."""
    body = json.dumps(BODIES[rng.integers(len(BODIES))]).encode()
    for _ in range(rng.integers(0, 3)):
        place = int(rng.integers(len(body)))
        body = body[:place] + WORDS[rng.integers(len(WORDS))] + body[place + int(rng.integers(0, 5)) :]
    method = METHODS[rng.choice(len(METHODS), p=[0.15, 0.4, 0.15, 0.05, 0.05, 0.05, 0.05, 0.04, 0.03, 0.03])]
    lines = [f"{method} {ROOT}{PATHS[rng.integers(len(PATHS))]} HTTP/1.1".encode()]
    lines += [b"Host: localhost", b"Connection: close"]
    if rng.random() < 0.8:
        lines.append(b"Content-Type: application/json")
    if rng.random() < 0.85:
        lines.append(b"Content-Length: %d" % (len(body) + (rng.random() < 0.1) * int(rng.integers(-5, 50))))
    lines += [HEADERS[rng.integers(len(HEADERS))] for _ in range(rng.integers(0, 3))]
    request = b"\r\n".join(lines) + b"\r\n\r\n" + body
    if rng.random() < 0.2:
        places = rng.integers(0, len(request), 3)
        request = bytes(int(rng.integers(256)) if place in places else byte for place, byte in enumerate(request))
    return request[: rng.integers(1, len(request))] if rng.random() < 0.1 else request


def send(port, request, rng):
    """Send a request, perhaps in pieces, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        answer = b""
        try:
            cut = int(rng.integers(len(request))) if rng.random() < 0.3 else len(request)
            connection.sendall(request[:cut])
            connection.sendall(request[cut:])
            while chunk := connection.recv(1 << 16):
                answer += chunk
        except (ConnectionResetError, BrokenPipeError):
            pass
    return answer


def statuses(answer):
    """Return the statuses of the answers on one connection; refuse what is none, and errors without their form."""
    found = []
    while answer:
        head, _, rest = answer.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        assert lines[0].startswith(b"HTTP/1.1 "), answer[:200]
        status = int(lines[0].split()[1])
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
        assert status < 500, answer[:1000]
        length = int(fields.get(b"content-length", 0))
        if status >= 400:
            assert fields[b"content-type"] == b"application/problem+json", head
            assert not rest or json.loads(rest[:length])["status"] == status
        found.append(status)
        answer = rest[length:]
    return found


def attempt(numbers):
    """Send one request; return what it was answered."""
    port, *seed = numbers
    rng = np.random.default_rng(seed)
    request = damaged_request(rng)
    try:
        return statuses(send(port, request, rng)) or ["no answer"]
    except Exception:
        print(f"this request: {request!r}")
        raise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, counts = np.random.default_rng(options.seed), collections.Counter()
    rows = rng.standard_normal((60, N_COLUMNS))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "things"
        with Collection.create(folder, LSHash(24, random_state=0).fit(rows), vectors="int8") as collection:
            collection.add(rows, labels=["abc"[i % 3] for i in range(60)], metadata=[{"price": i} for i in range(60)])
        settings = Settings(port=0, limits=Limits(body_seconds=1.0, head_seconds=1.0))
        app = create_app(lambda observer: Service([folder], observer=observer), settings)
        with BackgroundServer(app, settings) as server, ThreadPoolExecutor(20) as threads:
            seeds = ((server.port, options.seed, number) for number in range(options.requests))
            for number, found in enumerate(threads.map(attempt, seeds)):
                counts.update(map(str, found))
                if number % 500 == 0:
                    alive = httpx.get(f"{server.address}/api/v1/health/ready", timeout=60)
                    assert alive.status_code == 200, alive.text
                    print(f"{number} requests, {resident_mb()} MB: {dict(sorted(counts.items()))}", flush=True)
        with Collection(folder, read_only=True) as collection:
            print(f"{options.requests} requests, {resident_mb()} MB: {dict(sorted(counts.items()))}")
            print(f"{collection.verify()} items, all intact")


def resident_mb():
    status = Path(f"/proc/{os.getpid()}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


if __name__ == "__main__":
    main()
