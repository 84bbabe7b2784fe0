"""Items for a collection that exists, without those that it has already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import LabelsLike
from .._validation import as_label_array, check_labels
from ..codes import BinaryCodes
from ..collection import Collection

__all__ = ["Added", "add_new"]


@dataclass(frozen=True, slots=True)
class Added:
    """How many items were stored, how many of them with a label, and how many were there already and were not.

    ``look_present`` says that all stored items look like some that were there, where it cannot be known for sure.
    """

    n_stored: int
    n_labeled: int
    n_present: int = 0
    look_present: bool = False


def add_new(
    collection: Collection,
    X: Any,
    *,
    labels: LabelsLike = None,
    codes: BinaryCodes | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    previews: Sequence[bytes | None] | None = None,
    again: bool = False,
    sure: bool = False,
) -> Added:
    """Store items, with the next free ids, that :meth:`starshl.Collection.find_same` does not find; ``again``, all.

    If neither vectors nor previews are kept, items that look the same may differ. Unless the caller is ``sure`` that
    they do not, these are stored, too.
    """
    columns: dict[str, Any] = {"metadata": metadata, "references": references, "previews": previews}
    known = None if labels is None else as_label_array(labels)
    n_items = X.shape[0] if hasattr(X, "shape") else len(X)
    is_new = np.ones(n_items, np.bool_)
    look_present = False
    if not again:
        same = collection.find_same(X, codes=codes, **columns)
        found = np.array([item is not None for item in same], np.bool_)
        if sure or collection.keeps is not None or previews is not None:
            is_new = ~found
        else:
            look_present = bool(found.all())
    chosen = np.flatnonzero(is_new)
    given: dict[str, Any] = {
        name: None if column is None else [column[row] for row in chosen] for name, column in columns.items()
    }
    given["labels"] = None if known is None else known[chosen]
    if codes is not None:
        given |= {"codes": codes[chosen], "encoder": collection.encoder}
    if len(chosen):
        wanted = X if len(chosen) == n_items else _rows(X, chosen)
        collection.add(None if codes is not None and collection.keeps is None else wanted, **given)
    n_labeled = int(check_labels(given["labels"], len(chosen)).labeled.sum()) if len(chosen) else 0
    return Added(len(chosen), n_labeled, n_items - len(chosen), look_present)


def _rows(X: Any, chosen: np.ndarray) -> Any:
    return X[chosen] if hasattr(X, "shape") else [X[row] for row in chosen]
