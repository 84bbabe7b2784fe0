"""``starshl index search``: the nearest items."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..._common.words import percent
from ..errors import OPTION_NAMES
from ..hashers import parse_settings
from ..options import AsJson, Decimal, Jobs, Progress, Vectors
from .common import Folder, QueryOptions, busy, open_collection, parsed_labels

if TYPE_CHECKING:
    from ...collection.answers import Hit, SearchResult

Queries = Annotated[
    Path | None,
    typer.Argument(
        metavar="[INPUT]",
        help="Queries in a file as for `starshl index add`: vectors, texts, or a picture or folder of pictures.",
    ),
]
Texts = Annotated[
    list[str] | None,
    typer.Option("--text", "-t", metavar="TEXT", help="A text to search for, in quotes; may be repeated."),
]
Pictures = Annotated[
    list[Path] | None, typer.Option("--picture", metavar="FILE", help="A picture to search for; may be repeated.")
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text-column", metavar="COLUMN", help="The column of texts in the file; by default, that of the collection."
    ),
]
StoredItems = Annotated[
    list[int] | None, typer.Option("--item", "-i", metavar="ID", help="Search for a stored item; may be repeated.")
]
Count = Annotated[int, typer.Option("-k", metavar="N", help="How many neighbors.")]
Radius = Annotated[
    float | None,
    typer.Option("--radius", metavar="N", help="Find all items within this distance, instead of the nearest ones."),
]
LeastProbability = Annotated[
    float | None,
    typer.Option(
        "--min-probability",
        metavar="P",
        help="Only items that are of the query's class with at least this probability, from 0 to 1.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="NAME=VALUE|JSON",
        help='A filter on metadata: region=north, or as JSON \'{"label": 3, "price": {"<": 10}}\'.',
    ),
]
ByScores = Annotated[
    bool, typer.Option("--by-scores", help="Order items at equal distance by real-valued scores; not with --radius.")
]
LabelFilter = Annotated[
    list[str] | None, typer.Option("--label", metavar="LABEL", help="Only items with this label; may be repeated.")
]
GuessFilter = Annotated[
    list[str] | None,
    typer.Option("--guess", metavar="LABEL", help="Only items that are guessed to have this label; may be repeated."),
]
Rescore = Annotated[
    bool | None,
    typer.Option(
        "--rescore/--no-rescore",
        help="Order what the codes find by exact distance; by default, if the collection keeps vectors.",
    ),
]
Oversample = Annotated[
    int | None,
    typer.Option("--oversample", metavar="N", help="Items to rescore per result; 10, or 200 for codes up to 16 bits."),
]
Metric = Annotated[
    str | None,
    typer.Option("--metric", metavar="euclidean|cosine", help="The distance used for rescoring; euclidean by default."),
]
Reject = Annotated[
    float | None,
    typer.Option(
        "--reject",
        metavar="SHARE",
        help="Find nothing for vectors unlike all training rows; this share of the familiar ones finds nothing, "
        "either.",
    ),
]
Explain = Annotated[bool, typer.Option("--explain", help="Say why each item matches.")]


def search(
    folder: Folder,
    input: Queries = None,
    text: Texts = None,
    picture: Pictures = None,
    item: StoredItems = None,
    k: Count = 10,
    radius: Radius = None,
    min_probability: LeastProbability = None,
    where: Where = None,
    label: LabelFilter = None,
    guess: GuessFilter = None,
    by_scores: ByScores = False,
    rescore: Rescore = None,
    oversample: Oversample = None,
    metric: Metric = None,
    reject: Reject = None,
    explain: Explain = False,
    vectors: Vectors = None,
    decimal: Decimal = None,
    text_column: TextColumn = None,
    jobs: Jobs = 1,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Find the items nearest to vectors, texts, pictures or items.

    Each line has the number of the query, the distance between the codes, the probability that the item is of the
    query's class if the model can tell, the exact distance if vectors are kept, the id, and what is known about the
    item.
    """
    from ...collection.options import SearchOptions
    from ...data.tables.columns import Columns

    queries = QueryOptions(input, item, text, picture, Columns(vectors=vectors, decimal=decimal), text_column)
    queries.check()
    condition = _parse_filter(where)
    with open_collection(folder, read_only=True, n_jobs=jobs) as collection, _worded():
        options = SearchOptions.of(
            k if radius is None else None,
            radius=radius,
            min_probability=min_probability,
            where=condition,
            labels=parsed_labels(label, collection.label_kind),
            guesses=parsed_labels(guess, collection.label_kind),
            by_scores=by_scores,
            rescore=rescore,
            oversample=oversample,
            metric=cast(Any, metric),
            reject=reject,
            explain=explain,
        )
        X = queries.rows(collection)
        with busy("searching", progress):
            answers = collection.answer(options, X, items=item or None)
        cautions = collection.hasher.class_part.fit_summary.cautions
    if as_json:
        typer.echo(json.dumps([[_as_json(hit) for hit in found] for found in answers]))
    else:
        unlikely = "" if min_probability is None else "nothing as likely as that"
        _print_lines(answers, unlikely if reject is None else "none of these")
        if any(hit.probability is not None for found in answers for hit in found):
            typer.echo("\n".join(cautions), nl=bool(cautions), err=True)


