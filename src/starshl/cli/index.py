"""``starshl index``: keep items in a collection, search and export it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="Build, change, search, verify and export a collection.")

Folder = Annotated[Path, typer.Argument(help="The folder of the collection.", metavar="FOLDER")]
Source = Annotated[Path, typer.Argument(help="Vectors: .npy, .npz or .parquet.", metavar="FILE")]
Model = Annotated[Path, typer.Option("--model", "-m", help="The hasher, as `save` wrote it.")]
Vectors = Annotated[str | None, typer.Option(help="The column (or .npz array) of vectors.")]
Ids = Annotated[str | None, typer.Option(help="The column (or .npz array) of integer ids.")]
Where = Annotated[str | None, typer.Option(help='A filter on metadata as JSON: \'{"label": 3, "price": {"<": 10}}\'.')]
Threads = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 means all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

_USAGE, _FAILURE = 2, 1
_ROWS_A_STEP = 2048


@app.command()
def build(
    folder: Folder,
    source: Source,
    model: Model,
    vectors: Vectors = None,
    ids: Ids = None,
    as_json: AsJson = False,
) -> None:
    """Make a new collection from a file of vectors and a fitted hasher; other columns become metadata."""
    with _errors_told():
        import shutil

        from ..catalog import load
        from ..collection import Collection, read_table

        table = read_table(source, vectors=vectors, ids=ids)
        hasher = load(model)
        codes = _encode(hasher, table.X)
        with Collection.create(folder, hasher) as collection:
            try:
                collection.add(codes=codes, ids=table.ids, metadata=table.metadata)
            except BaseException:
                # What is left is an empty collection that nobody asked for.
                shutil.rmtree(folder, ignore_errors=True)
                raise
            answer = {"folder": str(folder), "items": len(collection), "bits": collection.n_bits}
    _answer(answer, f"{answer['items']:,} items of {answer['bits']} bits in {folder}", as_json)


@app.command()
def add(
    folder: Folder,
    source: Source,
    vectors: Vectors = None,
    ids: Ids = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace items whose ids exist.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add items from a file of vectors, all of them or none."""
    with _errors_told():
        from ..collection import Collection, read_table

        table = read_table(source, vectors=vectors, ids=ids)
        if replace and table.ids is None:
            raise ValueError("--replace needs --ids: without ids, no item can be replaced.")
        with Collection(folder) as collection:
            store = collection.upsert if replace else collection.add
            stored = store(codes=_encode(collection.hasher, table.X), ids=table.ids, metadata=table.metadata)
            answer = {"stored": len(stored), "items": len(collection)}
    _answer(answer, f"{answer['stored']:,} items stored, {answer['items']:,} in all", as_json)


