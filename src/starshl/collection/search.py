"""Searches of one state of a collection: queries in, items out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import SamplesLike
from ..codes import BinaryCodes
from ..index.base import check_ids
from .entries import metadata_of
from .filters import compile_filter
from .snapshot import Snapshot
from .store import Row, Store

__all__ = ["Hit", "Queries", "search_nearest", "search_within"]

_FIELDS_SHOWN = 20


class Hit(NamedTuple):
    """An item near a query, and its Hamming distance to it."""

    id: int
    distance: int
    reference: str | None
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Queries:
    """Codes to search for, with the real-valued scores behind them if they are to order equal distances."""

    codes: BinaryCodes
    scores: np.ndarray | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, X: SamplesLike | None, items: ArrayLike | None, *, with_scores: bool) -> Self:
        """Encode samples, or take the stored codes of items."""
        if (X is None) == (items is None):
            raise ValueError("Give either X or items: rows to search for, or ids of stored items.")
        if with_scores and X is None:
            raise ValueError("by_scores needs X: a stored item has a code, but no scores.")
        if items is not None:
            return cls(snapshot.index.reconstruct(items))
        if not with_scores:
            return cls(snapshot.hasher.encode(X))
        scores = snapshot.hasher.decision_function(X)
        return cls(BinaryCodes.from_scores(scores), scores)


def search_nearest(
    snapshot: Snapshot,
    store: Store,
    queries: Queries,
    k: int,
    where: Mapping[str, Any] | None,
    among: ArrayLike | None,
) -> list[list[Hit]]:
    """Return the k nearest items of each query, or all of them if there are fewer."""
    allowed = _allowed(snapshot, store, where, among)
    nearest = snapshot.index.search(queries.codes, k, among=allowed, scores=queries.scores)
    return _hits(store, zip(nearest.distances, nearest.ids, strict=True))


def search_within(
    snapshot: Snapshot,
    store: Store,
    queries: Queries,
    radius: int,
    where: Mapping[str, Any] | None,
    among: ArrayLike | None,
) -> list[list[Hit]]:
    """Return all items within ``radius`` of each query."""
    allowed = _allowed(snapshot, store, where, among)
    near = snapshot.index.search_radius(queries.codes, radius, among=allowed)
    return _hits(store, (near.of(query) for query in range(len(queries.codes))))


def _allowed(
    snapshot: Snapshot, store: Store, where: Mapping[str, Any] | None, among: ArrayLike | None
) -> np.ndarray | None:
    """Return the ids that pass both filters; None if there is no filter."""
    allowed = None
    if among is not None:
        allowed = check_ids(np.unique(np.asarray(among)))
    if where is not None:
        matching = np.array(store.matching(*compile_filter(where)), np.int64)
        if not len(matching) and len(snapshot.index):
            _check_fields(store, where)
        allowed = matching if allowed is None else np.intersect1d(allowed, matching)
    return allowed


def _check_fields(store: Store, where: Mapping[str, Any]) -> None:
    """Refuse a filter on a name that no item has: it is usually a typo."""
    known = sorted({name for row in store.all_rows() for name in metadata_of(row)})
    for field in where:
        if field in known:
            continue
        close = get_close_matches(field, known, n=1)
        shown = ", ".join(known[:_FIELDS_SHOWN]) + (", ..." if len(known) > _FIELDS_SHOWN else "")
        raise ValueError(
            f"The filter asks for {field!r}, and no item has metadata of that name."
            + (f" Did you mean {close[0]!r}?" if close else "")
            + (f" There are: {shown}." if known else " The items have no metadata.")
        )


def _hits(store: Store, neighbors: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[list[Hit]]:
    """Return what is stored of the neighbors, given as arrays of distances and ids."""
    pairs = [(distances.tolist(), ids.tolist()) for distances, ids in neighbors]
    rows = {row.id: row for row in store.rows(sorted({item for _, ids in pairs for item in ids}))}
    return [[_hit(rows[item], distance) for distance, item in zip(*pair, strict=True)] for pair in pairs]


def _hit(row: Row, distance: int) -> Hit:
    return Hit(row.id, distance, row.reference, metadata_of(row))
