"""``starshl index binarize``: embeddings become a collection of codes, compared with the vectors."""

from __future__ import annotations

from typing import Annotated

import typer

from ..hashers import make_hasher
from ..options import AsJson, Bits, Drop, Ids, Input, Labels, NoLabels, Progress, References, Vectors, split_names
from ..rows import RowOptions, read_rows
from .common import Folder, busy, check_new_folder, feature_columns, origin, print_answer

__all__ = ["binarize"]

MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="A method from `starshl methods`; by default StarRidge with labels, ITQ without.",
    ),
]
Queries = Annotated[
    int | None,
    typer.Option(
        "--queries", metavar="N", help="Rows to hold out for the comparison; by default a tenth, at most 1,000."
    ),
]


def binarize(
    folder: Folder,
    input: Input,
    labels: Labels = None,
    no_labels: NoLabels = False,
    bits: Bits = 32,
    method: MethodName = None,
    vectors: Vectors = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    queries: Queries = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Turn embeddings into a collection of codes and compare these with the vectors, on one page."""
    from dataclasses import asdict

    from ...binarization import binarize as binarize_vectors
    from ...binarization import default_method

    check_new_folder(folder)
    options = RowOptions(labels, no_labels, vectors, ids, references, split_names(drop))
    table = read_rows(input, options, as_items=True)
    hasher = make_hasher(method or default_method(has_labels=table.y is not None), bits)
    with busy("fitting and comparing", progress):
        comparison = binarize_vectors(
            folder,
            table.X,
            table.y,
            hasher=hasher,
            ids=table.ids,
            metadata=table.metadata,
            references=table.references,
            n_queries=queries,
            feature_names=table.feature_names,
        )
    name = type(hasher).__name__
    learned = "without labels" if table.y is None else f"with labels in {table.label_column}"
    text = f"{comparison.page()}\n{table.X.shape[0]:,} items by {name} {learned}, in {folder}{origin(table)}"
    answer = {"method": name, "labels": table.label_column, "vectors": feature_columns(table), **asdict(comparison)}
    print_answer(answer, text, as_json)
