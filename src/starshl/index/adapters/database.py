"""What the database adapters share: copying collections, and putting answers into arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection as Container
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from ..._common.words import counted
from ...codes.binary import BinaryCodes
from ...exceptions import UnknownIdError
from ..base import HammingIndex, Neighbors, RadiusNeighbors

#: The neighbors of one query, as (distance, id), in order.
Ranking = list[tuple[int, int]]


class StoredItems(Protocol):
    """What adapters need from a :class:`starshl.Collection`, which is above them and not imported here."""

    @property
    def hasher(self) -> Any: ...

    def codes_and_items(self) -> tuple[BinaryCodes, Sequence[Any]]:
        """Return codes, and items with ``id``, ``label``, ``metadata`` and ``reference``, in the same order."""


class DatabaseIndex(HammingIndex):
    """An index that a database keeps."""

    supports = frozenset({"metadata", "reconstruct", "remove"})

    @abstractmethod
    def __init__(self, uri: str, n_bits: int, **options: Any) -> None:
        """Open the database at ``uri``; create what it needs to hold codes of ``n_bits``."""

    @classmethod
    def from_collection(cls, uri: str, collection: StoredItems, **options: Any) -> Self:
        """Copy a collection to the database: codes, ids, and metadata with the references (see :func:`items_of`).

        Search it with ``collection.hasher.hamming_codes(collection.hasher.encode_queries(X))``.
        ``uri`` and ``options`` are those of the class. Ids that are in the database already are an error.
        """
        codes, ids, metadata = items_of(collection)
        index = cls(uri, codes.n_bits, **options)
        try:
            index.add(codes, ids, metadata)
        except BaseException:
            index.close()
            raise
        return index

    def __repr__(self) -> str:
        return f"{type(self).__name__}(codes of {counted(self.n_bits, 'bit')})"  # counting items asks the database

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


def items_of(collection: StoredItems) -> tuple[BinaryCodes, np.ndarray, list[dict[str, Any]]]:
    """Return codes that are compared bit by bit, ids and metadata of all items, from one state of the collection.

    The codes are those of ``hasher.hamming_codes``: hybrid ones become longer. An item's reference and label become its
    metadata ``reference`` and ``label``, unless the metadata has entries of these names.
    """
    codes, items = collection.codes_and_items()
    metadata = [_fields_of(item) | item.metadata for item in items]
    return collection.hasher.hamming_codes(codes), np.array([item.id for item in items], np.int64), metadata


def _fields_of(item: Any) -> dict[str, Any]:
    fields = {} if item.reference is None else {"reference": item.reference}
    return fields if item.label is None else {**fields, "label": item.label}


def to_neighbors(rankings: list[Ranking]) -> Neighbors:
    """Return rankings as arrays; a filter is the same for all queries, so all rankings have the same length."""
    width = min((len(ranking) for ranking in rankings), default=0)
    table = np.array([ranking[:width] for ranking in rankings], np.int64).reshape(len(rankings), width, 2)
    return Neighbors(table[:, :, 0].astype(np.int32), table[:, :, 1].copy())


def to_radius_neighbors(rankings: list[Ranking]) -> RadiusNeighbors:
    """Return rankings of any length as arrays."""
    starts = np.concatenate([[0], np.cumsum([len(ranking) for ranking in rankings], dtype=np.int64)])
    table = np.array([pair for ranking in rankings for pair in ranking], np.int64).reshape(-1, 2)
    return RadiusNeighbors(starts, table[:, 0].astype(np.int32), table[:, 1].copy())


def check_known(ids: list[int], known: Container[int]) -> None:
    """Raise KeyError for the first id that is not among the known ones."""
    missing = [item for item in ids if item not in known]
    if missing:
        raise UnknownIdError(missing[0], "in the index")
