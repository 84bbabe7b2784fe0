"""What is stored with an item besides its code: references to store, and rows that were read, as users see them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..exceptions import CollectionFormatError
from .labels import label_of
from .rows import Row

__all__ = ["Item", "item_of", "metadata_of", "reference_texts"]


class Item(NamedTuple):
    """What a collection keeps of an item besides its code and its vector.

    ``code_from`` says what the code follows from: "label" or "vector". ``encoder`` names the model that encoded the
    vector, None if that is not known.
    """

    id: int
    reference: str | None
    metadata: dict[str, Any]
    label: str | int | bool | None
    code_from: str
    encoder: str | None


def reference_texts(references: Iterable[str | None] | None, n_items: int) -> list[str | None]:
    """Return one reference per item, or None."""
    if references is None:
        return [None] * n_items
    references = list(references)
    if len(references) != n_items or not all(isinstance(reference, str | None) for reference in references):
        raise ValueError(f"references must hold {n_items} strings or None, one per item.")
    return references


def metadata_of(row: Row) -> dict[str, Any]:
    """Return the metadata of a row whose checksum is right; a crafted file may hold anything there."""
    try:
        metadata = json.loads(row.metadata)
    except (ValueError, RecursionError) as error:
        raise CollectionFormatError(
            f"The metadata of item {row.id} is not JSON that can be read ({error}). Restore the collection from a copy."
        ) from error
    if not isinstance(metadata, dict):
        raise CollectionFormatError(
            f"The metadata of item {row.id} is a {type(metadata).__name__}, not a dictionary. Restore the collection "
            "from a copy."
        )
    return metadata


def item_of(row: Row) -> Item:
    """Return what users see of a row."""
    return Item(row.id, row.reference, metadata_of(row), label_of(row), row.code_from, row.encoder)
