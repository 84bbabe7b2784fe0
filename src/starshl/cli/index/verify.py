"""``starshl index verify``: examine a collection."""

from __future__ import annotations

import os
from typing import Any

import typer

from ..._words import counted
from ..options import AsJson, Progress
from .common import Folder, busy, opened, print_answer

__all__ = ["verify"]

_EXIT_DAMAGED = 1


def verify(folder: Folder, progress: Progress = None, as_json: AsJson = False) -> None:
    """Check every page and every item of a collection.

    The exit code is 1 if it is damaged.
    """
    from ...exceptions import CollectionFormatError

    try:
        with opened(folder, read_only=True) as collection, busy("verifying", progress):
            answer: dict[str, Any] = {"folder": str(folder), "items": collection.verify(), "bits": collection.n_bits}
    except CollectionFormatError as error:
        if os.environ.get("STARSHL_TRACEBACK"):
            raise
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(_EXIT_DAMAGED) from error
    print_answer(answer, f"{counted(answer['items'], 'item')} of {counted(answer['bits'], 'bit')}, all intact", as_json)
