"""``starshl index``: keep items in a collection, search and export it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Progress, progress_shown

if TYPE_CHECKING:
    from ..collection import Collection, Table

app = typer.Typer(no_args_is_help=True, help="Build, change, search, verify and export a collection.")

Folder = Annotated[Path, typer.Argument(help="The folder of the collection.", metavar="FOLDER")]
Source = Annotated[Path, typer.Argument(help="Vectors: .npy, .npz, .csv or .parquet.", metavar="FILE")]
Model = Annotated[Path, typer.Option("--model", "-m", metavar="MODEL", help="A model file written by `starshl fit`.")]
Vectors = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of lists (or .npz array) with the vectors. By default the columns that the model was fitted "
        "on; for a model without names the only column of lists, or else all columns of floating-point numbers.",
    ),
]
Ids = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column (or .npz array) of integer ids.")]
References = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column (or .npz array) that tells where the picture or text is."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN,...", help="Columns that shall not become metadata; may be repeated."),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="JSON", help='A filter on metadata as JSON: \'{"label": 3, "price": {"<": 10}}\'.'),
]
Threads = Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="Threads; -1 means all.")]

_DAMAGED = 1
_ROWS_A_STEP = 2048


@app.command()
def build(
    folder: Folder,
    source: Source,
    model: Model,
    vectors: Vectors = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a new collection from a file of vectors and a fitted model; other columns become metadata."""
    from ..catalog import load
    from ..collection.filling import appearing_collection
    from ._items import read_items

    _check_new(folder)
    hasher = load(model)
    table = read_items(
        source, vectors=vectors, ids=ids, references=references, drop=_split(drop), features=_feature_names(hasher)
    )
    codes = _encode(hasher, table.X, progress)
    with appearing_collection(folder, hasher) as collection, _busy("storing", progress):
        collection.add(codes=codes, ids=table.ids, metadata=table.metadata, references=table.references)
        answer = {"folder": str(folder), "items": len(collection), "bits": collection.n_bits}
    answer["vectors"] = _vector_columns(table)
    text = f"{answer['items']:,} items of {answer['bits']} bits in {folder}{_origin(table)}"
    _answer(answer, text, as_json)


