"""Which columns of a table are features, which one holds labels, and what a label in text means."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

__all__ = ["choose_columns", "labels_from_text"]

_UNLABELED = ("", "-1", "-1.0", "nan")


def choose_columns(
    names: Sequence[str] | None,
    n_columns: int,
    labels: str | None,
    drop: Sequence[str],
    keep: Sequence[str] | None,
    source: str,
) -> tuple[list[int], int | None]:
    """Return the positions of the features and that of the labels; columns go by name, or by number without names."""
    label = None if labels is None else _position(labels, names, n_columns, source)
    dropped = {_position(name, names, n_columns, source) for name in drop}
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"{source!r} has two columns called {twice!r}; every column needs a name of its own.")
    if names is not None and keep is not None:
        missing = [name for name in keep if name not in names]
        if missing:
            shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
            raise ValueError(
                f"{source!r} lacks {len(missing)} of the {len(keep)} columns that the model was fitted on: {shown}. "
                "Give rows with the same columns, in any order."
            )
        return [names.index(name) for name in keep], label
    features = [column for column in range(n_columns) if column != label and column not in dropped]
    if not features:
        raise ValueError(f"No column of {source!r} is left for features. Name fewer columns in --labels and --drop.")
    return features, label


def _position(column: str, names: Sequence[str] | None, n_columns: int, source: str) -> int:
    if names is not None:
        if column in names:
            return list(names).index(column)
        near = get_close_matches(column, names, n=3, cutoff=0.5) or list(names[:5])
        raise ValueError(
            f"{source!r} has no column {column!r}, nor is there such a file; near are {', '.join(map(repr, near))}."
        )
    try:
        position = int(column)
    except ValueError:
        position = n_columns
    if not -n_columns <= position < n_columns:
        raise ValueError(
            f"{source!r} has {n_columns} columns without names, so {column!r} must be a number from 0 to "
            f"{n_columns - 1} (-1 is the last) or an existing file."
        )
    return position % n_columns


def labels_from_text(cells: np.ndarray) -> np.ndarray:
    """Return integers with -1 for unlabeled rows if all labels are integers, else text with None for them.

    An empty cell, -1 and nan mean unlabeled.
    """
    unlabeled = np.array([cell.lower() in _UNLABELED for cell in cells], dtype=bool)
    try:
        # A column of integers with gaps is often written as 1.0, 2.0, ...
        numbers = {cell: float(cell) for cell in set(cells[~unlabeled].tolist())}
    except ValueError:
        numbers = None
    if numbers is None or not all(number.is_integer() for number in numbers.values()):
        return np.where(unlabeled, None, cells)
    return np.array([-1 if skip else int(numbers[cell]) for cell, skip in zip(cells, unlabeled, strict=True)])
