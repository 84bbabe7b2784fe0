"""ShardedCollection: several collections, each opened by a worker, searched as one.

A search asks each collection for what one with all items would find there, in one or more steps, and puts the answers
into one order.
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
from ..collection.options import FilterKeywords, SearchKeywords, SearchOptions
from ..collection.search import Found, Queries, Rescoring, exact_distances, found_of, near_items, rejecting
from ..exceptions import UnknownIdError
from ..index.base import check_ids
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
        spaces = {each.space for each in described}
        if len(spaces) > 1:
            raise ValueError(
                f"The collections hold codes of {len(spaces)} spaces, which cannot be compared: "
                f"{', '.join(sorted(map(str, spaces)))}. Give collections of one hasher."
            )
        if len({each.words for each in described}) > 1:
            raise ValueError(
                "The collections have hashers of several fits, whose probabilities cannot be compared. Give "
                "collections of one hasher."
            )
        ids = np.sort(np.concatenate([each.ids for each in described]))
        twice = ids[1:][ids[1:] == ids[:-1]]
        if len(twice):
            raise ValueError(f"The id {twice[0]} is in several of the collections. Give every item its own id.")
        self._vector_dtypes = {each.vector_dtype for each in described}

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
        radius: float | None = 0,
        *,
        items: ArrayLike | None = None,
        min_probability: float | None = None,
        **filters: Unpack[FilterKeywords],
    ) -> list[SearchResult]:
        """Return all items within ``radius`` of each query, by distance and then by id.

        The arguments are those of :meth:`starshl.Collection.search_radius`.
        """
        return self.answer(SearchOptions.of_radius(radius, min_probability, **filters), X, items=items)

    def answer(
        self, options: SearchOptions, X: SamplesLike | None = None, *, items: ArrayLike | None = None
    ) -> list[SearchResult]:
        """Return what each query finds; :meth:`search` and :meth:`search_radius` make the options, too."""
        for name in ("by_scores", "explain"):
            if getattr(options, name):
                raise TypeError(f"A sharded collection cannot be searched with {name!r}. Search a single collection.")
        options.check_query(X)
        if not options.finds_all and options.rescore is not False and len(self._vector_dtypes) > 1:
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
            return self._merged(self.folders[0], X, items, options)
        ids = check_ids(items)
        found: dict[int, SearchResult] = {}
        for folder, here in zip(self.folders, self._ask(held_here, ids), strict=True):
            if here.any():
                here_found = self._merged(folder, None, ids[here], options)
                found |= dict(zip(np.flatnonzero(here).tolist(), here_found, strict=True))
        if unknown := [item for place, item in enumerate(ids.tolist()) if place not in found]:
            raise UnknownIdError(unknown[0], "in any of the collections")
        return [found[place] for place in range(len(ids))]

    def _merged(
        self, folder: str, X: SamplesLike | None, items: ArrayLike | None, options: SearchOptions
    ) -> list[SearchResult]:
        """Search all collections for what one of them encodes."""
        queries, groups = self._ask_one(folder, encoded, X, items, options)
        return MergedSearch(self._ask, queries, groups, options).found()

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


class _Description(NamedTuple):
    """What collections must have in common, and what not; ``words`` tells models apart whose codes are words."""

    space: str | None
    words: str | None
    ids: np.ndarray
    vector_dtype: str | None


def _description(collection: Collection) -> _Description:
    words = None if collection.hasher.words is None else collection.model_digest
    return _Description(collection.space_id, words, collection.ids, collection.vector_dtype)


def _length(collection: Collection) -> int:
    return len(collection)


class MergedSearch(NamedTuple):
    """Queries that were encoded once, and the way to ask all collections.

    ``groups`` are the classes of the hasher that count as one where the queries were encoded.
    """

    ask: Ask
    queries: Queries
    groups: np.ndarray
    options: SearchOptions

    def found(self) -> list[SearchResult]:
        """Return what each query finds, by distance and then by id."""
        rescoring, n = self.queries.rescoring, None if self.options.finds_all else self.options.n_nearest
        neighbors = self._near(self.queries, n) if rescoring is None else self._rescored(rescoring, n or 0)
        return found_of(neighbors, self.options, self._items)

    def _near(self, queries: Queries, n: int | None) -> Iterable[Found]:
        """Yield what one index with all items finds for each query: the n nearest, or all."""
        for parts in zip(*self.ask(near_here, queries, self.groups, self.options), strict=True):
            yield _merged(parts).taken(slice(n))

    def _rescored(self, rescoring: Rescoring, k: int) -> Iterable[Found]:
        """Yield the best of each query, as one collection with all items finds them."""
        n_listed = rescoring.n_listed(k, by_scores=self.queries.scores is not None)
        for span in rescoring.spans(k):
            candidates = [rescoring.candidates(each, k) for each in self._near(self.queries.part(span), n_listed)]
            answers = self.ask(
                exact_parts, rescoring.vectors[span], [each.ids for each in candidates], rescoring.metric
            )
            for own, exact in zip(candidates, zip(*answers, strict=True), strict=True):
                ids, distances = (np.concatenate(columns) for columns in zip(*exact, strict=True))
                kept = own.taken(np.isin(own.ids, ids))
                order = np.argsort(ids)
                exactly = distances[order[np.searchsorted(ids, kept.ids, sorter=order)]]
                yield rescoring.best(kept, exactly, k)

    def _items(self, ids: list[int]) -> list[Item]:
        return [item for part in self.ask(items_here, np.array(ids, np.int64)) for item in part]


def _merged(parts: Sequence[Found]) -> Found:
    """Return what all parts have found for a query, by distance and then by id."""
    columns = zip(*parts, strict=True)
    found = Found(*(None if each[0] is None else np.concatenate(each) for each in columns))  # type: ignore[arg-type]
    return found.taken(np.lexsort((found.ids, found.distances)))


def encoded(
    collection: Collection, X: SamplesLike | None, items: ArrayLike | None, options: SearchOptions
) -> tuple[Queries, np.ndarray]:
    """Encode rows, or take items stored here, with what rescoring needs; say which classes count as one."""
    with collection.reading() as (state, store):
        return Queries.of(state, store, X, items, options), state.shown_classes.columns


def held_here(collection: Collection, ids: np.ndarray) -> np.ndarray:
    """Return which of the ids are those of items stored here."""
    with collection.reading() as (state, _):
        return state.index.holds(ids)


def novelty_here(collection: Collection, X: SamplesLike) -> np.ndarray:
    """Return how different each query is from the training rows of the hasher, which all collections share."""
    return collection.novelty(X)


def near_here(collection: Collection, queries: Queries, groups: np.ndarray, options: SearchOptions) -> list[Found]:
    """Return what is nearest to each query here, or all that is near or likely enough."""
    with collection.reading() as (state, store):
        if "probability" in state.hasher.supports and not np.array_equal(groups, state.shown_classes.columns):
            raise ValueError(
                "Classes were merged or removed in some of the collections and not in others, so that probabilities "
                f"cannot be compared: {collection.folder} differs. Make the same changes of classes in all of them."
            )
        return near_items(state, queries, options, passing_items(state, store, options.filters))


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
