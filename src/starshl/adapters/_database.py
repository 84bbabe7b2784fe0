"""What the databases share: metadata and filters are checked before anything is sent."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np

from .._metadata import check_metadata, json_text
from ..codes import BinaryCodes
from ..index import HammingIndex
from ..index.base import check_ids

__all__ = ["DatabaseIndex", "StoredItems", "check_filter_ids", "check_known", "check_metadata", "items_of", "json_text"]


class StoredItems(Protocol):
    """What is asked of a :class:`starshl.collection.Collection`, which imports adapters and cannot be imported here."""

    @property
    def n_bits(self) -> int: ...

    def rows(self) -> Sequence[Any]:
        """Return rows with ``id``, ``code`` (packed), ``reference`` and ``metadata`` (JSON text)."""


class DatabaseIndex(HammingIndex):
    """An index that a database keeps."""

    @classmethod
    def from_collection(cls, uri: str, collection: StoredItems, **options) -> Self:
        """Copy a collection to the database: codes, ids, and metadata with the references (see :func:`items_of`).

        ``uri`` and ``options`` are those of the class. Ids that are in the database already are an error.
        """
        codes, ids, metadata = items_of(collection)
        index = cls(uri, collection.n_bits, **options)
        try:
            index.add(codes, ids, metadata)
        except BaseException:
            index.close()
            raise
        return index

    @abstractmethod
    def add(self, codes: BinaryCodes, ids=None, metadata: Sequence[Mapping[str, Any]] | None = None) -> np.ndarray:
        """Add codes under new ids, with a dictionary of metadata each; return the ids."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


def items_of(collection: StoredItems) -> tuple[BinaryCodes, np.ndarray, list[dict[str, Any]]]:
    """Return codes, ids and metadata of all items, from one state of the collection.

    An item's reference becomes its metadata ``reference``, unless the metadata have an entry of that name.
    """
    rows, n_bits = collection.rows(), collection.n_bits
    packed = np.frombuffer(b"".join(row.code for row in rows), np.uint8).reshape(len(rows), -(-n_bits // 8))
    references = [{} if row.reference is None else {"reference": row.reference} for row in rows]
    metadata = [reference | json.loads(row.metadata) for reference, row in zip(references, rows, strict=True)]
    return BinaryCodes(packed, n_bits), np.array([row.id for row in rows], np.int64), metadata


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
