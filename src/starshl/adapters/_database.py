"""What the databases share: collections to copy, metadata to check, and answers to put into arrays."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection as Container
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np

from ..codes import BinaryCodes, n_bytes
from ..index import HammingIndex, Neighbors, RadiusNeighbors

__all__ = [
    "DatabaseIndex",
    "StoredItems",
    "check_known",
    "check_metadata",
    "items_of",
    "json_text",
    "to_neighbors",
    "to_radius_neighbors",
]

#: The neighbors of one query, as (distance, id), in order.
Ranking = list[tuple[int, int]]


class StoredItems(Protocol):
    """What is asked of a :class:`starshl.collection.Collection`, which imports adapters and cannot be imported here."""

    @property
    def n_bits(self) -> int: ...

    def rows(self) -> Sequence[Any]:
        """Return rows with ``id``, ``code`` (packed), ``reference`` and ``metadata`` (JSON text)."""


class DatabaseIndex(HammingIndex):
    """An index that a database keeps."""

    supports = frozenset({"metadata", "reconstruct", "remove"})

    @classmethod
    def from_collection(cls, uri: str, collection: StoredItems, **options: Any) -> Self:
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
    def close(self) -> None:
        """Close the connection."""


def items_of(collection: StoredItems) -> tuple[BinaryCodes, np.ndarray, list[dict[str, Any]]]:
    """Return codes, ids and metadata of all items, from one state of the collection.

    An item's reference becomes its metadata ``reference``, unless the metadata have an entry of that name.
    """
    rows, n_bits = collection.rows(), collection.n_bits
    packed = np.frombuffer(b"".join(row.code for row in rows), np.uint8).reshape(len(rows), n_bytes(n_bits))
    references = [{} if row.reference is None else {"reference": row.reference} for row in rows]
    metadata = [reference | json.loads(row.metadata) for reference, row in zip(references, rows, strict=True)]
    return BinaryCodes(packed, n_bits), np.array([row.id for row in rows], np.int64), metadata


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


def check_metadata(metadata: Sequence[Mapping[str, Any]] | None, n_codes: int) -> list[dict[str, Any]]:
    """Return one dictionary per code, or say which one cannot be stored."""
    if metadata is None:
        return [{}] * n_codes
    metadata = list(metadata)
    if len(metadata) != n_codes:
        raise ValueError(f"There are {len(metadata)} dictionaries of metadata for {n_codes} codes; give one per code.")
    for number, entry in enumerate(metadata):
        json_text(entry, f"metadata[{number}]")
    return [dict(entry) for entry in metadata]


def json_text(entry: Mapping[str, Any], role: str) -> str:
    """Return a dictionary as JSON, NumPy numbers included; ``role`` names it in errors."""
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


def check_known(ids: list[int], known: Container[int]) -> None:
    """Raise KeyError for the first id that is not among the known ones."""
    missing = [item for item in ids if item not in known]
    if missing:
        raise KeyError(f"The id {missing[0]} is not in the index.")


def _plain_number(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not JSON")
