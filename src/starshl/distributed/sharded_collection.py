"""ShardedCollection: several collections, each opened by a worker, searched as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from .._types import SamplesLike
from .._validation import check_integer
from ..collection import Collection, Hit
from ..collection.partial import Encoded, encoded
from ..collection.rescoring import RescoringOptions
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
        X: SamplesLike,
        k: int = 10,
        *,
        rescore: bool | None = None,
        oversample: int | None = None,
        metric: str | None = None,
        class_first: int | None = None,
        **filters: Any,
    ) -> list[list[Hit]]:
        """Return the k nearest items of each query, by distance and then by id.

        The arguments are those of :meth:`starshl.Collection.search`, without ``items``, ``by_scores`` and ``reject``;
        ``filters`` are ``where``, ``among`` and ``labels``.
        """
        k, filters = check_integer(k, "k", low=1), _checked(filters)
        if rescore is not False and len(self._keeps) > 1:
            raise ValueError(
                f"The collections keep vectors in different ways ({', '.join(sorted(map(str, self._keeps)))}), so they "
                "cannot be rescored together. Give rescore=False, or collections that keep them in one way."
            )
        options = RescoringOptions(rescore, oversample, metric, class_first)
        return MergedSearch(self._ask, self._encoded(X, options), filters).nearest(k)

    def search_radius(self, X: SamplesLike, radius: float = 0, **filters: Any) -> list[list[Hit]]:
        """Return all items within ``radius`` of each query, by distance and then by id."""
        return MergedSearch(self._ask, self._encoded(X, None), _checked(filters)).within(radius)

    def _encoded(self, X: SamplesLike, options: RescoringOptions | None) -> Encoded:
        """Let one worker encode queries for all; every collection has the same hasher."""
        (found,) = self._engine.map(partial(_answer, encoded, (X, options)), self.folders[:1])
        return cast(Encoded, found)

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> list[Any]:
        return list(self._engine.map(partial(_answer, question, arguments), self.folders))


def _checked(filters: dict[str, Any]) -> dict[str, Any]:
    for name in ("items", "by_scores", "reject"):
        if name in filters:
            raise TypeError(f"A sharded collection cannot be searched with {name!r}. Search a single collection.")
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
