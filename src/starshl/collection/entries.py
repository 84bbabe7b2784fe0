"""What a user says of items beside their vectors, checked before anything is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

__all__ = ["metadata_texts", "reference_texts"]

# In JSON text: a backslash that is not itself escaped begins the escape of a NUL character.
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def metadata_texts(metadata, n_items: int) -> list[str]:
    """Return one dictionary an item as JSON."""
    if metadata is None:
        return ["{}"] * n_items
    if len(metadata) != n_items:
        raise ValueError(f"There are {len(metadata)} dictionaries of metadata for {n_items} items.")
    try:
        if not all(isinstance(entry, Mapping) for entry in metadata):
            raise TypeError("an entry is not a dictionary")
        texts = [json.dumps(dict(entry), allow_nan=False, sort_keys=True) for entry in metadata]
        if any(_ESCAPED_NUL.search(text) for text in texts):
            raise ValueError("a name or a text in it has a NUL character, which ends a text for SQLite")
        return texts
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The metadata cannot be stored ({error}). Give one dictionary an item, of what JSON can hold, without NUL."
        ) from error


def reference_texts(references, n_items: int) -> list[str | None]:
    """Return one reference an item, or None."""
    if references is None:
        return [None] * n_items
    references = list(references)
    if len(references) != n_items or not all(isinstance(ref, str | None) for ref in references):
        raise ValueError(f"references must be {n_items} texts or None, one an item.")
    return references
