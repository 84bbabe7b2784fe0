"""What commands share: arguments and options, checks of where results go, model files, and how to print."""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np

    from ..data.tables.reading import Table
    from ..hashers.base import BaseHasher

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by `starshl fit`.")]
ModelOrCollection = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by `starshl fit`, or the folder of a collection.")
]
_ROWS = typer.Argument(
    metavar="INPUT",
    help="Rows to read: .npy (a matrix), .npz (X, and y if there are labels; or a sparse matrix from SciPy), .csv or "
    ".tsv (with or without a header), .jsonl (one object per row) or .parquet (one column per feature, or one of "
    "lists).",
)
Input = Annotated[Path, _ROWS]
Source = Annotated[str, _ROWS]  # of commands that also take URLs, in which a path would lose a slash
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="COLUMN|FILE",
        help="Labels: a column by name (or by number if there is no header), an array in an .npz, or a separate file. "
        "By default, y in an .npz or the column `label`, if there is one.",
    ),
]
NoLabels = Annotated[bool, typer.Option("--no-labels", help="Ignore labels that come with the rows.")]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN,...", help="Columns to leave out, separated by commas; may be repeated."),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal",
        metavar=".|,",
        help="What comes before the decimals of numbers in a .csv or .tsv; with a comma, 1.204,5 is a number. By "
        "default, as in the table that the model was fitted on, and otherwise a point.",
    ),
]
Vectors = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        metavar="COLUMN",
        help="The column of lists, or the .npz array, that holds the vectors. By default, X in an .npz, the columns "
        "that the model was fitted on, or the only column of lists.",
    ),
]
Ids = Annotated[str | None, typer.Option("--ids", metavar="COLUMN", help="The column or array that holds integer ids.")]
References = Annotated[
    str | None,
    typer.Option("--references", metavar="COLUMN", help="The column or array that says where the picture or text is."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Same seed, same bytes.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", metavar="N", help="Number of threads; -1 is one per core. Results do not depend on it."
    ),
]
Port = Annotated[int, typer.Option("--port", "-p", metavar="N", help="The port; 0 takes a free one.", min=0, max=65535)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show a progress bar on standard error; by default, only if that is a terminal.",
    ),
]
KeptFeatures = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        metavar="COLUMN,...",
        help="Columns that the codes come from to keep as metadata, too, so that hits show them and filters find them; "
        "`all` keeps all of them. May be repeated.",
    ),
]


def split_names(words: list[str] | None) -> tuple[str, ...]:
    """Return the names in options that may be repeated and separated by commas; quotes protect a comma in a name."""
    return tuple(name.strip() for word in words or () for name in next(csv.reader([word]), []) if name.strip())


def progress_shown(progress: bool | None) -> bool:
    """Return whether to show progress: as the option says, or by default if standard error is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def load_model(path: Path, jobs: int | None = None) -> BaseHasher:
    """Open a model file for use with ``jobs`` threads."""
    from ..hashers.catalog import load

    refuse_collection(path)
    hasher = load(path)
    if jobs is not None:
        hasher.n_jobs = jobs
    return hasher


def is_collection(path: Path) -> bool:
    """Return whether a path is that of a collection."""
    from ..collection.session import DATABASE

    return (path / DATABASE).is_file()


def refuse_collection(path: Path) -> None:
    """Say which commands take a collection if a model file was expected and one arrived."""
    if path.is_dir() and is_collection(path):
        raise ValueError(
            f"{str(path)!r} is a collection, and this command takes a model file. What it holds: starshl "
            f"info {path}. To look at it: starshl explore {path}. To search it: starshl index search {path} FILE. To "
            f"check it: starshl index verify {path}."
        )


def check_output(
    path: Path, inputs: Iterable[str | Path | None] = (), *, suffixes: tuple[str, ...] | None = None
) -> None:
    """Refuse an output that cannot be written, or that is one of the inputs under any name."""
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise ValueError(f"The output {str(path)!r} ends in {path.suffix!r}; it may be {', '.join(suffixes)}.")
    if path.is_dir():
        raise ValueError(f"The output {str(path)!r} is a folder. Give the name of a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {str(path.parent)!r} for the output {path.name!r}. Create it first.")
    for other in inputs:
        if other is not None and _is_same_file(path, Path(other)):
            raise ValueError(
                f"The output {str(path)!r} is the same file as the input {str(other)!r}, which it would overwrite. "
                "Choose another name."
            )
    _check_writable(path.parent)


def check_output_folder(path: Path, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a folder for results that cannot be made or written to, or in which the inputs are."""
    present = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if not present.is_dir():
        raise ValueError(f"{str(present)!r} is a file, so {str(path)!r} cannot be a folder. Choose another output.")
    for other in inputs:
        if other is not None and _is_same_file(path, other):
            raise ValueError(
                f"The output folder {str(path)!r} is the one that is read, {str(other)!r}, so files of it could be "
                "overwritten. Choose another folder."
            )
    _check_writable(present)


def _is_same_file(path: Path, other: Path) -> bool:
    # samefile sees through symbolic and hard links; a path that does not exist can only be the same by name.
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def _check_writable(folder: Path) -> None:
    # Tried, not asked: permissions say nothing about the file systems in which no file can be made.
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(
            f"The folder {str(folder)!r} cannot be written to. Choose another one, or change its permissions."
        ) from error


def without_objects(labels: np.ndarray) -> np.ndarray:
    """Return text labels as fixed-width text, unlabeled rows empty: arrays of objects would need pickle."""
    import numpy as np

    if labels.dtype.kind != "O":
        return labels
    return np.array(["" if label is None or label != label else str(label) for label in labels], dtype=str)


def print_json(values: object) -> None:
    """Print values, including NumPy's, as JSON on standard output."""
    typer.echo(json.dumps(values, indent=2, default=_plain, ensure_ascii=False))


def print_table(
    columns: list[str], rows: list[list[str]], *, right: tuple[str, ...] = (), title: str | None = None
) -> None:
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


def _plain(value: object) -> object:
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def keep_features(table: Table, words: list[str] | None) -> Table:
    """Return a table whose metadata have the features that --metadata names."""
    from ..data.tables.reading import with_kept_features

    names, features = split_names(words), table.feature_names or ()
    return with_kept_features(table, features if names == ("all",) and "all" not in features else names)
