"""What the index commands share: opening a collection, encoding items, and answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..._words import counted
from ..options import progress_shown
from ..outputs import check_output_folder

if TYPE_CHECKING:
    import numpy as np

    from ...base import BaseHasher
    from ...codes import BinaryCodes
    from ...collection import Collection
    from ...tables import Table

__all__ = [
    "Folder",
    "ItemIds",
    "Keep",
    "busy",
    "check_new_folder",
    "encode_items",
    "feature_columns",
    "opened",
    "origin",
    "print_answer",
    "store_items",
    "unknown_ids_reported",
]

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the collection.")]
ItemIds = Annotated[list[int], typer.Argument(metavar="ID...", help="Ids of items; write -- before negative ones.")]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="float16|int8",
        help="Keep the vectors, too, with two bytes or one per number: searches then order what the codes find by "
        "exact distance.",
    ),
]

_ROWS_PER_STEP = 2048  # between two steps of the progress bar


def check_new_folder(folder: Path) -> None:
    """Refuse a folder for a new collection that exists or cannot be made."""
    if folder.exists():
        raise FileExistsError(f"{str(folder)!r} exists already. Choose another folder, or use `starshl index add`.")
    check_output_folder(folder)


@contextmanager
def opened(folder: Path, *, read_only: bool = False, n_jobs: int | None = None) -> Iterator[Collection]:
    """Open a collection; if that fails, say what to do about it on the command line."""
    from ...collection import Collection
    from ...exceptions import CollectionError

    try:
        collection = Collection(folder, read_only=read_only, n_jobs=n_jobs)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"There is no collection in {str(folder)!r}. Make one with `starshl index build`."
        ) from error
    except CollectionError as error:
        if not isinstance(error.__cause__, BlockingIOError):
            raise
        raise CollectionError(
            f"Another process is writing to {str(folder)!r}. Try again when it is done; `search`, `verify` and "
            "`export` work in the meantime."
        ) from error
    with collection:
        yield collection


@contextmanager
def unknown_ids_reported() -> Iterator[None]:
    """Raise the KeyError of an unknown id as a bad value."""
    try:
        yield
    except KeyError as error:
        raise ValueError(error.args[0]) from error


def encode_items(hasher: BaseHasher, table: Table, progress: bool | None) -> BinaryCodes:
    """Encode items in steps, with a progress bar on standard error."""
    import numpy as np

    from ..._threads import tiles

    steps: Iterable[slice] = tiles(table.X.shape[0], _ROWS_PER_STEP)
    if progress_shown(progress):
        from rich.console import Console
        from rich.progress import track

        steps = track(steps, "encoding", console=Console(stderr=True), transient=True)
    packed = [hasher.encode_database(table.X[rows]).packed for rows in steps]
    return hasher.as_codes(np.concatenate(packed))


def store_items(collection: Collection, table: Table, codes: BinaryCodes, *, replace: bool = False) -> np.ndarray:
    """Store the items of a table, encoded with the collection's hasher, with their vectors if it keeps them."""
    X = None if collection.keeps is None else table.X
    given: dict[str, Any] = {
        "codes": codes,
        "encoder": collection.encoder,
        "ids": table.ids,
        "labels": table.y,
        "metadata": table.metadata,
        "references": table.references,
    }
    return collection.upsert(X, **given) if replace and table.ids is not None else collection.add(X, **given)


def busy(what: str, progress: bool | None) -> AbstractContextManager[object]:
    """Show a sign of life on standard error during work of unknown length."""
    if not progress_shown(progress):
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)


def feature_columns(table: Table) -> list[str] | None:
    """Return the columns that the vectors came from, None if the file has none."""
    if table.feature_names:
        return list(table.feature_names)
    return [table.vectors] if table.vectors else None


def origin(table: Table) -> str:
    """Say which columns the vectors came from, if the file has columns."""
    if table.feature_names:
        names, n = table.feature_names, len(table.feature_names)
        shown = ", ".join(names) if n <= 5 else f"{', '.join(names[:4])}, ..., {names[-1]}"
        return f"; vectors from {counted(n, 'column')}: {shown}"
    return f"; vectors from {table.vectors}" if table.vectors else ""


def print_answer(answer: dict[str, Any], text: str, as_json: bool) -> None:
    """Print an answer as one line of JSON, or as text."""
    typer.echo(json.dumps(answer) if as_json else text)
