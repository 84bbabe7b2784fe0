"""``starshl index add``: more items for a collection."""

from __future__ import annotations

from dataclasses import asdict
from dataclasses import replace as dataclass_replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..._common.words import counted
from ..options import (
    AsJson,
    Decimal,
    Drop,
    Ids,
    Jobs,
    Labels,
    NoLabels,
    Progress,
    References,
    Vectors,
    progress_shown,
)
from ..rows import about_items, read_rows, read_texts, row_columns
from .common import (
    Folder,
    LabelsFromFolders,
    busy,
    embedded_rows,
    encode_items,
    feature_columns,
    folder_lines,
    holding_vectors,
    holds_pictures,
    holds_texts,
    left_out_lines,
    level_of_labels,
    open_collection,
    origin,
    print_answer,
)

if TYPE_CHECKING:
    import numpy as np

    from ...collection.collection import Collection
    from ...collection.importing.building import AdditionSummary
    from ...data.tables.columns import Columns

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
AllowDuplicates = Annotated[
    bool, typer.Option("--allow-duplicates", help="Store items that are there already once more.")
]
UpdateLabels = Annotated[
    bool, typer.Option("--update-labels", help="Give items that are there already the label that they come with.")
]
KeepLabels = Annotated[
    bool, typer.Option("--keep-labels", help="Leave items that are there already the label that they have.")
]


