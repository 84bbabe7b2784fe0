"""Items that others may remove at any moment: those that are still there, or an error that says which is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ..collection import Collection, Item
from .errors import UnknownError

__all__ = ["present_items", "unknown_ids"]


def present_items(collection: Collection, ids: Sequence[int] | np.ndarray) -> list[Item]:
    """Return items by id, without those that were removed since their ids were read."""
    try:
        return collection.get(ids)
    except KeyError:
        # Those that are left can be read one by one.
        return [item for number in np.asarray(ids).tolist() for item in _present(collection, number)]


@contextmanager
def unknown_ids() -> Iterator[None]:
    """Raise the KeyError of an unknown id as an error of the service."""
    try:
        yield
    except KeyError as error:
        raise UnknownError(str(error.args[0])) from error


def _present(collection: Collection, item: int) -> list[Item]:
    try:
        return collection.get([item])
    except KeyError:
        return []
