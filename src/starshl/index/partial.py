"""What a part of a larger index contributes to a search, and the order of all that the parts contribute.

Where another class costs more the nearer items of the query's class are, a part cannot tell the distances of its
items: these depend on the items of all parts. So parts return candidates with distances regardless of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .class_rule import Candidates, ClassRule
from .scan import ScanIndex

__all__ = ["Merged", "candidates_near", "candidates_within", "merged", "rule_of"]


class Merged(NamedTuple):
    """What all parts contribute, by query, distance and id; ``order`` says where it was, part after part.

    ``starts`` tells where each query's items start.
    """

    starts: np.ndarray
    distances: np.ndarray
    ids: np.ndarray
    differs: np.ndarray
    order: np.ndarray

    def of(self, query: int) -> slice:
        """Return where the items of a query are."""
        return slice(int(self.starts[query]), int(self.starts[query + 1]))


def rule_of(index: ScanIndex) -> ClassRule | None:
    """Return what another class costs in an index, None if classes do not count."""
    rule: ClassRule | None = getattr(index._items, "rule", None)
    return rule


def candidates_near(index: ScanIndex, codes: Any, k: int, among: np.ndarray | None) -> Candidates:
    """Return all items that can be among the k nearest of a larger index, whose ids are the positions."""
    if rule_of(index) is not None:
        return index.candidates(codes, k, among)
    distances, ids = index.search(codes, k, among=among)
    queries = np.repeat(np.arange(len(codes)), ids.shape[1])
    return Candidates(queries, ids.ravel(), distances.ravel(), np.zeros(ids.size, np.int64))


def candidates_within(index: ScanIndex, codes: Any, radius: Any, among: np.ndarray | None) -> Candidates:
    """Return all items that can be within a radius in a larger index, and those that decide what another class costs.

    The latter may be beyond the radius.
    """
    rule = rule_of(index)
    if rule is None:
        starts, distances, ids = index.search_radius(codes, radius, among=among)
        queries = np.repeat(np.arange(len(codes)), np.diff(starts))
        return Candidates(queries, ids, distances, np.zeros(len(ids), np.int64))
    inside = index.candidates_within(codes, radius, among)
    if not rule.class_first:
        return inside
    first = index.candidates(codes, 1, among)
    beyond = (first.differs == 0) & (first.distances > radius)
    return Candidates(*(np.concatenate([one, other[beyond]]) for one, other in zip(inside, first, strict=True)))


def merged(rule: ClassRule | None, parts: Sequence[Candidates], n_queries: int) -> Merged:
    """Put the contributions of all parts into the order that one index with all items has."""
    found = Candidates(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    distances = found.distances
    if rule is not None:
        distances = rule.distances(found, rule.ends(found, n_queries))
    order = np.lexsort((found.positions, distances, found.queries))
    starts = np.searchsorted(found.queries[order], np.arange(n_queries + 1))
    return Merged(starts, distances[order], found.positions[order], found.differs[order], order)
