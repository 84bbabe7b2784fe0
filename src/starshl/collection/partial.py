"""What a collection contributes to a search of several that hold the items of one together.

Each function answers one question about an open collection. Items that are removed between two questions are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._types import SamplesLike
from ..index.class_rule import Candidates, ClassRule
from ..index.partial import candidates_near, candidates_within, rule_of
from .filtering import Filters
from .rescoring import RescoringOptions, exact_distances, products_of
from .search import Hit, Queries, hits_without_distance
from .searchable import SearchableCollection

__all__ = [
    "Encoded",
    "Part",
    "encoded",
    "exact_parts",
    "held_here",
    "hits_of",
    "novelty_here",
    "part_near",
    "part_within",
]


class Encoded(NamedTuple):
    """Queries as the indexes of all collections take them, and what another class costs there."""

    queries: Queries
    rule: ClassRule | None


class Part(NamedTuple):
    """Candidates of one collection, with the products of their codes with the scores of the queries if these count."""

    found: Candidates
    products: np.ndarray | None = None


def encoded(
    collection: SearchableCollection, X: SamplesLike | None, items: ArrayLike | None, options: RescoringOptions | None
) -> Encoded:
    """Encode rows, or take the codes of items stored here, with vectors and scores if they are to be rescored.

    ``options`` is None for a search within a radius.
    """
    with collection._session.reading() as (snapshot, store):
        if options is not None and options.apply_to(snapshot):
            queries = Queries.to_rescore(snapshot, store, X, items, options)
        else:
            queries = Queries.of(snapshot, X, items, with_scores=False)
        return Encoded(queries, rule_of(snapshot.index))


def held_here(collection: SearchableCollection, ids: np.ndarray) -> np.ndarray:
    """Return which of the ids are those of items stored here."""
    with collection._session.reading() as (snapshot, _):
        return snapshot.index.holds(ids)


def novelty_here(collection: SearchableCollection, X: SamplesLike) -> np.ndarray:
    """Return how different each query is from the training rows of the hasher, which all collections share."""
    return collection.novelty(X)


def part_near(
    collection: SearchableCollection, codes: Any, scores: np.ndarray | None, n: int, filters: Mapping[str, Any]
) -> Part:
    """Return what can be among the n nearest items of all collections."""
    with collection._session.reading() as (snapshot, store):
        found = candidates_near(snapshot.index, codes, n, Filters(**filters).passing(snapshot, store))
        if scores is None:
            return Part(found)
        products = np.empty(len(found.queries))
        for query in np.unique(found.queries).tolist():
            own = found.queries == query
            products[own] = products_of(snapshot, found.positions[own], scores[query])
        return Part(found, products)


def part_within(collection: SearchableCollection, codes: Any, radius: Any, filters: Mapping[str, Any]) -> Part:
    """Return what can be within a radius, and what decides about it."""
    with collection._session.reading() as (snapshot, store):
        return Part(candidates_within(snapshot.index, codes, radius, Filters(**filters).passing(snapshot, store)))


def exact_parts(
    collection: SearchableCollection, vectors: np.ndarray, ids: list[np.ndarray], metric: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return which of the ids of each query are here, and the distances between their vectors and the query's."""
    with collection._session.reading() as (snapshot, store):
        here = [wanted[snapshot.index.holds(wanted)] for wanted in ids]
        return [
            (held, exact_distances(vector, snapshot.vectors_of(store, held.tolist()), metric))
            for vector, held in zip(vectors, here, strict=True)
        ]


def hits_of(collection: SearchableCollection, ids: np.ndarray) -> list[Hit]:
    """Return what is stored of those items that are here, as hits at distance 0."""
    with collection._session.reading() as (snapshot, store):
        return hits_without_distance(store, ids[snapshot.index.holds(ids)].tolist())
