"""What is stored with an item beside its code: checked on the way in, and again on the way out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._metadata import json_text
from ..exceptions import CollectionFormatError
from .store import Row

__all__ = ["metadata_of", "metadata_texts", "reference_texts"]


def metadata_texts(metadata: Sequence[Mapping[str, Any]] | None, n_items: int) -> list[str]:
    """Return one dictionary per item as JSON."""
    if metadata is None:
        return ["{}"] * n_items
    if len(metadata) != n_items:
        raise ValueError(f"metadata has {len(metadata)} dictionaries for {n_items} items; give one per item.")
    return [json_text(entry, f"metadata[{number}]", ascii_only=True) for number, entry in enumerate(metadata)]


def reference_texts(references: Iterable[str | None] | None, n_items: int) -> list[str | None]:
    """Return one reference per item, or None."""
    if references is None:
        return [None] * n_items
    references = list(references)
    if len(references) != n_items or not all(isinstance(reference, str | None) for reference in references):
        raise ValueError(f"references must be {n_items} texts or None, one per item.")
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
