"""A web server on loopback that can be told to misbehave."""

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Page:
    """What the server does at one address, request by request; the last fault repeats if ``always``."""

    content: bytes
    faults: list[str] = field(default_factory=list)
    always: bool = False
    etag: bool = True
    requests: list[dict] = field(default_factory=list)

    def next_fault(self) -> str:
        if not self.faults:
            return ""
        return self.faults[0] if self.always else self.faults.pop(0)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        page.requests.append(dict(self.headers))
        fault = page.next_fault()
        if fault.isdigit():
            self.send_error(int(fault))
            return
        etag = f'"{hashlib.sha256(page.content).hexdigest()[:16]}"'
        start = self.wanted_start(page, fault, etag)
        self.send_response(206 if start is not None else 200)
        sent_from = start or 0
        if start is not None:
            claimed = start + 1 if fault == "wrong range" else start
            self.send_header("Content-Range", f"bytes {claimed}-{len(page.content) - 1}/{len(page.content)}")
        body = page.content[sent_from:]
        if fault.startswith("length "):
            self.send_header("Content-Length", fault.removeprefix("length "))
        elif fault != "no length":
            self.send_header("Content-Length", str(len(body)))
        if page.etag:
            self.send_header("ETag", etag)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)

    def wanted_start(self, page, fault, etag):
        wanted = self.headers.get("Range")
        if wanted is None or fault == "ignore range" or self.headers.get("If-Range") != etag:
            return None
        return int(wanted.removeprefix("bytes=").removesuffix("-"))

    def log_message(self, *arguments):
        """Keep the test output clean."""


class Web:
    def __init__(self, server):
        self.server = server
        self.base = f"http://127.0.0.1:{server.server_port}"

    def put(self, path, content, *faults, always=False, etag=True) -> Page:
        page = self.server.pages[f"/{path}"] = Page(content, list(faults), always, etag)
        return page

    def url(self, path):
        return f"{self.base}/{path}"


@pytest.fixture
def web():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.pages = {}
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield Web(server)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("starshl.data.datasets.download.sleep", lambda seconds: None)
