"""``starshl index build``: a new collection from a model and a file of vectors."""

from __future__ import annotations

from typing import Any

from ..._words import counted
from ..kept_features import KeptFeatures, keep_features
from ..options import (
    AsJson,
    Decimal,
    Drop,
    Ids,
    Input,
    Labels,
    Model,
    NoLabels,
    Progress,
    References,
    Vectors,
    load_model,
    split_names,
)
from ..rows import RowOptions, read_rows
from .common import (
    Folder,
    Keep,
    busy,
    check_new_folder,
    encode_items,
    feature_columns,
    origin,
    print_answer,
    store_items,
)
from .declare import FieldOptions, parsed_fields

__all__ = ["build"]


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
    from ...collection.filling import appearing_collection

    check_new_folder(folder)
    fields = parsed_fields(field)
    hasher = load_model(model)
    options = RowOptions(labels, no_labels, vectors, ids, references, split_names(drop), decimal=decimal)
    table = keep_features(read_rows(input, options, hasher, as_items=True), metadata)
    codes = encode_items(hasher, table, progress)
    with appearing_collection(folder, hasher, vectors=keep, fields=fields) as collection, busy("storing", progress):
        store_items(collection, table, codes)
        answer: dict[str, Any] = {"folder": str(folder), "items": len(collection), "bits": collection.n_bits}
    answer |= {"vectors": feature_columns(table), "labels": table.label_column, "kept": keep}
    text = f"{counted(answer['items'], 'item')} of {counted(answer['bits'], 'bit')} in {folder}{origin(table)}"
    if table.feature_names and not table.references and not any(table.metadata or ()):
        text += "\nHits will show ids and labels alone. To see columns, too, name them with --metadata."
    print_answer(answer, text, as_json)
