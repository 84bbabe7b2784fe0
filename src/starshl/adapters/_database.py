"""What the databases share: metadata and filters are checked before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..index.base import check_ids

__all__ = ["check_filter_ids", "check_known", "check_metadata", "json_text"]


def check_metadata(metadata: Sequence[Mapping[str, Any]] | None, n_codes: int) -> list[dict[str, Any]]:
    """Return one dictionary a code, or say which one cannot be stored."""
    if metadata is None:
        return [{}] * n_codes
    metadata = list(metadata)
    if len(metadata) != n_codes:
        raise ValueError(f"There are {len(metadata)} dictionaries of metadata for {n_codes} codes.")
    for number, entry in enumerate(metadata):
        json_text(entry, f"metadata[{number}]")
    return [dict(entry) for entry in metadata]


def json_text(entry: Mapping[str, Any], role: str) -> str:
    """Return a dictionary as JSON, numbers of NumPy included; ``role`` names it in errors."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"{role} is a {type(entry).__name__}; it must be a dictionary, such as {{'label': 3}}.")
    unnamed = [key for key in entry if not isinstance(key, str)]
    if unnamed:
        raise ValueError(f"{role} has the key {unnamed[0]!r}; keys must be strings.")
    try:
        text = json.dumps(dict(entry), allow_nan=False, ensure_ascii=False, default=_plain_number)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{role} cannot be stored ({error}). Use strings, finite numbers, booleans, None, and lists and "
            "dictionaries of these."
        ) from error
    return text


def check_filter_ids(where) -> list[int]:
    """Return the ids of a filter, each once."""
    given = np.asarray(where)
    if callable(where) or given.dtype == np.bool_:
        kind = "function" if callable(where) else "mask"
        raise ValueError(f"A {kind} cannot filter in the database; give ids or a dictionary of metadata.")
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise ValueError(
            f"The filter has dtype {given.dtype} and shape {given.shape}; it must be an array of ids or a "
            "dictionary of metadata."
        )
    return check_ids(np.unique(given)).tolist()


def check_known(ids: list[int], known) -> None:
    """Raise KeyError for the first id that is not among the known ones."""
    missing = [item for item in ids if item not in known]
    if missing:
        raise KeyError(f"The id {missing[0]} is not in the index.")


def _plain_number(value):
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not JSON")
