"""ShardedCollection: several collections, each opened by a worker, searched as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import SamplesLike
from .._validation import check_integer
from ..collection import Collection, Hit
from ..collection.partial import encoded, held_here, novelty_here
from ..collection.rescoring import RescoringOptions
from ..collection.search import check_rejecting
from ..index.ids import check_ids
from .engine import DaskEngine
from .merged_search import MergedSearch

__all__ = ["ShardedCollection"]

_MOST_OPEN = 64  # collections that one worker keeps open


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
        facts = self._ask(_facts)
        spaces = {space for space, _, _ in facts}
        if len(spaces) > 1:
            raise ValueError(
                f"The collections hold codes of {len(spaces)} spaces, which cannot be compared: "
                f"{', '.join(sorted(map(str, spaces)))}. Give collections of one hasher."
            )
        ids = np.sort(np.concatenate([own for _, own, _ in facts]))
        twice = ids[1:][ids[1:] == ids[:-1]]
        if len(twice):
            raise ValueError(f"The id {twice[0]} is in several of the collections. Give every item its own id.")
        self._keeps = {keeps for _, _, keeps in facts}

    def __len__(self) -> int:
        return sum(self._ask(_length))

    def search(
        self,
        X: SamplesLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        rescore: bool | None = None,
        oversample: int | None = None,
        metric: str | None = None,
        class_first: int | None = None,
        reject: float | None = None,
        **filters: Any,
    ) -> list[list[Hit]]:
        """Return the k nearest items of each query, by distance and then by id.

        The arguments are those of :meth:`starshl.Collection.search`, without ``by_scores``; ``filters`` are ``where``,
        ``among`` and ``labels``.
        """
        k, filters = check_integer(k, "k", low=1), _checked(filters)
        if rescore is not False and len(self._keeps) > 1:
            raise ValueError(
                f"The collections keep vectors in different ways ({', '.join(sorted(map(str, self._keeps)))}), so they "
                "cannot be rescored together. Give rescore=False, or collections that keep them in one way."
            )
        share = None if reject is None else check_rejecting(reject, X)
        options = RescoringOptions(rescore, oversample, metric, class_first)
        found = self._found(X, items, options, filters, lambda search: search.nearest(k))
        if share is None:
            return found
        rejected = self._ask_one(self.folders[0], novelty_here, X) >= 1.0 - share
        return [[] if is_new else hits for hits, is_new in zip(found, rejected.tolist(), strict=True)]

    def search_radius(
        self, X: SamplesLike | None = None, radius: float = 0, *, items: ArrayLike | None = None, **filters: Any
    ) -> list[list[Hit]]:
        """Return all items within ``radius`` of each query, by distance and then by id."""
        return self._found(X, items, None, _checked(filters), lambda search: search.within(radius))

    def _found(
        self,
        X: SamplesLike | None,
        items: ArrayLike | None,
        options: RescoringOptions | None,
        filters: dict[str, Any],
        answer: Callable[[MergedSearch], list[list[Hit]]],
    ) -> list[list[Hit]]:
        """Search for rows, which one worker encodes for all, or for items, whose codes their own collections have."""
        if items is None or X is not None:
            asked = self._ask_one(self.folders[0], encoded, X, items, options)
            return answer(MergedSearch(self._ask, asked, filters))
        ids = check_ids(items)
        hits: dict[int, list[Hit]] = {}
        for folder, here in zip(self.folders, self._ask(held_here, ids), strict=True):
            if here.any():
                asked = self._ask_one(folder, encoded, None, ids[here], options)
                found = answer(MergedSearch(self._ask, asked, filters))
                hits |= dict(zip(np.flatnonzero(here).tolist(), found, strict=True))
        if unknown := [item for place, item in enumerate(ids.tolist()) if place not in hits]:
            raise KeyError(f"The id {unknown[0]} is in none of the collections.")
        return [hits[place] for place in range(len(ids))]

    def _ask_one(self, folder: str, question: Callable[..., Any], *arguments: Any) -> Any:
        (answer,) = self._engine.map(partial(_answer, question, arguments), [folder])
        return answer

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> list[Any]:
        return list(self._engine.map(partial(_answer, question, arguments), self.folders))


def _checked(filters: dict[str, Any]) -> dict[str, Any]:
    if "by_scores" in filters:
        raise TypeError("A sharded collection cannot be searched with 'by_scores'. Search a single collection.")
    unknown = sorted(set(filters) - {"where", "among", "labels"})
    if unknown:
        raise TypeError(f"{unknown[0]!r} is not a filter of a sharded collection; these are where, among and labels.")
    return filters


def _answer(question: Callable[..., Any], arguments: tuple[Any, ...], folder: str) -> Any:
    return question(_opened(folder, os.stat(folder).st_ino), *arguments)


@lru_cache(maxsize=_MOST_OPEN)
def _opened(folder: str, inode: int) -> Collection:
    """Return an open collection, which a worker keeps for later searches; a new folder of an old name is another."""
    return Collection(folder, read_only=True)


def _facts(collection: Collection) -> tuple[str | None, np.ndarray, str | None]:
    return collection.space_id, collection.ids, collection.keeps


def _length(collection: Collection) -> int:
    return len(collection)
