"""A search of several collections in steps: each asks all of them, and what follows from the answers is done here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..collection.partial import Encoded, Part, exact_parts, hits_of, part_near, part_within
from ..collection.rescoring import Listed, Rescored, Rescoring
from ..collection.search import Hit
from ..index.partial import Merged, merged

__all__ = ["MergedSearch"]

#: A function of a question and its arguments that returns the answer of every collection.
Ask = Callable[..., list[Any]]


class MergedSearch(NamedTuple):
    """Queries that were encoded once, and the way to ask all collections."""

    ask: Ask
    asked: Encoded
    filters: Mapping[str, Any]

    def nearest(self, k: int) -> list[list[Hit]]:
        """Return the k nearest items of each query, by distance and then by id."""
        queries = self.asked.queries
        if queries.rescoring is not None:
            return self._hits(self._rescored(queries.rescoring, k))
        found, _ = self._merged(self.ask(part_near, queries.codes, None, k, self.filters), len(queries.codes))
        spans = [found.of(query) for query in range(len(queries.codes))]
        return self._hits((found.distances[span][:k], found.ids[span][:k]) for span in spans)

    def within(self, radius: Any) -> list[list[Hit]]:
        """Return all items within a radius of each query, by distance and then by id."""
        codes = self.asked.queries.codes
        found, _ = self._merged(self.ask(part_within, codes, radius, self.filters), len(codes))
        inside = found.distances <= radius
        spans = [found.of(query) for query in range(len(codes))]
        return self._hits((found.distances[span][inside[span]], found.ids[span][inside[span]]) for span in spans)

    def _merged(self, parts: list[Part], n_queries: int) -> tuple[Merged, np.ndarray | None]:
        found = merged(self.asked.rule, [part.found for part in parts], n_queries)
        products = [part.products for part in parts if part.products is not None]
        return found, np.concatenate(products)[found.order] if products else None

    def _rescored(self, rescoring: Rescoring, k: int) -> Iterable[Rescored]:
        """Yield the best of each query, as one collection with all items finds them."""
        queries = self.asked.queries
        n_listed = rescoring.n_listed(k, by_scores=queries.scores is not None)
        for span in rescoring.spans(k):
            scores = None if queries.scores is None else queries.scores[span]
            parts = self.ask(part_near, queries.codes[span], scores, n_listed, self.filters)
            n_queries = span.stop - span.start
            found, products = self._merged(parts, n_queries)
            candidates = [_listed(rescoring, found, products, query, n_listed, k) for query in range(n_queries)]
            wanted = [listed.ids for listed in candidates]
            answers = self.ask(exact_parts, rescoring.vectors[span], wanted, rescoring.metric)
            for listed, exact in zip(candidates, zip(*answers, strict=True), strict=True):
                ids, distances = (np.concatenate(columns) for columns in zip(*exact, strict=True))
                kept = listed.taken(np.isin(listed.ids, ids))
                order = np.argsort(ids)
                yield rescoring.best(kept, distances[order[np.searchsorted(ids, kept.ids, sorter=order)]], k)

    def _hits(self, neighbors: Iterable[tuple[np.ndarray, ...]]) -> list[list[Hit]]:
        """Return what is stored of neighbors, given as distances and ids, perhaps with distances of vectors."""
        columns = [tuple(column.tolist() for column in found) for found in neighbors]
        ids = np.unique(np.array([item for _, found, *_ in columns for item in found], np.int64))
        stored = {hit.id: hit for part in self.ask(hits_of, ids) for hit in part}
        return [
            [
                stored[item]._replace(distance=distance, rescored=exact[0] if exact else None)
                for distance, item, *exact in zip(*found, strict=True)
                if item in stored
            ]
            for found in columns
        ]


def _listed(
    rescoring: Rescoring, found: Merged, products: np.ndarray | None, query: int, n_listed: int, k: int
) -> Listed:
    """Return the candidates of a query."""
    first = found.of(query).start
    span = slice(first, min(found.of(query).stop, first + n_listed))
    listed = Listed(found.distances[span], found.ids[span], found.differs[span].astype(np.bool_))
    return rescoring.candidates(listed, None if products is None else products[span], k)
