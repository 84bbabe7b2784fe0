"""Searches of one state of a collection: queries in, items out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from .._types import SamplesLike
from .._validation import check_integer
from ..base import BaseHasher
from ..features import inner_hasher
from ..models.rejection import check_reject
from .entries import metadata_of
from .filtering import Filters
from .labels import label_of
from .prepared_rows import kept_rows, vector_hasher, without_steps
from .quantization import called_with_vectors
from .rescoring import Rescoring, RescoringOptions, rescored_neighbors
from .snapshot import Snapshot
from .store import Row, Store

__all__ = [
    "Hit",
    "Queries",
    "check_has_scores",
    "check_rejecting",
    "hits_without_distance",
    "id_of",
    "novelty_of",
    "search_nearest",
    "search_within",
]


class Hit(NamedTuple):
    """An item near a query.

    ``distance`` is the Hamming distance of the codes, or that of the index of a :class:`starshl.HybridHasher`, in which
    another class counts. ``rescored`` is the distance of the vectors if these decided the order, and ``code_from`` says
    what the item's code follows from: "label" or "vector".
    """

    id: int
    distance: float
    reference: str | None
    metadata: dict[str, Any]
    label: str | int | bool | None = None
    code_from: str = "vector"
    rescored: float | None = None


def id_of(hit: Hit | int) -> int:
    """Return the id of a hit, or the id itself."""
    if isinstance(hit, Hit):
        return hit.id
    if not isinstance(hit, Integral):
        raise TypeError(
            f"hits holds a {type(hit).__name__}; it must hold hits or ids of one query. search returns one list per "
            "query: pass one of them, such as search(X[:1])[0]."
        )
    return int(hit)


@dataclass(frozen=True, slots=True)
class Queries:
    """Codes to search for, with the real-valued scores behind them if these are to order items."""

    codes: Any  # what the index takes: BinaryCodes or VectorQueries
    scores: np.ndarray | None = None
    rescoring: Rescoring | None = None

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        X: SamplesLike | None,
        items: ArrayLike | None,
        *,
        with_scores: bool,
    ) -> Self:
        """Encode samples, or take the stored codes of items."""
        if (X is None) == (items is None):
            raise ValueError("Give either X or items: rows to search for, or ids of stored items.")
        if with_scores:
            check_has_scores(X)
        if items is not None:
            return cls(snapshot.index.reconstruct(items))
        hasher = snapshot.hasher if X is None else vector_hasher(snapshot.hasher, X)
        if not with_scores:
            return cls(getattr(hasher, "encode_queries", hasher.encode)(X))
        scores = hasher.decision_function(X)
        return cls(snapshot.hasher.codes_of_scores(scores), scores)

    @classmethod
    def to_rescore(
        cls,
        snapshot: Snapshot,
        store: Store,
        X: SamplesLike | None,
        items: ArrayLike | None,
        options: RescoringOptions,
    ) -> Self:
        """Take vectors along, and scores, which choose the candidates; stored items have both.

        An index that compares vectors itself knows no scores. Its own distances choose the candidates.
        """
        n_columns = snapshot.require_vectors().layout.n_columns
        by_scores = "scores" in snapshot.index.supports
        found = cls.of(snapshot, X, items, with_scores=X is not None and by_scores)
        if X is not None:
            return replace(found, rescoring=options.checked(snapshot, kept_rows(snapshot.hasher, X, n_columns)))
        vectors = snapshot.vectors_of(store, np.asarray(items).tolist())
        bare = without_steps(snapshot.hasher)
        scores = called_with_vectors(bare.decision_function, vectors) if by_scores else None
        return cls(found.codes, scores, options.checked(snapshot, vectors))


def check_has_scores(X: SamplesLike | None) -> None:
    """Refuse a search by scores for stored items, whether or not rescoring would leave the scores out."""
    if X is None:
        raise ValueError("by_scores needs X: a stored item has a code, but no scores.")


def check_rejecting(reject: object, X: SamplesLike | None) -> float:
    """Return the share of known queries that may be rejected, which needs queries that are rows."""
    share = check_reject(reject)
    if X is None:
        raise ValueError("reject needs X: only rows can be compared with the training rows of the hasher.")
    return share


def search_nearest(snapshot: Snapshot, store: Store, queries: Queries, k: int, filters: Filters) -> list[list[Hit]]:
    """Return the k nearest items of each query, or all of them if there are fewer."""
    passing = filters.passing(snapshot, store)
    if queries.rescoring is None:
        nearest = snapshot.index.search(queries.codes, k, among=passing, scores=queries.scores)
        return _hits(store, zip(nearest.distances, nearest.ids, strict=True))
    k = check_integer(k, "k", low=1)
    return _hits(
        store, rescored_neighbors(snapshot, store, queries.codes, queries.scores, k, queries.rescoring, passing)
    )


def search_within(snapshot: Snapshot, store: Store, queries: Queries, radius: Any, filters: Filters) -> list[list[Hit]]:
    """Return all items within ``radius`` of each query."""
    near = snapshot.index.search_radius(queries.codes, radius, among=filters.passing(snapshot, store))
    return _hits(store, (near.of(query) for query in range(len(queries.codes))))


def novelty_of(hasher: BaseHasher, X: SamplesLike) -> np.ndarray:
    """Return how different each query is from the training rows of the hasher, or say which hashers can tell."""
    if not hasattr(hasher, "novelty"):
        name = type(inner_hasher(hasher)).__name__
        raise ValueError(
            f"A {name} cannot tell whether a query is like its training rows. StarRidge, StarSHL and HybridHasher can: "
            "fit one of them and call replace_hasher."
        )
    return np.asarray(cast(Any, vector_hasher(hasher, X)).novelty(X))


def hits_without_distance(store: Store, ids: list[int]) -> list[Hit]:
    """Return what is stored of items, as hits at distance 0."""
    return [_hit(row, 0) for row in store.rows(ids)]


def _hits(store: Store, neighbors: Iterable[tuple[np.ndarray, ...]]) -> list[list[Hit]]:
    """Return what is stored of the neighbors, given as arrays of distances and ids, perhaps with exact distances."""
    columns = [tuple(column.tolist() for column in found) for found in neighbors]
    rows = {row.id: row for row in store.rows(sorted({item for _, ids, *_ in columns for item in ids}))}
    return [
        [_hit(rows[item], distance, *exact) for distance, item, *exact in zip(*found, strict=True)] for found in columns
    ]


def _hit(row: Row, distance: float, rescored: float | None = None) -> Hit:
    return Hit(row.id, distance, row.reference, metadata_of(row), label_of(row), row.code_from, rescored)