def add(
    folder: Folder,
    inputs: Inputs,
    labels: Labels = None,
    no_labels: NoLabels = False,
    labels_from: LabelsFromFolders = None,
    vectors: Vectors = None,
    text: Text = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    decimal: Decimal = None,
    replace: Replace = False,
    allow_duplicates: AllowDuplicates = False,
    update_labels: UpdateLabels = False,
    keep_labels: KeepLabels = False,
    jobs: Jobs = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Add vectors, texts or pictures, all of them or none.

    Items without ids that are there already are not stored again: pictures with the same path in their folder and the
    same preview, other items with the same columns. If some of them come with another label than they have, nothing is
    stored until --update-labels or --keep-labels says which one is right; a row without a label changes none. Without
    --ids, the first row gets the id after the highest one, the second row the next, and so on; rows that are there
    already leave gaps. Columns that the codes come from become metadata if the first item has them there. Pictures that
    cannot be read get no id, and are listed at the end.
    """
    if replace and ids is None:
        raise ValueError("--replace needs --ids: without ids, no item can be replaced.")
    columns = row_columns(
        labels, no_labels, vectors=vectors, ids=ids, references=references, drop=drop, decimal=decimal
    )
    same: dict[str, Any] = {
        "allow_duplicates": allow_duplicates,
        "update_labels": update_labels,
        "keep_labels": keep_labels,
    }
    with open_collection(folder) as collection:
        if holds_pictures(collection, inputs):
            _check_no_columns(columns, text)
            summary = _add_pictures(collection, inputs, no_labels, labels_from, jobs, progress, same)
            _print_summary(summary, as_json, labels_from)
            return
        if labels_from is not None:
            raise ValueError("--labels-from chooses among folders of pictures, and there are none. Leave it out.")
        if len(inputs) > 1:
            raise ValueError(f"There are {len(inputs)} files. Only pictures can be several; add one file at a time.")
        if holds_texts(collection, inputs[0], vectors):
            summary = _add_texts(collection, inputs[0], text, columns, progress, replace, same)
            _print_summary(summary, as_json)
            return
        if text is not None:
            raise ValueError("--text is for tables of texts and for collections of texts. Leave it out.")
        _add_vectors(collection, inputs[0], columns, progress, replace, same, as_json)


def _add_vectors(
    collection: Collection,
    input: Path,
    columns: Columns,
    progress: bool | None,
    replace: bool,
    same: dict[str, Any],
    as_json: bool,
) -> None:
    from ...collection.importing.building import add_items
    from ...data.tables.reading import with_kept_features

    with holding_vectors(collection, input) as check:
        table = read_rows(input, columns, collection.hasher, as_items=True)
        check(table.X)
    table = dataclass_replace(table, X=embedded_rows(collection, table.X))
    kept = [name for name in collection.kept_features() if name in (table.feature_names or ())]
    table = with_kept_features(table, kept)
    if not replace:
        _check_ids_are_new(collection, table.ids)
    codes = encode_items(collection.hasher, table, progress)
    about = {"labels": table.y, **about_items(table)}
    with busy("storing", progress):
        added = add_items(collection, table.X, codes=codes, replace=replace, **same, **about)
    answer = {
        "stored": added.n_stored,
        "items": added.n_items,
        "vectors": feature_columns(table),
        "labels": table.label_column,
        "present": added.n_present,
        "relabeled": added.n_relabeled,
        "look_present": added.look_present,
    }
    text = f"{counted(added.n_stored, 'item')} stored, {added.n_items:,} in total{origin(table)}"
    lines = [text, *_present_lines(added)]
    if added.look_present:
        lines.append(
            "All of them look like items that were there already: reference, metadata and code are the same. If this "
            f"is the same file once more, remove the {added.n_stored:,} items with the highest ids."
        )
    print_answer(answer, "\n".join(lines), as_json)


def _add_texts(
    collection: Collection,
    input: Path,
    column: str | None,
    columns: Columns,
    progress: bool | None,
    replace: bool,
    same: dict[str, Any],
) -> AdditionSummary:
    from ...collection.importing.texts import add_texts, text_field

    field = text_field(collection)
    texts, about = read_texts(input, column or field, columns, {"--text": column})
    about |= {"field": field}
    if not replace:
        _check_ids_are_new(collection, about.get("ids"))
    return add_texts(collection, texts, replace=replace, progress=progress_shown(progress), **same, **about)


def _add_pictures(
    collection: Collection,
    inputs: list[Path],
    no_labels: bool,
    labels_from: str | None,
    jobs: int | None,
    progress: bool | None,
    same: dict[str, Any],
) -> AdditionSummary:
    from ...collection.importing.pictures import add_pictures

    return add_pictures(
        collection,
        inputs,
        labels=not no_labels,
        labels_from=level_of_labels(labels_from),
        n_jobs=jobs,
        progress=progress_shown(progress),
        **same,
    )


def _print_summary(summary: AdditionSummary, as_json: bool, labels_from: str | None = None) -> None:
    answer: dict[str, Any] = {
        "stored": summary.n_stored,
        "items": summary.n_items,
        "labeled": summary.n_labeled,
        "present": summary.n_present,
        "relabeled": summary.n_relabeled,
        "skipped": [asdict(each) for each in summary.skipped],
        "other_files": summary.n_other_files,
        "folders": summary.folders,
    }
    labeled = f"{summary.n_labeled:,} of them with a label" if summary.n_labeled else "without labels"
    labeled = f", {labeled}" if summary.n_stored else ""
    stored = counted(summary.n_stored, summary.kind[:-1])
    text = f"{stored} stored{labeled}; {summary.n_items:,} items in total"
    lines = [text, *folder_lines(summary, labels_from), *_present_lines(summary)]
    lines += [*([summary.cut] if summary.cut else []), *left_out_lines(summary.n_other_files, summary.skipped)]
    print_answer(answer, "\n".join(lines), as_json)


def _present_lines(summary: AdditionSummary) -> list[str]:
    """Say how many items were there already, and how many of them have a new label; nothing if there are none."""
    n_present, n_relabeled = summary.n_present, summary.n_relabeled
    if not n_present:
        return []
    was, it = ("was", "it") if n_present == 1 else ("were", "them")
    lines = [
        f"{counted(n_present, 'item')} {was} there already and not stored again; --allow-duplicates stores {it} once "
        "more."
    ]
    if n_relabeled:
        lines.append(f"{n_relabeled:,} of them {'has' if n_relabeled == 1 else 'have'} a new label.")
    return lines


def _check_no_columns(columns: Columns, text: str | None) -> None:
    """Refuse options that name columns: pictures have none."""
    named = {
        "--labels": columns.labels,
        "--vectors": columns.vectors,
        "--text": text,
        "--ids": columns.ids,
        "--references": columns.references,
        "--drop": columns.drop,
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
