"""Arguments and options that several commands share, and how they print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "AsJson",
    "Drop",
    "Input",
    "Jobs",
    "Model",
    "Progress",
    "Vectors",
    "load_model",
    "print_json",
    "print_table",
    "progress_shown",
]

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by `starshl fit`.")]
Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="Rows to read: .npy (a matrix), .npz (X, perhaps y), .csv (with a header or without) or "
        ".parquet (a column a feature, or a column of lists).",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Leave out a column of a .csv or .parquet; may be repeated."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", metavar="N", help="Threads; -1 is all. Results do not depend on it.")
]
Vectors = Annotated[
    str | None,
    typer.Option("--vectors", metavar="COLUMN", help="The Parquet column of lists, or .npz array, with the vectors."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Progress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="A bar on standard error; by default if that is a terminal."),
]


def progress_shown(progress: bool | None) -> bool:
    """Return whether to show progress: as the option says, else if somebody looks at standard error."""
    return sys.stderr.isatty() if progress is None else progress


def load_model(path: Path, jobs: int | None = None):
    """Open a model file for use with ``jobs`` threads."""
    from ..catalog import load

    hasher = load(path)
    if jobs is not None and "n_jobs" in hasher.get_params():
        hasher.set_params(n_jobs=jobs)
    return hasher


def print_json(values: Any) -> None:
    """Print values, NumPy's among them, as JSON on standard output."""
    typer.echo(json.dumps(values, indent=2, default=_plain, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def print_table(columns: list[str], rows: list[list[str]], *, right: tuple[str, ...] = (), title: str | None = None):
    """Print a table on standard output; columns named in ``right`` are aligned to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False).print(table)
