"""ShardedCollection: several collections, each opened by a worker, searched as one.

A search asks all collections for what they can contribute, in one or more steps; what follows from their answers is
done here, so that the result is that of one collection with all items.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import SamplesLike
from ..collection.answers import Item, SearchResult
from ..collection.collection import Collection
from ..collection.filters import passing_items
from ..collection.items import item_of
from ..collection.options import FilterKeywords, Filters, SearchKeywords, SearchOptions, check_keywords
from ..collection.search import (
    Listed,
    Queries,
    Rescored,
    Rescoring,
    exact_distances,
    found_of,
    products_of,
    rejecting,
)
from ..exceptions import UnknownIdError
from ..index.base import check_ids
from ..index.hybrid import ClassRule
from ..index.items import Candidates
from ..index.memory import MemoryIndex
from .engine import DaskEngine

_MOST_OPEN = 64  # collections that one worker keeps open
#: A function of a question and its arguments that returns the answer of every collection.
Ask = Callable[..., list[Any]]


class ShardedCollection:
    """Collections in several folders that workers open read-only; equal to one collection that holds all items.

    A worker that has been asked about a folder keeps it open; every search sees what others have written to it before.

    Parameters
    ----------
    folders : sequence of paths
        Collections of the same hasher, without common ids. Workers open them themselves, so all must be able to reach
        them.
    client : distributed.Client
    """

    def __init__(self, folders: Sequence[str | os.PathLike[str]], client: Any) -> None:
        self.folders = [os.path.abspath(folder) for folder in folders]
        if not self.folders:
            raise ValueError("There are no folders to search. Give at least one collection.")
        self._engine = DaskEngine(client)
        described = self._ask(_description)
        spaces = {space for space, _, _ in described}
        if len(spaces) > 1:
            raise ValueError(
                f"The collections hold codes of {len(spaces)} spaces, which cannot be compared: "
                f"{', '.join(sorted(map(str, spaces)))}. Give collections of one hasher."
            )
        ids = np.sort(np.concatenate([own for _, own, _ in described]))
        twice = ids[1:][ids[1:] == ids[:-1]]
        if len(twice):
            raise ValueError(f"The id {twice[0]} is in several of the collections. Give every item its own id.")
        self._vector_dtypes = {vector_dtype for _, _, vector_dtype in described}

    def __repr__(self) -> str:
        # Without a count of items, for which all workers would have to be asked.
        return f"{type(self).__name__}({self.folders!r})"

    def __len__(self) -> int:
        return sum(self._ask(_length))

    def search(
        self,
        X: SamplesLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        **options: Unpack[SearchKeywords],
    ) -> list[SearchResult]:
        """Return the k nearest items of each query, by distance and then by id.

        The arguments are those of :meth:`starshl.Collection.search`, without ``by_scores`` and ``explain``.
        """
        return self.answer(SearchOptions.of(k, **options), X, items=items)

    def search_radius(
        self,
        X: SamplesLike | None = None,
        radius: float = 0,
        *,
        items: ArrayLike | None = None,
        **filters: Unpack[FilterKeywords],
    ) -> list[SearchResult]:
        """Return all items within ``radius`` of each query, by distance and then by id.

        The arguments are those of :meth:`starshl.Collection.search_radius`.
        """
        known = Filters.of(**check_keywords(filters, FilterKeywords))
        return self.answer(SearchOptions(k=None, radius=radius, filters=known), X, items=items)

    def answer(
        self, options: SearchOptions, X: SamplesLike | None = None, *, items: ArrayLike | None = None
    ) -> list[SearchResult]:
        """Return what each query finds; :meth:`search` and :meth:`search_radius` make the options, too."""
        for name in ("by_scores", "explain"):
            if getattr(options, name):
                raise TypeError(f"A sharded collection cannot be searched with {name!r}. Search a single collection.")
        options.check_query(X)
        if options.radius is None and options.rescore is not False and len(self._vector_dtypes) > 1:
            ways = ", ".join(sorted(map(str, self._vector_dtypes)))
            raise ValueError(
                f"The collections keep vectors in different ways ({ways}), so they cannot be rescored together. Give "
                "rescore=False, or collections that keep them in one way."
            )
        found = self._found(X, items, options)
        if options.reject is None:
            return found
        return rejecting(found, self._ask_one(self.folders[0], novelty_here, X), options.reject)

    def _found(self, X: SamplesLike | None, items: ArrayLike | None, options: SearchOptions) -> list[SearchResult]:
        """Search for rows, which one worker encodes for all, or for items, whose codes their own collections have."""
        if items is None or X is not None:
            asked = self._ask_one(self.folders[0], encoded, X, items, options)
            return MergedSearch(self._ask, asked, options).found()
        ids = check_ids(items)
        found: dict[int, SearchResult] = {}
        for folder, here in zip(self.folders, self._ask(held_here, ids), strict=True):
            if here.any():
                asked = self._ask_one(folder, encoded, None, ids[here], options)
                here_found = MergedSearch(self._ask, asked, options).found()
                found |= dict(zip(np.flatnonzero(here).tolist(), here_found, strict=True))
        if unknown := [item for place, item in enumerate(ids.tolist()) if place not in found]:
            raise UnknownIdError(unknown[0], "in any of the collections")
        return [found[place] for place in range(len(ids))]

    def _ask_one(self, folder: str, question: Callable[..., Any], *arguments: Any) -> Any:
        (answer,) = self._engine.map(partial(_answer, question, arguments), [folder])
        return answer

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> list[Any]:
        return list(self._engine.map(partial(_answer, question, arguments), self.folders))


def _answer(question: Callable[..., Any], arguments: tuple[Any, ...], folder: str) -> Any:
    return question(_open_collection(folder, os.stat(folder).st_ino), *arguments)


@lru_cache(maxsize=_MOST_OPEN)
def _open_collection(folder: str, inode: int) -> Collection:
    """Return an open collection, which a worker keeps for later searches; a new folder of an old name is another."""
    return Collection(folder, read_only=True)


def _description(collection: Collection) -> tuple[str | None, np.ndarray, str | None]:
    return collection.space_id, collection.ids, collection.vector_dtype


def _length(collection: Collection) -> int:
    return len(collection)


class MergedSearch(NamedTuple):
    """Queries that were encoded once, and the way to ask all collections."""

    ask: Ask
    asked: EncodedQueries
    options: SearchOptions

    def found(self) -> list[SearchResult]:
        """Return what each query finds, by distance and then by id."""
        rescoring = self.asked.queries.rescoring
        if self.options.radius is not None:
            neighbors = self._within(self.options.radius)
        elif rescoring is None:
            neighbors = self._nearest(self.options.n_nearest)
        else:
            neighbors = self._rescored(rescoring, self.options.n_nearest)
        return found_of(neighbors, self.options, self._items)

    def _nearest(self, k: int) -> Iterable[tuple[np.ndarray, ...]]:
        codes = self.asked.queries.codes
        found, _ = self._merged(self.ask(part_near, codes, None, k, self.options.filters), len(codes))
        spans = [found.of(query) for query in range(len(codes))]
        return ((found.distances[span][:k], found.ids[span][:k]) for span in spans)

    def _within(self, radius: float) -> Iterable[tuple[np.ndarray, ...]]:
        codes = self.asked.queries.codes
        found, _ = self._merged(self.ask(part_within, codes, radius, self.options.filters), len(codes))
        inside = found.distances <= radius
        spans = [found.of(query) for query in range(len(codes))]
        return ((found.distances[span][inside[span]], found.ids[span][inside[span]]) for span in spans)

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
            parts = self.ask(part_near, queries.codes[span], scores, n_listed, self.options.filters)
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

    def _items(self, ids: list[int]) -> list[Item]:
        return [item for part in self.ask(items_here, np.array(ids, np.int64)) for item in part]


def _listed(
    rescoring: Rescoring, found: Merged, products: np.ndarray | None, query: int, n_listed: int, k: int
) -> Listed:
    """Return the candidates of a query."""
    first = found.of(query).start
    span = slice(first, min(found.of(query).stop, first + n_listed))
    listed = Listed(found.distances[span], found.ids[span], found.differs[span].astype(np.bool_))
    return rescoring.candidates(listed, None if products is None else products[span], k)


class EncodedQueries(NamedTuple):
    """Queries as the indexes of all collections take them, and what another class costs there."""

    queries: Queries
    rule: ClassRule | None


class Part(NamedTuple):
    """Candidates of one collection, with the products of their codes with the scores of the queries if these count."""

    found: Candidates
    products: np.ndarray | None = None


def encoded(
    collection: Collection, X: SamplesLike | None, items: ArrayLike | None, options: SearchOptions
) -> EncodedQueries:
    """Encode rows, or take the codes of items stored here, with vectors and scores if they are to be rescored."""
    with collection.reading() as (state, store):
        return EncodedQueries(Queries.of(state, store, X, items, options), state.index.class_rule)


def held_here(collection: Collection, ids: np.ndarray) -> np.ndarray:
    """Return which of the ids are those of items stored here."""
    with collection.reading() as (state, _):
        return state.index.holds(ids)


def novelty_here(collection: Collection, X: SamplesLike) -> np.ndarray:
    """Return how different each query is from the training rows of the hasher, which all collections share."""
    return collection.novelty(X)


def part_near(collection: Collection, codes: Any, scores: np.ndarray | None, n: int, filters: Filters) -> Part:
    """Return what can be among the n nearest items of all collections."""
    with collection.reading() as (state, store):
        found = candidates_near(state.index, codes, n, passing_items(state, store, filters))
        if scores is None:
            return Part(found)
        products = np.empty(len(found.queries))
        for query in np.unique(found.queries).tolist():
            own = found.queries == query
            products[own] = products_of(state, found.positions[own], scores[query])
        return Part(found, products)


def part_within(collection: Collection, codes: Any, radius: Any, filters: Filters) -> Part:
    """Return what can be within a radius, and what decides about it."""
    with collection.reading() as (state, store):
        return Part(candidates_within(state.index, codes, radius, passing_items(state, store, filters)))


def exact_parts(
    collection: Collection, vectors: np.ndarray, ids: list[np.ndarray], metric: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return which of the ids of each query are here, and the distances between their vectors and the query's."""
    with collection.reading() as (state, store):
        here = [wanted[state.index.holds(wanted)] for wanted in ids]
        return [
            (held, exact_distances(vector, state.vectors_of(store, held.tolist()), metric))
            for vector, held in zip(vectors, here, strict=True)
        ]


