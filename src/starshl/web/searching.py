"""Searches of a collection with the options of a request, and explanations of what they find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..collection import Collection, Explanation, Hit
from .requests import Found, SearchOptions

__all__ = ["explained", "middle", "searched", "without"]


def searched(collection: Collection, X: Any, items: list[int] | None, options: SearchOptions) -> list[Found]:
    """Search for rows, or for stored items, in one call; with ``reject``, novel rows find nothing."""
    found = _found(collection, X, items, options)
    if options.reject is None:
        return found
    if X is None:
        raise ValueError("reject is for searches by vector. Leave it out to search for stored items.")
    limit = 1.0 - options.reject
    return [
        replace(each, novelty=share) if share < limit else Found([], 0, novelty=share)
        for each, share in zip(found, collection.novelty(X).tolist(), strict=True)
    ]


def _found(collection: Collection, X: Any, items: list[int] | None, options: SearchOptions) -> list[Found]:
    if options.radius is not None:
        near = collection.search_radius(X, options.radius, items=items, **options.filters())
        return [Found(hits[: options.k], len(hits)) for hits in near]
    nearest = collection.search(
        X,
        options.k,
        items=items,
        by_scores=options.by_scores,
        rescore=options.rescore,
        oversample=options.oversample,
        metric=options.metric,
        class_first=options.class_first,
        **options.filters(),
    )
    return [Found(hits, len(hits)) for hits in nearest]


def middle(collection: Collection, like: Sequence[int], unlike: Sequence[int]) -> np.ndarray:
    """Return the mean of kept vectors, moved away from the mean of others by as much as the two differ."""
    if collection.keeps is None:
        raise ValueError(
            "This collection keeps no vectors, so items cannot be combined. Search for each item by itself, or make a "
            "collection that keeps vectors."
        )
    wanted = collection.vectors(sorted(set(like))).mean(axis=0)
    return 2 * wanted - collection.vectors(sorted(set(unlike))).mean(axis=0) if unlike else wanted


def without(found: Found, ids: set[int], k: int) -> Found:
    """Return the first k hits besides some items."""
    places = [place for place, hit in enumerate(found.hits) if hit.id not in ids][:k]
    explanations = None if found.explanations is None else [found.explanations[place] for place in places]
    return Found([found.hits[place] for place in places], len(places), explanations, found.novelty)


def explained(
    collection: Collection, X: Any, items: list[int] | None, found: list[Found], options: SearchOptions
) -> list[Found]:
    """Add explanations; stored items are explained by their kept vectors."""
    if items is not None and collection.keeps is None:
        raise ValueError(
            "This collection keeps no vectors, so matches with a stored item cannot be explained. Search by vector, or "
            "leave the explanation out."
        )
    if items is not None:
        unique = sorted(set(items))
        X = collection.vectors(unique)[np.searchsorted(unique, items)]
    metric = options.metric or "euclidean"
    return [
        replace(each, explanations=_explanations(collection, row[None], each.hits, metric))
        for row, each in zip(X, found, strict=True)
    ]


def _explanations(collection: Collection, X: np.ndarray, hits: list[Hit], metric: str) -> list[Explanation | None]:
    """Explain hits together, so that the query is encoded once; None for an item that was removed since."""
    try:
        return [*collection.explain(X, hits, metric=metric)]
    except KeyError:
        if len(hits) == 1:
            return [None]
        return [reason for hit in hits for reason in _explanations(collection, X, [hit], metric)]
