"""``starshl serve``: answer searches and changes of collections over HTTP."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .no_collection import no_collection_among
from .options import Jobs, Port

if TYPE_CHECKING:
    from ..web.settings import Settings

__all__ = ["DEMO", "Host", "ReadOnly", "TokenFile", "make_demo", "run_service", "serve"]

_MEGABYTE = 1 << 20
DEMO = Path("starshl-demo") / "digits"

Folders = Annotated[
    list[Path] | None,
    typer.Argument(metavar="COLLECTION...", help="Folders of collections; each is served under the folder's name."),
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
    from ..web.settings import Limits, Settings
    from ..web.tokens import read_tokens

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
    run_service(folders, settings, read_only=read_only, snapshots=snapshots, jobs=jobs, make=make)


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
    from ..web import Service
    from ..web.http import create_app
    from ..web.http.server import bound_socket, run
    from ..web.logs import log_as_json

    # Before anything else: a port in use or missing tokens are found at once, not after loading a large collection.
    with bound_socket(settings) as listener:
        make()
        try:
            app = create_app(
                lambda observer: Service(
                    folders, read_only=read_only, n_jobs=jobs, snapshots=snapshots, observer=observer
                ),
                settings,
            )
        except FileNotFoundError as error:
            # Only now: what an interrupted restore has left is put back first.
            raise FileNotFoundError(no_collection_among(folders) or str(error)) from error
        log_as_json(log_level)
        # Vectors have the order of the columns that the hasher was fitted on, not their names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        # The answer to each request says it.
        warnings.filterwarnings("ignore", message="The filter reads the metadata of all")
        log = logging.getLogger("starshl.web")
        log.info("warming up")
        app.state.service.warm_up()
        port = listener.getsockname()[1]
        fields = {"host": settings.host, "port": port, "collections": [folder.name for folder in folders]}
        log.info("serving", extra={"fields": fields})
        at_start(port)
        run(app, settings, listener)


def make_demo(folder: Path, *, labeled: bool = True) -> None:
    """Make a collection of digits unless it is there."""
    from ..web.demo import make_digits, make_unlabeled_digits

    if not folder.exists():
        typer.echo(f"making {folder}, which can take a minute the first time", err=True)
        (make_digits if labeled else make_unlabeled_digits)(folder)