@contextmanager
def _worded() -> Iterator[None]:
    """Call the options of a search what they are called here."""
    from ...collection.options import SearchKeywords
    from ...exceptions import InputError

    try:
        yield
    except InputError as error:
        names = {name: f"--{name.replace('_', '-')}" for name in SearchKeywords.__annotations__}
        others = {"k": "-k", "labels": "--label", "guesses": "--guess", "X": "a query with a vector"}
        raise ValueError(error.worded({**OPTION_NAMES, **names, **others})) from error


def _as_json(hit: Hit) -> dict[str, Any]:
    return {
        name: value for name, value in asdict(hit).items() if name not in ("explanation", "guess") or value is not None
    }


def _print_lines(answers: list[SearchResult], if_empty: str) -> None:
    hits = [hit for found in answers for hit in found]
    if hits:
        likely_title = f" {'likely':>6}" if any(hit.probability is not None for hit in hits) else ""
        exact_title = f" {'exact':>9}" if any(hit.rescored is not None for hit in hits) else ""
        typer.echo(f"{'query':>6} {'distance':>8}{likely_title}{exact_title} {'id':>12}")
    for query, found in enumerate(answers):
        if not found and if_empty:
            typer.echo(f"{query:>6} {if_empty}")
        for hit in found:
            typer.echo(f"{query:>6} {_distances(hit)} {hit.id:>12}  {_details(hit)}".rstrip())
            if hit.explanation is not None:
                typer.echo(f"{'':>12}{hit.explanation}")


def _distances(hit: Hit) -> str:
    of_codes = f"{hit.distance:>8}" if isinstance(hit.distance, int) else f"{hit.distance:>8.4f}"
    likely = "" if hit.probability is None else f" {percent(hit.probability, 1):>6}"
    return of_codes + likely + ("" if hit.rescored is None else f" {hit.rescored:>9.4g}")


def _details(hit: Hit) -> str:
    label = None if hit.label is None else f"label {json.dumps(hit.label)}"
    guess = None if hit.guess is None else f"perhaps {json.dumps(hit.guess.label)}"
    if guess is not None and hit.guess is not None and hit.guess.confidence is not None:
        guess += f" ({percent(hit.guess.confidence)})"
    metadata = json.dumps(hit.metadata) if hit.metadata else None
    return "  ".join(filter(None, [hit.reference, label, guess, metadata]))


def _parse_filter(text: str | None) -> Any:
    """Return the condition that --where names, which is JSON or one field and its value."""
    if text is None:
        return None
    name, equals, value = text.partition("=")
    if equals and not name.lstrip().startswith("{") and not name.endswith(("<", ">", "!")):
        return {name.strip(): parse_settings([f"value={value.strip()}"])["value"]}
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(
            f"--where got {text[:80]!r}, which is neither NAME=VALUE nor JSON ({error}). "
            """Write region=north, for example, or '{"price": {"<": 10}}'."""
        ) from error