def items_here(collection: Collection, ids: np.ndarray) -> list[Item]:
    """Return those items that are here."""
    with collection.reading() as (state, store):
        return [item_of(row, state.vocabulary) for row in store.rows(ids[state.index.holds(ids)].tolist())]


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


def merged(rule: ClassRule | None, parts: Sequence[Candidates], n_queries: int) -> Merged:
    """Put the contributions of all parts into the order that one index with all items has."""
    found = Candidates(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    distances = found.distances
    if rule is not None:
        distances = rule.distances(found, rule.thresholds(found, n_queries))
    order = np.lexsort((found.positions, distances, found.queries))
    starts = np.searchsorted(found.queries[order], np.arange(n_queries + 1))
    return Merged(starts, distances[order], found.positions[order], found.differs[order], order)


def candidates_near(index: MemoryIndex, codes: Any, k: int, among: np.ndarray | None) -> Candidates:
    """Return all items that can be among the k nearest of a larger index, whose ids are the positions."""
    if index.class_rule is not None:
        return index.candidates(codes, k, among)
    distances, ids = index.search(codes, k, among=among)
    queries = np.repeat(np.arange(len(codes)), ids.shape[1])
    return Candidates(queries, ids.ravel(), distances.ravel(), np.zeros(ids.size, np.int64))


def candidates_within(index: MemoryIndex, codes: Any, radius: Any, among: np.ndarray | None) -> Candidates:
    """Return all items that can be within a radius in a larger index, and those that decide what another class costs.

    The latter may be beyond the radius.
    """
    rule = index.class_rule
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
