"""Searches of a collection with the options of a request, and explanations of what they find."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..collection import Collection, Explanation, Hit
from .requests import Found, SearchOptions

__all__ = ["explained", "searched"]


def searched(collection: Collection, X: Any, items: list[int] | None, options: SearchOptions) -> list[Found]:
    """Search for rows, or for stored items, in one call."""
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
        **options.filters(),
    )
    return [Found(hits, len(hits)) for hits in nearest]


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
    return [
        Found(each.hits, each.total, [_explanation(collection, row[None], hit, options) for hit in each.hits])
        for row, each in zip(X, found, strict=True)
    ]


def _explanation(collection: Collection, X: np.ndarray, hit: Hit, options: SearchOptions) -> Explanation | None:
    try:
        return collection.explain(X, [hit], metric=options.metric)[0]
    except KeyError:
        return None  # the item was removed since it was found