@app.command()
def remove(
    folder: Folder,
    ids: Annotated[list[int], typer.Argument(help="Ids of items.", metavar="ID...")],
    compact: Annotated[bool, typer.Option("--compact", help="Shrink the file afterwards.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove items by id, all of them or none."""
    with _errors_told():
        from ..collection import Collection

        with Collection(folder) as collection:
            collection.remove(ids)
            if compact:
                collection.compact()
            answer = {"removed": len(ids), "items": len(collection)}
    _answer(answer, f"{answer['removed']:,} items removed, {answer['items']:,} left", as_json)


@app.command()
def search(
    folder: Folder,
    source: Annotated[Path | None, typer.Argument(help="Query vectors.", metavar="[FILE]")] = None,
    item: Annotated[list[int] | None, typer.Option("--item", "-i", help="Search for a stored item.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many neighbors.")] = 10,
    radius: Annotated[int | None, typer.Option(help="All items within this distance, instead.")] = None,
    where: Where = None,
    by_scores: Annotated[
        bool, typer.Option("--by-scores", help="Order equal distances by real-valued scores.")
    ] = False,
    vectors: Vectors = None,
    n_jobs: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Find the nearest items of vectors in a file, or of stored items."""
    with _errors_told():
        from ..collection import Collection, read_table

        condition = _parse_filter(where)
        X = read_table(source, vectors=vectors).X if source else None
        items = item or None
        with Collection(folder, read_only=True, n_jobs=n_jobs) as collection:
            if radius is None:
                found = collection.search(X, k, items=items, where=condition, by_scores=by_scores)
            else:
                found = collection.search_radius(X, radius, items=items, where=condition)
    if as_json:
        typer.echo(json.dumps([[hit._asdict() for hit in hits] for hits in found]))
        return
    for query, hits in enumerate(found):
        for hit in hits:
            details = "  ".join(filter(None, [hit.reference, json.dumps(hit.metadata)]))
            typer.echo(f"{query:>6} {hit.distance:>4} {hit.id:>12}  {details}")


@app.command()
def verify(folder: Folder, as_json: AsJson = False) -> None:
    """Examine every page and every item of a collection; exit code 1 if it is damaged."""
    with _errors_told():
        from ..collection import Collection

        with Collection(folder, read_only=True) as collection:
            answer = {"folder": str(folder), "items": collection.verify(), "bits": collection.n_bits}
    _answer(answer, f"{answer['items']:,} items of {answer['bits']} bits, all intact", as_json)


@app.command()
def export(
    folder: Folder,
    target: Annotated[Path, typer.Argument(help="A .parquet or .jsonl file.", metavar="FILE")],
    as_json: AsJson = False,
) -> None:
    """Write all items, their codes as packed bytes, to a file that other programs read."""
    with _errors_told():
        from ..collection import Collection

        with Collection(folder, read_only=True) as collection:
            answer = {"file": str(target), "items": collection.export(target)}
    _answer(answer, f"{answer['items']:,} items written to {target}", as_json)


@app.command()
def binarize(
    folder: Folder,
    source: Source,
    method: Annotated[str, typer.Option(help="A method of the catalog.")] = "StarSHL",
    bits: Annotated[int, typer.Option("--bits", "-b", help="Length of the codes.")] = 32,
    label: Annotated[str | None, typer.Option(help="The column (or .npz array) of labels.")] = None,
    vectors: Vectors = None,
    ids: Ids = None,
    queries: Annotated[int | None, typer.Option(help="Rows to hold out for the comparison.")] = None,
    as_json: AsJson = False,
) -> None:
    """Turn embeddings into a collection of codes and compare these with the vectors, on one page."""
    with _errors_told():
        from dataclasses import asdict

        from rich.console import Console

        from ..catalog import get_class
        from ..collection import binarize as binarize_vectors
        from ..collection import read_table

        table = read_table(source, vectors=vectors, ids=ids)
        y = None if label is None else table.labels(label)
        hasher = get_class(method)(n_bits=bits)
        if "random_state" in hasher.get_params():
            hasher.set_params(random_state=0)
        with Console(stderr=True).status("fitting and comparing"):
            found = binarize_vectors(
                folder, table.X, y, hasher=hasher, ids=table.ids, metadata=table.metadata, n_queries=queries
            )
    _answer(asdict(found), found.page(), as_json)


def _encode(hasher, X):
    """Encode in steps, with a progress bar on standard error."""
    import numpy as np
    from rich.console import Console
    from rich.progress import track

    from .._threads import tiles
    from ..codes import BinaryCodes

    steps = track(tiles(len(X), _ROWS_A_STEP), "encoding", console=Console(stderr=True), transient=True)
    packed = [hasher.encode(X[rows]).packed for rows in steps]
    return BinaryCodes(np.concatenate(packed), len(hasher.get_feature_names_out()))


def _parse_filter(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"The filter {text!r} is not JSON ({error}).") from error


def _answer(answer: dict, text: str, as_json: bool) -> None:
    typer.echo(json.dumps(answer) if as_json else text)


@contextmanager
def _errors_told() -> Iterator[None]:
    """Turn errors of the library into a sentence on stderr: exit 2 for bad input, 1 for a failure."""
    from ..exceptions import BundleFormatError, CollectionError, CollectionFormatError

    try:
        yield
    except (CollectionError, CollectionFormatError, BundleFormatError, ImportError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(_FAILURE) from error
    except (ValueError, KeyError, FileNotFoundError, FileExistsError) as error:
        # A KeyError prints as the representation of its text; the text is what is wanted.
        typer.echo(f"Error: {error.args[0] if isinstance(error, KeyError) else error}", err=True)
        raise typer.Exit(_USAGE) from error
    except OSError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(_FAILURE) from error
