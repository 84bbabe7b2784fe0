"""``starshl explore``: look at collections in a browser, search them by clicks, and teach them."""

from __future__ import annotations

import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from .options import Jobs, Port
from .serve import DEMO, Host, ReadOnly, TokenFile, make_demo, run_service

__all__ = ["explore"]

_UNLABELED = DEMO.with_name("digits-to-teach")
# A service that listens everywhere is at no address of that name.
_ON_THIS_MACHINE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_SECONDS_TO_START = 30  # to wait for the service; then the page is opened in any case

Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[COLLECTION...]",
        help="Folders of collections. Without any, two collections of handwritten digits are made in starshl-demo.",
    ),
]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the first page in your browser.")]


def explore(
    collections: Folders = None,
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
    from ..web.settings import Settings
    from ..web.tokens import read_tokens

    folders = list(collections or (DEMO, _UNLABELED))
    settings = Settings(host, port, read_tokens(tokens))

    def at_start(taken: int) -> None:
        here = _ON_THIS_MACHINE.get(host, host)
        address = f"http://{f'[{here}]' if ':' in here else here}:{taken}/"
        typer.echo(f"{address} shows {', '.join(folder.name for folder in folders)}. Ctrl+C stops it.")
        if browser:
            threading.Thread(target=_open, args=(address, here, taken), daemon=True).start()

    make = (lambda: None) if collections else _make_demos
    run_service(folders, settings, read_only=read_only, jobs=jobs, make=make, at_start=at_start, log_level="WARNING")


def _make_demos() -> None:
    make_demo(DEMO)
    make_demo(_UNLABELED, labeled=False)


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
