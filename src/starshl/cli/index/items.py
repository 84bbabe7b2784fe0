"""Most commands of ``starshl index``: ``build``, ``declare``, ``label``, ``remove``, ``verify`` and ``export``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..._common.words import counted
from ..options import (
    AsJson,
    Decimal,
    Drop,
    Ids,
    Input,
    KeptFeatures,
    Labels,
    Model,
    NoLabels,
    Progress,
    References,
    Vectors,
    check_output,
    keep_features,
    load_model,
)
from ..rows import about_items, read_rows, row_columns
from .common import (
    Folder,
    ItemIds,
    Keep,
    busy,
    check_new_folder,
    encode_items,
    feature_columns,
    open_collection,
    origin,
    parsed_labels,
    print_answer,
)

FieldOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="NAME=TYPE",
        help="Declare a metadata field to filter by, such as year=int; types are int, float, str and bool. May be "
        "repeated.",
    ),
]
FieldArguments = Annotated[
    list[str],
    typer.Argument(metavar="NAME=TYPE...", help="Fields, such as year=int; types are int, float, str and bool."),
]
NewLabel = Annotated[
    str | None,
    typer.Option(
        "--set",
        metavar="LABEL",
        help="The new label; a whole number is stored as a number, unless other labels are text.",
    ),
]
Clear = Annotated[bool, typer.Option("--clear", help="Remove the labels.")]
Compact = Annotated[bool, typer.Option("--compact", help="Shrink the file afterward.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A .parquet or .jsonl file to write.")]
_EXIT_DAMAGED = 1
_SHOWN = 10  # ids in a sentence


def build(
    folder: Folder,
    model: Model,
    input: Input,
    labels: Labels = None,
    no_labels: NoLabels = False,
    vectors: Vectors = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    decimal: Decimal = None,
    keep: Keep = None,
    metadata: KeptFeatures = None,
    field: FieldOptions = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection from a model and a file of vectors.

    Columns that the model does not use become metadata, and those that --metadata names.
    """
    from ...collection.collection import atomic_collection
    from ...collection.importing.building import add_items

    check_new_folder(folder)
    fields = parsed_fields(field)
    hasher = load_model(model)
    columns = row_columns(
        labels, no_labels, vectors=vectors, ids=ids, references=references, drop=drop, decimal=decimal
    )
    table = keep_features(read_rows(input, columns, hasher, as_items=True), metadata)
    codes = encode_items(hasher, table, progress)
    given: Any = keep  # which Collection.create checks
    with atomic_collection(folder, hasher, vectors=given, fields=fields) as collection, busy("storing", progress):
        about = {"labels": table.y, **about_items(table)}
        add_items(collection, table.X, codes=codes, allow_duplicates=True, **about)
        answer: dict[str, Any] = {"folder": str(folder), "items": len(collection), "bits": collection.n_bits}
    answer |= {"vectors": feature_columns(table), "labels": table.label_column, "kept": keep}
    text = f"{counted(answer['items'], 'item')} of {counted(answer['bits'], 'bit')} in {folder}{origin(table)}"
    if table.feature_names and not table.references and not any(table.metadata or ()):
        text += "\nHits will show ids and labels alone. To see columns, too, name them with --metadata."
    print_answer(answer, text, as_json)


def declare(folder: Folder, fields: FieldArguments, progress: Progress = None, as_json: AsJson = False) -> None:
    """Declare metadata fields, so that filters on them are fast."""
    with open_collection(folder) as collection, busy("reading metadata", progress):
        collection.declare_fields(parsed_fields(fields))
        declared = collection.fields
    text = ", ".join(f"{name} ({kind})" for name, kind in declared.items())
    print_answer({"fields": declared}, f"declared fields: {text}", as_json)


def parsed_fields(texts: list[str] | None) -> dict[str, str]:
    """Return names and types from the command line."""
    fields = {}
    for text in texts or []:
        name, separator, kind = text.rpartition("=")
        if not separator:
            raise ValueError(f"The field is {text!r}; give its name and its type, such as year=int.")
        fields[name] = kind
    return fields


def label(folder: Folder, ids: ItemIds, new: NewLabel = None, clear: Clear = False, as_json: AsJson = False) -> None:
    """Set or clear the label of items.

    Codes that depend on the label change with it.
    """
    if (new is None) == (not clear):
        raise ValueError("Give either --set LABEL or --clear.")
    with open_collection(folder) as collection:
        known = parsed_labels(None if new is None else [new], collection.label_kind)
        items = collection.set_labels(ids, None if known is None else known * len(ids))
    sources = [item.code_from for item in items]
    answer = {
        "changed": len(items),
        "label": items[0].label if items else None,
        "codes_from_label": sources.count("label"),
        "codes_from_vector": sources.count("vector"),
    }
    text = f"{counted(len(items), 'item')} changed; codes from the label: {sources.count('label'):,}, from the vector: "
    print_answer(answer, f"{text}{sources.count('vector'):,}", as_json)


def remove(folder: Folder, ids: ItemIds, compact: Compact = False, as_json: AsJson = False) -> None:
    """Remove items by id, all of them or none."""
    with open_collection(folder) as collection:
        removed = collection.remove(ids).tolist()
        if compact:
            collection.compact()
        answer = {"removed": len(removed), "ids": removed, "items": len(collection)}
    shown = ", ".join(map(str, removed[:_SHOWN])) + (", ..." if len(removed) > _SHOWN else "")
    text = f"{counted(len(removed), 'item')} removed ({shown}), {answer['items']:,} left"
    print_answer(answer, text, as_json)


def verify(folder: Folder, progress: Progress = None, as_json: AsJson = False) -> None:
    """Check every page and every item of a collection.

    The exit code is 1 if it is damaged.
    """
    from ...exceptions import CollectionFormatError

    try:
        with open_collection(folder, read_only=True) as collection, busy("verifying", progress):
            answer: dict[str, Any] = {"folder": str(folder), "items": collection.verify(), "bits": collection.n_bits}
    except CollectionFormatError as error:
        if os.environ.get("STARSHL_TRACEBACK"):
            raise
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(_EXIT_DAMAGED) from error
    print_answer(answer, f"{counted(answer['items'], 'item')} of {counted(answer['bits'], 'bit')}, all intact", as_json)


def rebuild(folder: Folder, progress: Progress = None, as_json: AsJson = False) -> None:
    """Make a damaged log of changes anew.

    The log tells readers what to read again. Items stay as they are; if one is damaged, nothing changes.
    """
    from ...collection.collection import Collection

    with busy("rebuilding", progress):
        answer: dict[str, Any] = {"folder": str(folder), "items": Collection.rebuild(folder)}
    print_answer(answer, f"The log of changes to {counted(answer['items'], 'item')} was made anew", as_json)


def export(folder: Folder, output: Output, progress: Progress = None, as_json: AsJson = False) -> None:
    """Write all items to a file that other programs can read.

    Codes are packed bytes.
    """
    files = folder.iterdir() if folder.is_dir() else ()
    check_output(output, files, suffixes=(".parquet", ".jsonl"))
    with open_collection(folder, read_only=True) as collection, busy("writing", progress):
        n_items = collection.export(output)
    text = f"{counted(n_items, 'item')} written to {output}"
    print_answer({"file": str(output), "items": n_items}, text, as_json)
