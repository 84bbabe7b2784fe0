"""Answers of several shards as one: by distance, then by id."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..index import Neighbors, RadiusNeighbors

__all__ = ["merged_neighbors", "merged_radius_neighbors"]


def merged_neighbors(answers: Sequence[Neighbors], n_queries: int, k: int) -> Neighbors:
    """Return the k nearest of what shards found, each its own k nearest.

    Examples
    --------
    >>> near = Neighbors(np.array([[0, 2]]), np.array([[5, 1]]))
    >>> far = Neighbors(np.array([[2, 3]]), np.array([[0, 9]]))
    >>> merged_neighbors([near, far], 1, 3).ids.tolist()
    [[5, 0, 1]]
    """
    empty = Neighbors(np.empty((n_queries, 0), np.int32), np.empty((n_queries, 0), np.int64))
    distances, ids = (np.concatenate(parts, axis=1) for parts in zip(empty, *answers, strict=True))
    order = np.lexsort((ids, distances), axis=1)[:, :k]
    return Neighbors(np.take_along_axis(distances, order, axis=1), np.take_along_axis(ids, order, axis=1))


def merged_radius_neighbors(answers: Sequence[RadiusNeighbors], n_queries: int) -> RadiusNeighbors:
    """Return everything that shards found within a radius.

    Examples
    --------
    >>> first = RadiusNeighbors(np.array([0, 1, 1]), np.array([2]), np.array([7]))
    >>> second = RadiusNeighbors(np.array([0, 1, 2]), np.array([1, 0]), np.array([3, 4]))
    >>> merged = merged_radius_neighbors([first, second], 2)
    >>> merged.of(0).ids.tolist(), merged.of(1).ids.tolist()
    ([3, 7], [4])
    """
    counts = np.array([np.diff(answer.starts) for answer in answers] or np.zeros((1, n_queries), np.int64))
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    queries = [np.repeat(np.arange(n_queries), np.diff(answer.starts)) for answer in answers]
    query, distances, ids = (
        np.concatenate([np.empty(0, dtype), *parts])
        for dtype, parts in (
            (np.int64, queries),
            (np.int32, [answer.distances for answer in answers]),
            (np.int64, [answer.ids for answer in answers]),
        )
    )
    order = np.lexsort((ids, distances, query))
    return RadiusNeighbors(starts, distances[order], ids[order])
