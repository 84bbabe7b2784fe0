"""Features that become metadata, too, so that people can see them and filter by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .reading import Table
from .values import as_metadata

__all__ = ["with_kept_features"]

_SHOWN = 20  # names in a message
_WHOLE = 2.0**53  # up to which a float holds every whole number


def with_kept_features(table: Table, names: Sequence[str]) -> Table:
    """Return a table whose metadata have the values of these features, too, before those of other columns.

    A column of whole numbers becomes integers, and a missing value None. Names of columns that are metadata already
    change nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.tables import Table, with_kept_features
    >>> table = Table(np.array([[70.0, 1.5], [29.0, np.nan]]), feature_names=("age", "size"))
    >>> with_kept_features(table, ["age", "size"]).metadata
    [{'age': 70, 'size': 1.5}, {'age': 29, 'size': None}]
    """
    features = table.feature_names or ()
    rows = table.metadata or [{} for _ in range(table.X.shape[0])]
    others = set(rows[0]) if rows else set()
    unknown = [name for name in names if name not in features and name not in others]
    if unknown:
        known = ", ".join(features[:_SHOWN]) + (", ..." if len(features) > _SHOWN else "")
        which = f"Features come from {known}; name some of these." if features else "Its features have no names."
        raise ValueError(f"{unknown[0]!r} is no column of the table that can become metadata. {which}")
    kept = {name: _values(table, features.index(name)) for name in names if name in features}
    if not kept:
        return table
    values = zip(*kept.values(), strict=True)
    metadata = [dict(zip(kept, cells, strict=True)) | row for cells, row in zip(values, rows, strict=True)]
    return replace(table, metadata=metadata)


def _values(table: Table, position: int) -> list[Any]:
    column = table.X[:, [position]]
    cells = (column.toarray() if hasattr(column, "toarray") else np.asarray(column))[:, 0]
    values = as_metadata(cells, table.feature_names[position] if table.feature_names else str(position))
    if all(value is None or _is_whole(value) for value in values):
        return [None if value is None else int(value) for value in values]
    return values


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) <= _WHOLE
