"""Candidates from codes, reordered by the exact distance between the query and the vectors that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._threads import tiles
from ..codes import BinaryCodes
from ..index.base import Neighbors
from .snapshot import Snapshot
from .store import Store

__all__ = ["METRICS", "Rescored", "Rescoring", "exact_distances", "rescored_neighbors"]

METRICS = ("euclidean", "cosine")
# Of the items nearest by Hamming distance, so many times the candidates are ordered by the scores of the query. On AG
# News, with ITQ at 64 and 128 bits, 10 gives the recall of ordering all items by scores (.970, .990); 3 loses .010.
_SHORTLIST = 10
_BYTES_AT_ONCE = 1 << 25
_SIGNS_OF_BYTES = BinaryCodes(np.arange(256, dtype=np.uint8)[:, None], 8).to_signs().astype(np.float64)


@dataclass(frozen=True, slots=True)
class Rescoring:
    """How to rescore: the vectors of the queries, candidates per result, and the distance that decides."""

    vectors: np.ndarray
    oversample: int
    metric: str


class Rescored(NamedTuple):
    """The results of one query, nearest first: distances of the index, ids, and distances between vectors."""

    distances: np.ndarray
    ids: np.ndarray
    exact: np.ndarray


def rescored_neighbors(
    snapshot: Snapshot,
    store: Store,
    codes: Any,
    scores: np.ndarray | None,
    k: int,
    rescoring: Rescoring,
    among: np.ndarray | None,
) -> Iterator[Rescored]:
    """Yield the k best of ``k * oversample`` candidates of each query, by exact distance and then by id.

    Scores choose the candidates from a shortlist; without scores, the candidates are the nearest items of the index.
    ``codes`` are queries as the index takes them.
    """
    n_candidates = k * rescoring.oversample
    n_listed = n_candidates if scores is None else n_candidates * _SHORTLIST
    for span in tiles(len(codes), _queries_at_once(n_candidates, rescoring.vectors.shape[1])):
        shortlist = snapshot.index.search(codes[span], n_listed, among=among)
        candidates = [Neighbors(distances, ids) for distances, ids in zip(*shortlist, strict=True)]
        if scores is not None:
            candidates = [
                _best_by_scores(snapshot, near, query_scores, n_candidates)
                for near, query_scores in zip(candidates, scores[span], strict=True)
            ]
        for query, found in zip(rescoring.vectors[span], candidates, strict=True):
            yield _reordered(snapshot, store, query, found, k, rescoring.metric)


def exact_distances(query: np.ndarray, vectors: np.ndarray, metric: str) -> np.ndarray:
    """Return the Euclidean distances between a query and vectors, or 1 minus the cosines; a zero vector has cosine 0.

    Equal vectors get exactly equal distances, whatever stands beside them.
    """
    if metric == "euclidean":
        return np.sqrt(((vectors - query) ** 2).sum(axis=1))
    norms = np.sqrt((vectors**2).sum(axis=1)) * np.sqrt((query**2).sum())
    products = (vectors * query).sum(axis=1)
    return 1.0 - np.divide(products, norms, out=np.zeros(len(vectors)), where=norms > 0)


def _best_by_scores(snapshot: Snapshot, near: Neighbors, scores: np.ndarray, n: int) -> Neighbors:
    """Return the n neighbors whose codes have the largest inner products with the scores; equal ones by id."""
    if near.ids.shape[0] <= n:
        return near
    packed = snapshot.index.reconstruct(near.ids).packed
    padded = np.zeros(8 * packed.shape[1])
    padded[: len(scores)] = scores
    # One table per byte: equal codes get exactly equal products, which a matrix product does not promise.
    tables = padded.reshape(-1, 8) @ _SIGNS_OF_BYTES.T
    products = tables[np.arange(packed.shape[1]), packed].sum(axis=1)
    best = np.lexsort((near.ids, -products))[:n]
    return Neighbors(near.distances[best], near.ids[best])


def _reordered(snapshot: Snapshot, store: Store, query: np.ndarray, found: Neighbors, k: int, metric: str) -> Rescored:
    exact = exact_distances(query, snapshot.vectors_of(store, found.ids.tolist()), metric)
    order = np.lexsort((found.ids, exact))[:k]
    return Rescored(found.distances[order], found.ids[order], exact[order])


def _queries_at_once(n_candidates: int, n_columns: int) -> int:
    return max(1, min(64, _BYTES_AT_ONCE // (8 * n_candidates * max(n_columns, _SHORTLIST))))
