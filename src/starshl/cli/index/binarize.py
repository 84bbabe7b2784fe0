"""``starshl index binarize``: embeddings become a collection of codes, compared with the vectors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..hashers import make_hasher, parse_lengths
from ..options import AsJson, Decimal, Drop, Ids, Input, Labels, NoLabels, Progress, References, Vectors, check_output
from ..rows import TextColumn, read_rows, read_texts, row_columns
from .common import Folder, busy, check_new_folder, feature_columns, origin, print_answer

if TYPE_CHECKING:
    from ...data.tables.columns import Columns
    from ...data.tables.reading import Table
    from ...evaluation.comparison import Comparison

MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="A method from `starshl methods`; by default, HybridHasher if there are labels, and otherwise "
        "HybridHasher or ITQ, whichever measures better.",
    ),
]
Lengths = Annotated[
    str | None,
    typer.Option(
        "--bits",
        "-b",
        metavar="N[,N...]",
        help="Length of the codes. If you give several, the shortest good one is stored. By default, 32, or as many "
        "as the vectors allow.",
    ),
]
Queries = Annotated[
    int | None,
    typer.Option(
        "--queries", metavar="N", help="Rows to hold out for the comparison; by default, a tenth, but at most 1,000."
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="An HTML page to write, with real queries and what each method finds; a copy is in the folder, as "
        "comparison.html.",
    ),
]
Titles = Annotated[
    str | None,
    typer.Option(
        "--title",
        metavar="COLUMN",
        help="The column of texts that the page shows; by default, `title` or a similar column, if there is one.",
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="With --text: what makes vectors of texts, such as tfidf (default) or minilm; see `starshl texts`.",
    ),
]
PictureShape = Annotated[
    str | None,
    typer.Option(
        "--pictures",
        metavar="HEIGHTxWIDTH",
        help="Show rows as gray pictures of this size; by default, rows that look like square pictures are shown as "
        "such.",
    ),
]


def binarize(
    folder: Folder,
    input: Input,
    labels: Labels = None,
    no_labels: NoLabels = False,
    bits: Lengths = None,
    method: MethodName = None,
    vectors: Vectors = None,
    text: TextColumn = None,
    embedder: Embedder = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    decimal: Decimal = None,
    queries: Queries = None,
    report: Report = None,
    titles: Titles = None,
    pictures: PictureShape = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Turn embeddings into codes, and compare both.

    The codes become a collection. A page in its folder shows the comparison, with real queries.
    """
    from ...collection.importing.vectors import binarize as binarize_vectors

    check_new_folder(folder)
    lengths = None if bits is None else parse_lengths(bits)
    hasher = None if method is None else make_hasher(method, (lengths or (32,))[0])
    if report is not None:
        check_output(report, [input], suffixes=(".html", ".htm"))
    columns = row_columns(
        labels, no_labels, vectors=vectors, ids=ids, references=references, drop=drop, decimal=decimal
    )
    if text is not None or embedder is not None:
        if titles is not None or pictures is not None or vectors is not None:
            raise ValueError("--title, --pictures and --vectors are for vectors, not for texts. Leave them out.")
        table = _texts(input, text, columns)
        shown: dict[str, Any] = {}
        embedder = embedder or "tfidf"
    else:
        table = read_rows(input, columns, as_items=True)
        shown = _what_to_show(table, titles, pictures)
    with busy("fitting and comparing", progress):
        comparison = binarize_vectors(
            # In the type in which the file holds them, whose bytes are counted.
            table.X.astype(table.stored_type, copy=False) if embedder is None else table.X[:, 0].tolist(),
            folder,
            table.y,
            embedder=embedder,
            hasher=hasher,
            n_bits=lengths,
            ids=table.ids,
            metadata=table.metadata,
            references=table.references,
            n_queries=queries,
            feature_names=table.feature_names,
        )
    written = _write_pages(folder, report, comparison, table, shown)
    name = comparison.method
    learned = "without labels" if table.y is None else f"with labels in {table.label_column}"
    text = (
        f"{comparison.page()}\n{table.X.shape[0]:,} items by {name} {learned}, in {folder}{origin(table)}"
        f"\nReal queries and what each method finds: {written}"
    )
    roles = {"labels": table.label_column, "vectors": feature_columns(table)}
    print_answer({"method": name, **roles, "report": str(written), **comparison.as_dict()}, text, as_json)


def _texts(input: Path, text: str | None, columns: Columns) -> Table:
    """Return texts as a table of one column, with what belongs to them."""
    import numpy as np

    from ...data.tables.reading import Table

    texts, about = read_texts(input, text, columns, {"--text": text})
    cells = np.array(texts, dtype=object).reshape(-1, 1)
    kept: dict[str, Any] = {name: about.get(name) for name in ("ids", "metadata", "references")}
    named = columns.label_column or (None if columns.label_file is None else str(columns.label_file))
    return Table(cells, about.get("labels"), label_column=named, **kept)


def _what_to_show(table: Table, titles: str | None, pictures: str | None) -> dict[str, Any]:
    """Return what the page shows of a row, as the options say; nothing if they do not."""
    from ...evaluation.comparison_page import check_picture_shape, find_titles

    if titles is not None and pictures is not None:
        raise ValueError("--title and --pictures contradict each other. Leave one of them out.")
    if titles is not None:
        return {"titles": find_titles(table.metadata, field=titles)}
    if pictures is None:
        return {}
    sizes = re.fullmatch(r"(\d+)x(\d+)", pictures.strip().lower())
    if sizes is None:
        raise ValueError(f"--pictures got {pictures!r}; give the height and the width, such as 28x28.")
    return {"picture_shape": check_picture_shape((int(sizes[1]), int(sizes[2])), table.X.shape[1])}


def _write_pages(
    folder: Path, report: Path | None, comparison: Comparison, table: Table, shown: dict[str, Any]
) -> Path:
    """Write the page again if options say what it shows, and a copy of it where it was asked for; return where."""
    from ..._common.files import write_atomically
    from ...evaluation.comparison_page import write_page

    own = folder / "comparison.html"
    if shown:
        write_page(own, comparison, table.X, **shown)
    if report is None:
        return own
    write_atomically(report, own.read_bytes())
    return report
