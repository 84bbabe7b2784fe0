"""Refit: the hasher of a collection, fitted anew with the same settings to the labels that items have now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._common.lazy import library
from .labeled_vectors import labeled_vectors

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher
    from .collection import Collection

sklearn_base = library("sklearn.base")


def refitted_hasher(collection: Collection) -> BaseHasher:
    """Return a hasher with the settings of the present one, fitted on the kept vectors and the labels of all items."""
    _, rows, labels = labeled_vectors(collection, "there is nothing to fit its hasher on")
    if not len(rows):
        raise ValueError("The collection is empty, so there is nothing to fit a hasher on. Add items first.")
    hasher: BaseHasher = sklearn_base.clone(collection.hasher.without_steps())
    return hasher.fit(rows, None if all(label is None for label in labels) else labels)
