"""``starshl data``: list, fetch and locate data sets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson

if TYPE_CHECKING:
    from ..data.datasets.store import Description

app = typer.Typer(no_args_is_help=True, help="List, fetch and locate data sets.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="A name from `starshl data list`.")]
_EXIT_FAILURE = 1


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """List all data sets: sizes, places, sources and notes."""
    from ..data import datasets

    with _failures_as_sentences():
        sets = datasets.describe_all()
    if as_json:
        typer.echo(json.dumps([asdict(about) for about in sets], indent=2))
        return
    typer.echo(f"{'name':<16} {'rows':>7} {'features':>8} {'classes':>7}  where")
    for about in sets:
        size = f"{about.n_rows:>7,} {about.n_features:>8,} {about.n_classes:>7}"
        typer.echo(f"{about.name:<16} {size}  {_where(about)}")
        for note in about.notes:
            typer.echo(f"{'':<16} {note}")


@app.command()
def get(name: Name, as_json: AsJson = False) -> None:
    """Fetch a data set, and print its path.

    It goes into the user's cache, unless it is on this machine already.
    """
    from ..data import datasets

    with _failures_as_sentences():
        if datasets.describe(name).where != "package":
            datasets.fetch(name, progress=not as_json)
        loaded = datasets.get(name, download=False)
    _print_place(name, as_json, extra={"n_rows": len(loaded), "n_features": loaded.X.shape[1]})


@app.command()
def path(name: Name, as_json: AsJson = False) -> None:
    """Print the path of a data set.

    The exit code is 1 if it is not on this machine.
    """
    from ..data import datasets

    with _failures_as_sentences():
        about = datasets.describe(name)
    if about.path is None and about.where != "package":
        advice = (
            "there is no public download" if about.where == "unavailable" else f"`starshl data get {name}` may fetch it"
        )
        typer.echo(f"{name} is not on this machine; {advice}.", err=True)
        raise typer.Exit(_EXIT_FAILURE)
    _print_place(name, as_json)


def _print_place(name: str, as_json: bool, extra: dict[str, Any] | None = None) -> None:
    from ..data import datasets

    about = datasets.describe(name)
    if as_json:
        typer.echo(json.dumps({"name": name, "where": about.where, "path": about.path, **(extra or {})}))
    else:
        typer.echo(about.path or f"{name} comes with scikit-learn and has no separate file")


def _where(about: Description) -> str:
    if about.path is not None:
        return about.path
    if about.where == "package":
        return "comes with scikit-learn"
    if about.where == "unavailable":
        return "not here, no public download"
    return "not here; from " + "; or ".join(f"{label} ({state})" for label, state in about.sources)


@contextmanager
def _failures_as_sentences() -> Iterator[None]:
    """End with exit code 1 if a set cannot be had; a bad name stays an error, which ends with 2."""
    from ..exceptions import ChecksumError

    try:
        yield
    except (ChecksumError, OSError) as error:
        if os.environ.get("STARSHL_TRACEBACK"):
            raise
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(_EXIT_FAILURE) from error
