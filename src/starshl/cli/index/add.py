"""``starshl index add``: more items for a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..options import AsJson, Drop, Ids, Input, Labels, NoLabels, Progress, References, Vectors, split_names
from ..rows import RowOptions, read_rows
from .common import Folder, busy, encode_items, feature_columns, opened, origin, print_answer, store_items

if TYPE_CHECKING:
    from ...collection import Collection
    from ...tables import Table

__all__ = ["add"]

Replace = Annotated[bool, typer.Option("--replace", help="Replace items whose ids exist.")]


def add(
    folder: Folder,
    input: Input,
    labels: Labels = None,
    no_labels: NoLabels = False,
    vectors: Vectors = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    replace: Replace = False,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Add items from a file of vectors, all of them or none."""
    if replace and ids is None:
        raise ValueError("--replace needs --ids: without ids, no item can be replaced.")
    options = RowOptions(labels, no_labels, vectors, ids, references, split_names(drop))
    with opened(folder) as collection:
        table = read_rows(input, options, collection.hasher, as_items=True)
        if not replace:
            _check_ids_are_new(collection, table)
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


def _check_ids_are_new(collection: Collection, table: Table) -> None:
    import numpy as np

    if table.ids is None:
        return
    present = np.intersect1d(table.ids, collection.ids)
    if len(present):
        raise ValueError(
            f"{len(present)} of the ids are already in the collection, the lowest is {present[0]}; nothing was added. "
            "Replace such items with --replace, or give new ids."
        )
