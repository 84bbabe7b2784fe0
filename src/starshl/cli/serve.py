"""``starshl serve`` and ``starshl explore``: collections over HTTP, for programs and in a browser."""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
import warnings
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Jobs, Port

if TYPE_CHECKING:
    from ..service.settings import Settings

DEMO = Path("starshl-demo") / "digits"
_UNLABELED_DEMO = DEMO.with_name("digits-to-teach")
_MEGABYTE = 1 << 20
# A service that listens everywhere is at no address of that name.
_ON_THIS_MACHINE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_SECONDS_TO_START = 30  # to wait for the service; then the page is opened in any case
Folders = Annotated[
    list[Path] | None,
    typer.Argument(metavar="COLLECTION...", help="Folders of collections; each is served under the folder's name."),
]
ExploredFolders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[COLLECTION...]",
        help="Folders of collections. Without any, two collections of handwritten digits are made in starshl-demo.",
    ),
]
Demo = Annotated[
    bool,
    typer.Option(
        "--demo", help="Serve handwritten digits from starshl-demo/digits; the folder is made if it is missing."
    ),
]
Host = Annotated[
    str,
    typer.Option("--host", metavar="ADDRESS", help="Where to listen. Other machines need tokens."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="A file with lines `read TOKEN` or `write TOKEN`, each with an optional date on which the token expires. "
        "The environment variables STARSHL_READ_TOKEN and STARSHL_WRITE_TOKEN work, too.",
    ),
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Refuse all changes; another process may write.")]
Snapshots = Annotated[
    Path | None,
    typer.Option("--snapshots", metavar="DIR", help="Where snapshots go; by default, next to each collection."),
]
MaxBody = Annotated[int, typer.Option("--max-body", metavar="MB", help="Largest body of a request.", min=1)]
MaxUpload = Annotated[int, typer.Option("--max-upload", metavar="MB", help="Largest snapshot, model or import.", min=1)]
Rate = Annotated[float, typer.Option("--rate", metavar="N", help="Requests per second from one client.", min=0.1)]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Longest time that a request may take.", min=0.1)
]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the first page in your browser.")]


def serve(
    collections: Folders = None,
    demo: Demo = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    tokens: TokenFile = None,
    read_only: ReadOnly = False,
    snapshots: Snapshots = None,
    max_body: MaxBody = 16,
    max_upload: MaxUpload = 4096,
    rate: Rate = 1000.0,
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
) -> None:
    """Serve collections over HTTP until you stop it.

    The addresses begin with /api/v1; GET /api/v1/openapi.json describes them. Logs go to standard error, one JSON
    object per line. SIGTERM and Ctrl+C stop it after it has finished the requests that it has begun.
    """
    from ..service.settings import Limits, Settings, read_tokens

    limits = Limits(
        body_bytes=max_body * _MEGABYTE,
        upload_bytes=max_upload * _MEGABYTE,
        request_seconds=timeout,
        rate=rate,
        burst=max(1, int(2 * rate)),
    )
    folders = [*(collections or ()), *([DEMO] if demo else ())]
    if not folders:
        raise ValueError("Name the folder of a collection, or use --demo. `starshl index build` makes a collection.")
    settings = Settings(host, port, read_tokens(tokens), limits)
    make = partial(make_demo, DEMO) if demo else lambda: None

    def at_start(taken: int) -> None:
        if sys.stdout.isatty():
            typer.echo(f"{_address(host, taken)}api/v1/docs describes what programs may ask. Ctrl+C stops it.")

    run_service(folders, settings, read_only=read_only, snapshots=snapshots, jobs=jobs, make=make, at_start=at_start)


def explore(
    collections: ExploredFolders = None,
    port: Port = 8000,
    browser: Browser = True,
    host: Host = "127.0.0.1",
    tokens: TokenFile = None,
    read_only: ReadOnly = False,
    jobs: Jobs = None,
) -> None:
    """Look at collections in a browser, and teach them labels.

    This process serves everything, and nothing is loaded from elsewhere. Ctrl+C stops it; what you have labeled is
    stored already.
    """
    from ..service.settings import Settings, read_tokens

    folders = list(collections or (DEMO, _UNLABELED_DEMO))
    settings = Settings(host, port, read_tokens(tokens))

    def at_start(taken: int) -> None:
        address = _address(host, taken)
        typer.echo(f"{address} shows {', '.join(folder.name for folder in folders)}. Ctrl+C stops it.")
        if browser:
            threading.Thread(target=_open, args=(address, _ON_THIS_MACHINE.get(host, host), taken), daemon=True).start()

    make = (lambda: None) if collections else _make_demos
    run_service(folders, settings, read_only=read_only, jobs=jobs, make=make, at_start=at_start, log_level="WARNING")


def _address(host: str, port: int) -> str:
    """Return where a browser on this machine finds a service."""
    here = _ON_THIS_MACHINE.get(host, host)
    return f"http://{f'[{here}]' if ':' in here else here}:{port}/"


def run_service(
    folders: list[Path],
    settings: Settings,
    *,
    read_only: bool = False,
    snapshots: Path | None = None,
    jobs: int | None = None,
    make: Callable[[], None] = lambda: None,
    at_start: Callable[[int], None] = lambda _: None,
    log_level: str = "INFO",
) -> None:
    """Serve collections until a signal; ``make`` runs once the port is taken, ``at_start`` gets its number."""
    from ..service import Service, create_app  # names the extra to install, so it comes before what needs it
    from ..service.http.server import bound_socket, log_as_json, run

    # Before anything else: a port in use or missing tokens are found at once, not after loading a large collection.
    with bound_socket(settings) as listener:
        make()
        app = create_app(
            lambda observer: Service(folders, read_only=read_only, n_jobs=jobs, snapshots=snapshots, observer=observer),
            settings,
        )
        log_as_json(log_level)
        # Vectors have the order of the columns that the hasher was fitted on, not their names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        # The answer to each request says it.
        warnings.filterwarnings("ignore", message="The filter reads the metadata of all")
        log = logging.getLogger("starshl.service")
        log.info("warming up")
        app.state.service.warm_up()
        # What is there by now stays: a fifth of the time of small searches went into looking for garbage among it.
        gc.collect()
        gc.freeze()
        port = listener.getsockname()[1]
        # Who reads "serving" and connects at once waits instead of meeting a closed port.
        listener.listen()
        fields = {"host": settings.host, "port": port, "collections": [folder.name for folder in folders]}
        log.info("serving", extra={"fields": fields})
        at_start(port)
        run(app, settings, listener)


def make_demo(folder: Path, *, labeled: bool = True) -> None:
    """Make a collection of digits unless it is there."""
    from ..service.demo import make_digits, make_unlabeled_digits

    if not folder.exists():
        typer.echo(f"making {folder.absolute()}, which can take a minute the first time", err=True)
        (make_digits if labeled else make_unlabeled_digits)(folder)


def _make_demos() -> None:
    make_demo(DEMO)
    make_demo(_UNLABELED_DEMO, labeled=False)


def _open(address: str, host: str, port: int) -> None:
    """Open a page as soon as the service answers."""
    import socket

    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, port), timeout=1):
                break
        except OSError:
            time.sleep(0.1)
    webbrowser.open(address)
