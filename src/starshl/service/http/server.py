"""The server: uvicorn with timeouts for slow clients, in the foreground or the background, and logs as JSON lines."""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import signal
import socket
import threading
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, ClassVar, Self

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..settings import Settings

# Every chunk of a body costs the same time, however small it is.
_SMALLEST_CHUNKS, _CHUNKS_BEFORE_CHECK = 64, 1000  # bytes on average, and chunks until that counts
_LONGEST_HEAD = 16 << 10  # bytes
_GRACE_SECONDS = 30  # for the requests under way when the service stops
# Connections may outnumber requests: many are kept open and idle.
_CONNECTIONS_PER_REQUEST = 8


def run(app: ASGIApp, settings: Settings, listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; then finish the running requests and close the service."""
    # uvicorn handles it, and raises it again at the end, when everything is done.
    signal.signal(signal.SIGTERM, lambda *_: None)
    _server(app, settings).run(sockets=[listener])


class BackgroundServer:
    """Serves an app from a thread of this process, for notebooks and tests, until it is closed or the process ends.

    Parameters
    ----------
    app : what ``create_app`` returns
    settings : Settings, default=None
        Those of the app; by default, and with port 0, a free port is taken.

    Attributes
    ----------
    port : int
    address : str, such as "http://127.0.0.1:49152"
    """

    def __init__(self, app: ASGIApp, settings: Settings | None = None) -> None:
        settings = Settings(port=0) if settings is None else settings
        listener = bound_socket(settings)
        self.port: int = listener.getsockname()[1]
        self.address = f"http://{settings.host}:{self.port}"
        self._server = _server(app, settings)
        # The end of a process waits for other threads first, and only then runs what would end this one.
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        atexit.register(self.close)
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)
        if not self._server.started:
            raise RuntimeError("The service did not start; the log says why.")

    def close(self) -> None:
        """Finish the running requests, close the service, and stop."""
        atexit.unregister(self.close)
        self._server.should_exit = True
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def bound_socket(settings: Settings) -> socket.socket:
    """Return a socket with the address of the settings, which does not listen yet, or say why there is none."""
    settings.check()
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((settings.host, settings.port))
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise ValueError(
            f"The service cannot listen on port {settings.port} of {settings.host!r} ({error.strerror}). Choose "
            "another port, or stop the program that uses this one."
        ) from error
    return listener


def _server(app: ASGIApp, settings: Settings) -> uvicorn.Server:
    limits = settings.limits

    class Protocol(_TimeoutProtocol):
        head_seconds = limits.head_seconds
        write_seconds = limits.request_seconds
        most_connections = _CONNECTIONS_PER_REQUEST * limits.requests_at_once
        waiting: ClassVar[dict[_TimeoutProtocol, None]] = {}

    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Anyone could pretend to be another client with them.
        proxy_headers=False,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return uvicorn.Server(config)


class _TimeoutProtocol(H11Protocol):
    """Closes connections whose client is too slow: to send the head of a request, or to take the answer."""

    head_seconds: float
    write_seconds: float
    most_connections: int
    waiting: ClassVar[dict[_TimeoutProtocol, None]]  # for the head of a request, the longest first
    conn: _CheckedConnection

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.conn = _CheckedConnection(h11.SERVER, _LONGEST_HEAD)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in its base class
        super().connection_made(transport)
        self._head_timeout: asyncio.TimerHandle | None = None
        self._write_timeout: asyncio.TimerHandle | None = None
        if len(self.connections) > self.most_connections:
            # The one that has said nothing for longest goes: who asks at once is answered, however many are silent.
            silent = next(iter(self.waiting), self)
            silent.transport.abort()
            if silent is self:
                return
        self._update_head_timeout()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_head_timeout()

    def pause_writing(self) -> None:
        """Give a client that takes no more of an answer some time; closing would wait for it without end."""
        super().pause_writing()
        self._write_timeout = self.loop.call_later(self.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._cancel_write_timeout()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timeout()
        self._cancel_write_timeout()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem, as everything else, instead of uvicorn's plain text."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()  # in the middle of an answer, or after it
            return
        detail = self.conn.refusal or "This is not a request of HTTP/1.1, or its head is too long."
        content = {"type": "/problems/bad-request", "title": "Bad Request", "status": 400, "detail": detail}
        body = json.dumps(content | {"request_id": ""}).encode()
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events: list[Any] = [
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _update_head_timeout(self) -> None:
        """Wait for the head of a request, unless there is one that has not been answered yet."""
        if self._is_answering():
            self._cancel_head_timeout()
        elif self._head_timeout is None:
            self._head_timeout = self.loop.call_later(self.head_seconds, self._on_head_timeout)
            self.waiting[self] = None

    def _on_head_timeout(self) -> None:
        self._head_timeout = None
        self.waiting.pop(self, None)
        if not self._is_answering():
            self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _cancel_head_timeout(self) -> None:
        if self._head_timeout is not None:
            self._head_timeout.cancel()
            self._head_timeout = None
            self.waiting.pop(self, None)

    def _cancel_write_timeout(self) -> None:
        if self._write_timeout is not None:
            self._write_timeout.cancel()
            self._write_timeout = None


class _CheckedConnection(h11.Connection):
    """Refuses what h11 takes: bodies in tiny chunks, and those whose end a proxy may see elsewhere."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.refusal = ""
        self._n_chunks = self._n_bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._n_chunks = self._n_bytes = 0
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                self._refuse("The head has both Content-Length and Transfer-Encoding. Send one of them.")
        elif isinstance(event, h11.Data):
            self._n_chunks += event.chunk_start
            self._n_bytes += len(event.data)
            if self._n_chunks > _CHUNKS_BEFORE_CHECK and self._n_bytes < _SMALLEST_CHUNKS * self._n_chunks:
                self._refuse(
                    f"The chunks of the body have under {_SMALLEST_CHUNKS} bytes on average. Send larger ones."
                )
        return event

    def _refuse(self, detail: str) -> None:
        self.refusal = detail
        raise h11.RemoteProtocolError(detail)


class JsonLines(logging.Formatter):
    """Writes a record as JSON: time, level, logger, message, and the fields in ``record.fields``."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def log_as_json(level: str = "INFO") -> None:
    """Send all logs and warnings of this process to standard error, as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    # The service writes one line per request itself.
    logging.getLogger("uvicorn.access").disabled = True
    for name in ("uvicorn", "uvicorn.error", "httpx", "httpcore"):
        logging.getLogger(name).handlers = []
