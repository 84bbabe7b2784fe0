"""``starshl index add``: more items for a collection."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import (
    AsJson,
    Drop,
    Ids,
    Jobs,
    Labels,
    NoLabels,
    Progress,
    References,
    Vectors,
    progress_shown,
    split_names,
)
from ..rows import RowOptions, read_rows
from ..texts import read_texts
from .common import Folder, busy, encode_items, feature_columns, opened, origin, print_answer, store_items
from .queries import holds_pictures, holds_texts

if TYPE_CHECKING:
    import numpy as np

    from ...collection import Collection
    from ...importing import AdditionSummary

__all__ = ["add"]

Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...",
        help="What to add. A collection of vectors takes a file as for `starshl index build`; one of texts, a table or "
        "a .txt file with one text per line; one of pictures, picture files and folders, whose subfolders are labels.",
    ),
]
Text = Annotated[
    str | None,
    typer.Option("--text", "-t", metavar="COLUMN", help="The column of texts; by default, that of the collection."),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace items whose ids exist.")]


def add(
    folder: Folder,
    inputs: Inputs,
    labels: Labels = None,
    no_labels: NoLabels = False,
    vectors: Vectors = None,
    text: Text = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    replace: Replace = False,
    jobs: Jobs = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Add vectors, texts or pictures, all of them or none.

    Pictures that cannot be read are skipped and listed at the end.
    """
    if replace and ids is None:
        raise ValueError("--replace needs --ids: without ids, no item can be replaced.")
    options = RowOptions(labels, no_labels, vectors, ids, references, split_names(drop))
    options.check()
    with opened(folder) as collection:
        if holds_pictures(collection, inputs):
            _check_no_columns(options, text)
            _print_summary(_add_pictures(collection, inputs, no_labels, jobs, progress), as_json)
            return
        if len(inputs) > 1:
            raise ValueError(f"There are {len(inputs)} files. Only pictures can be several; add one file at a time.")
        if holds_texts(collection, inputs[0], vectors):
            _print_summary(_add_texts(collection, inputs[0], text, options, replace, progress), as_json)
            return
        if text is not None:
            raise ValueError("--text is for tables of texts and for collections of texts. Leave it out.")
        _add_vectors(collection, inputs[0], options, replace, progress, as_json)


def _add_vectors(
    collection: Collection, input: Path, options: RowOptions, replace: bool, progress: bool | None, as_json: bool
) -> None:
    table = read_rows(input, options, collection.hasher, as_items=True)
    if not replace:
        _check_ids_are_new(collection, table.ids)
    codes = encode_items(collection.hasher, table, progress)
    with busy("storing", progress):
        stored = store_items(collection, table, codes, replace=replace)
    answer = {
        "stored": len(stored),
        "items": len(collection),
        "vectors": feature_columns(table),
        "labels": table.label_column,
    }
    text = f"{answer['stored']:,} items stored, {answer['items']:,} in total{origin(table)}"
    print_answer(answer, text, as_json)


def _add_texts(
    collection: Collection, input: Path, column: str | None, options: RowOptions, replace: bool, progress: bool | None
) -> AdditionSummary:
    from ...importing import add_texts
    from ...importing.more import text_field

    field = text_field(collection)
    texts, about = read_texts(input, column or field, options, {"--text": column})
    about |= {"field": field}
    if not replace:
        _check_ids_are_new(collection, about.get("ids"))
    with busy("storing", progress):
        return add_texts(collection, texts, replace=replace, **about)


def _add_pictures(
    collection: Collection, inputs: list[Path], no_labels: bool, jobs: int | None, progress: bool | None
) -> AdditionSummary:
    from ...importing import add_pictures

    shown = progress_shown(progress)
    return add_pictures(collection, inputs, labels=not no_labels, n_jobs=jobs, progress=shown)


def _print_summary(summary: AdditionSummary, as_json: bool) -> None:
    answer: dict[str, Any] = {
        "stored": summary.n_stored,
        "items": summary.n_items,
        "labeled": summary.n_labeled,
        "skipped": [asdict(each) for each in summary.skipped],
        "other_files": summary.n_other_files,
    }
    print_answer(answer, summary.text(), as_json)


def _check_no_columns(options: RowOptions, text: str | None) -> None:
    """Refuse options that name columns: pictures have none."""
    named = {
        "--labels": options.labels,
        "--vectors": options.vectors,
        "--text": text,
        "--ids": options.ids,
        "--references": options.references,
        "--drop": options.drop,
    }
    given = [name for name, value in named.items() if value]
    if given:
        raise ValueError(
            f"{given[0]} names a column, and pictures have none: their labels are the names of subfolders, and their "
            "ids are the next free ones. Leave it out."
        )


def _check_ids_are_new(collection: Collection, ids: np.ndarray | None) -> None:
    import numpy as np

    if ids is None:
        return
    present = np.intersect1d(ids, collection.ids)
    if len(present):
        raise ValueError(
            f"{len(present)} of the ids are already in the collection, the lowest is {present[0]}; nothing was added. "
            "Replace such items with --replace, or give new ids."
        )