@app.command()
def add(
    folder: Folder,
    source: Source,
    vectors: Vectors = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace items whose ids exist.")] = False,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Add items from a file of vectors, all of them or none."""
    from ._items import read_items

    if replace and ids is None:
        raise ValueError("--replace needs --ids: without ids, no item can be replaced.")
    with _opened(folder) as collection:
        hasher = collection.hasher
        table = read_items(
            source, vectors=vectors, ids=ids, references=references, drop=_split(drop), features=_feature_names(hasher)
        )
        if not replace:
            _check_ids_are_new(collection, table)
        codes = _encode(hasher, table.X, progress)
        store = collection.upsert if replace else collection.add
        with _busy("storing", progress):
            stored = store(codes=codes, ids=table.ids, metadata=table.metadata, references=table.references)
        answer = {"stored": len(stored), "items": len(collection), "vectors": _vector_columns(table)}
    text = f"{answer['stored']:,} items stored, {answer['items']:,} in all{_origin(table)}"
    _answer(answer, text, as_json)


@app.command()
def remove(
    folder: Folder,
    ids: Annotated[list[int], typer.Argument(help="Ids of items; write -- before negative ones.", metavar="ID...")],
    compact: Annotated[bool, typer.Option("--compact", help="Shrink the file afterwards.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove items by id, all of them or none."""
    with _opened(folder) as collection, _unknown_ids_told():
        collection.remove(ids)
        if compact:
            collection.compact()
        answer = {"removed": len(ids), "items": len(collection)}
    _answer(answer, f"{answer['removed']:,} items removed, {answer['items']:,} left", as_json)


@app.command()
def search(
    folder: Folder,
    source: Annotated[
        Path | None, typer.Argument(help="Query vectors: .npy, .npz, .csv or .parquet.", metavar="[FILE]")
    ] = None,
    item: Annotated[
        list[int] | None,
        typer.Option("--item", "-i", metavar="ID", help="Search for a stored item; may be repeated."),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many neighbors.")] = 10,
    radius: Annotated[int | None, typer.Option(metavar="N", help="All items within this distance, instead.")] = None,
    where: Where = None,
    by_scores: Annotated[
        bool, typer.Option("--by-scores", help="Order equal distances by real-valued scores; not with --radius.")
    ] = False,
    vectors: Vectors = None,
    n_jobs: Threads = 1,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Find the nearest items of vectors in a file, or of stored items."""
    from ._items import read_queries

    if (source is None) == (not item):
        raise ValueError("Give either a file of query vectors or --item, the id of a stored item.")
    if by_scores and radius is not None:
        raise ValueError("--by-scores orders the -k nearest items and does nothing with --radius. Leave one out.")
    if by_scores and source is None:
        raise ValueError("--by-scores needs a file of query vectors: a stored item has a code, but no scores.")
    condition = _parse_filter(where)
    with _opened(folder, read_only=True, n_jobs=n_jobs) as collection, _unknown_ids_told():
        features = _feature_names(collection.hasher)
        X = read_queries(source, vectors=vectors, features=features) if source else None
        with _busy("searching", progress):
            if radius is None:
                found = collection.search(X, k, items=item or None, where=condition, by_scores=by_scores)
            else:
                found = collection.search_radius(X, radius, items=item or None, where=condition)
    if as_json:
        typer.echo(json.dumps([[hit._asdict() for hit in hits] for hits in found]))
        return
    for query, hits in enumerate(found):
        for hit in hits:
            details = "  ".join(filter(None, [hit.reference, json.dumps(hit.metadata)]))
            typer.echo(f"{query:>6} {hit.distance:>4} {hit.id:>12}  {details}")


@app.command()
def verify(folder: Folder, progress: Progress = None, as_json: AsJson = False) -> None:
    """Examine every page and every item of a collection; exit code 1 if it is damaged."""
    from ..exceptions import CollectionFormatError

    try:
        with _opened(folder, read_only=True) as collection, _busy("verifying", progress):
            answer = {"folder": str(folder), "items": collection.verify(), "bits": collection.n_bits}
    except CollectionFormatError as error:
        if os.environ.get("STARSHL_TRACEBACK"):
            raise
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(_DAMAGED) from error
    _answer(answer, f"{answer['items']:,} items of {answer['bits']} bits, all intact", as_json)


@app.command()
def export(
    folder: Folder,
    target: Annotated[Path, typer.Argument(help="A .parquet or .jsonl file.", metavar="FILE")],
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Write all items, their codes as packed bytes, to a file that other programs read."""
    with _opened(folder, read_only=True) as collection, _busy("writing", progress):
        answer = {"file": str(target), "items": collection.export(target)}
    _answer(answer, f"{answer['items']:,} items written to {target}", as_json)


@app.command()
def binarize(
    folder: Folder,
    source: Source,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A method from `starshl methods`; by default StarSHL with --label, ITQ without."
        ),
    ] = None,
    bits: Annotated[int, typer.Option("--bits", "-b", metavar="N", help="Length of the codes.")] = 32,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column (or .npz array) of labels; null, NaN or -1 is unlabeled."),
    ] = None,
    vectors: Vectors = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    queries: Annotated[
        int | None,
        typer.Option(metavar="N", help="Rows to hold out for the comparison; by default a tenth, at most 1,000."),
    ] = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Turn embeddings into a collection of codes and compare these with the vectors, on one page."""
    from dataclasses import asdict

    from ..binarization import binarize as binarize_vectors
    from ._items import read_items
    from .fit import make_hasher

    _check_new(folder)
    hasher = make_hasher(method or ("ITQ" if label is None else "StarSHL"), bits, {})
    table = read_items(source, vectors=vectors, ids=ids, labels=label, references=references, drop=_split(drop))
    y = None if label is None else table.labels(label)
    with _busy("fitting and comparing", progress):
        found = binarize_vectors(
            folder,
            table.X,
            y,
            hasher=hasher,
            ids=table.ids,
            metadata=table.metadata,
            references=table.references,
            n_queries=queries,
            feature_names=table.feature_names,
        )
    name = type(hasher).__name__
    why = "" if method else f", the default {'without' if label is None else 'with'} --label"
    text = f"{found.page()}\n{len(table.X):,} items by {name}{why}, in {folder}{_origin(table)}"
    _answer({"method": name, "vectors": _vector_columns(table), **asdict(found)}, text, as_json)


def _check_new(folder: Path) -> None:
    if folder.exists():
        raise FileExistsError(f"{str(folder)!r} exists already. Choose another folder, or use `starshl index add`.")


@contextmanager
def _opened(folder: Path, **settings: Any) -> Iterator[Collection]:
    """Open a collection; where that fails, say what can be done about it on the command line."""
    from ..collection import Collection
    from ..exceptions import CollectionError

    try:
        collection = Collection(folder, **settings)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"There is no collection in {str(folder)!r}. Make one with `starshl index build`."
        ) from error
    except CollectionError as error:
        if not isinstance(error.__cause__, BlockingIOError):
            raise
        raise CollectionError(
            f"Another process is writing to {str(folder)!r}. Try again when it is done; `search`, `verify` and "
            "`export` work meanwhile."
        ) from error
    with collection:
        yield collection


@contextmanager
def _unknown_ids_told() -> Iterator[None]:
    """Make a bad value of the KeyError of an unknown id."""
    try:
        yield
    except KeyError as error:
        raise ValueError(error.args[0]) from error


def _check_ids_are_new(collection: Collection, table: Table) -> None:
    import numpy as np

    present = [] if table.ids is None else np.intersect1d(table.ids, collection.ids)
    if len(present):
        raise ValueError(
            f"{len(present)} of the ids are already in the collection, the lowest is {present[0]}; nothing was added. "
            "Replace such items with --replace, or give new ids."
        )


def _feature_names(hasher) -> list[str] | None:
    names = getattr(hasher, "feature_names_in_", None)
    return None if names is None else list(names)


def _split(drop: list[str] | None) -> list[str]:
    return [name for names in drop or () for name in names.split(",")]


def _vector_columns(table: Table) -> list[str] | None:
    return list(table.feature_names) if table.feature_names else table.vectors and [table.vectors]


def _origin(table: Table) -> str:
    """Say which columns the vectors came from, if the file has columns."""
    if table.feature_names:
        names, n = table.feature_names, len(table.feature_names)
        shown = ", ".join(names) if n <= 5 else f"{', '.join(names[:4])}, ..., {names[-1]}"
        return f"; vectors from {n} column{'s' if n > 1 else ''}: {shown}"
    return f"; vectors from {table.vectors}" if table.vectors else ""


def _encode(hasher, X, progress: bool | None):
    """Encode in steps, with a progress bar on standard error."""
    import numpy as np

    from .._threads import tiles
    from ..codes import BinaryCodes

    steps = tiles(len(X), _ROWS_A_STEP)
    if progress_shown(progress):
        from rich.console import Console
        from rich.progress import track

        steps = track(steps, "encoding", console=Console(stderr=True), transient=True)
    packed = [hasher.encode_database(X[rows]).packed for rows in steps]
    return BinaryCodes(np.concatenate(packed), hasher.n_bits_)


def _busy(what: str, progress: bool | None):
    """Show on standard error that something of unknown length is going on."""
    if not progress_shown(progress):
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)


def _parse_filter(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--where got {text!r}, which is not JSON ({error}).") from error


def _answer(answer: dict, text: str, as_json: bool) -> None:
    typer.echo(json.dumps(answer) if as_json else text)
