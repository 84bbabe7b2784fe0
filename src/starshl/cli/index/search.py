"""``starshl index search``: the nearest items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..options import AsJson, Jobs, Progress, Vectors
from ..rows import cells_taken_by, feature_names
from .common import Folder, busy, opened, unknown_ids_reported

__all__ = ["search"]

Queries = Annotated[
    Path | None, typer.Argument(metavar="[INPUT]", help="Query vectors, in a file as for `starshl index build`.")
]
StoredItems = Annotated[
    list[int] | None, typer.Option("--item", "-i", metavar="ID", help="Search for a stored item; may be repeated.")
]
Count = Annotated[int, typer.Option("-k", metavar="N", help="How many neighbors.")]
Radius = Annotated[int | None, typer.Option("--radius", metavar="N", help="All items within this distance, instead.")]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="JSON", help='A filter on metadata as JSON: \'{"label": 3, "price": {"<": 10}}\'.'),
]
ByScores = Annotated[
    bool, typer.Option("--by-scores", help="Order equal distances by real-valued scores; not with --radius.")
]


def search(
    folder: Folder,
    input: Queries = None,
    item: StoredItems = None,
    k: Count = 10,
    radius: Radius = None,
    where: Where = None,
    by_scores: ByScores = False,
    vectors: Vectors = None,
    jobs: Jobs = 1,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Find the items nearest to vectors in a file, or to stored items."""
    from ...tables import Columns, read_vectors

    _check_request(input, item, radius, by_scores)
    condition = _parse_filter(where)
    with opened(folder, read_only=True, n_jobs=jobs) as collection, unknown_ids_reported():
        columns = Columns(
            vectors=vectors,
            features=feature_names(collection.hasher),
            others="metadata",
            **cells_taken_by(collection.hasher),
        )
        X = read_vectors(input, columns) if input else None
        with busy("searching", progress):
            if radius is None:
                answers = collection.search(X, k, items=item or None, where=condition, by_scores=by_scores)
            else:
                answers = collection.search_radius(X, radius, items=item or None, where=condition)
    if as_json:
        typer.echo(json.dumps([[hit._asdict() for hit in hits] for hits in answers]))
        return
    for query, hits in enumerate(answers):
        for hit in hits:
            details = "  ".join(filter(None, [hit.reference, json.dumps(hit.metadata)]))
            typer.echo(f"{query:>6} {hit.distance:>4} {hit.id:>12}  {details}")


def _check_request(input: Path | None, item: list[int] | None, radius: int | None, by_scores: bool) -> None:
    if (input is None) == (not item):
        raise ValueError("Give either a file of query vectors or --item, the id of a stored item.")
    if by_scores and radius is not None:
        raise ValueError("--by-scores orders the -k nearest items and does nothing with --radius. Leave one out.")
    if by_scores and input is None:
        raise ValueError("--by-scores needs a file of query vectors: a stored item has a code, but no scores.")


def _parse_filter(text: str | None) -> Any:
    if text is None:
        return None
    from ..._json import parse_json

    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"--where got {text[:80]!r}, which is not JSON ({error}).") from error
