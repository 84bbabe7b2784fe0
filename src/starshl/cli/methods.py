"""``starshl methods``: the hashing methods that ``fit`` knows."""

from __future__ import annotations

import typer

from .options import AsJson, print_json, print_table

__all__ = ["methods"]


def methods(as_json: AsJson = False) -> None:
    """List the hashing methods and the labels each one needs."""
    from dataclasses import asdict

    from ..catalog import METHODS, SUPERVISION

    if as_json:
        print_json([asdict(method) for method in METHODS])
        return
    rows = [[method.name, method.supervision, f"{method.paper} ({method.year})"] for method in METHODS]
    print_table(["method", "labels", "paper"], rows)
    for word, meaning in SUPERVISION.items():
        typer.echo(f"{word}: {meaning}")
