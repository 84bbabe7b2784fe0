"""ShardedIndex: codes spread over the workers of a cluster, searched as if they were in one place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from operator import attrgetter, methodcaller
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import check_integer
from .._common.words import counted
from ..codes.binary import BinaryCodes
from ..codes.queries import EncodedQueries
from ..exceptions import UnknownIdError
from ..index.base import HammingIndex, Neighbors, RadiusNeighbors, Wanted, next_ids
from ..index.memory import FlatIndex, MemoryIndex
from .code_folder import load_codes, read_manifest
from .engine import DaskEngine


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


class _Shards(NamedTuple):
    """The futures of all shards, and how many items these hold; replaced as a whole by every change."""

    shards: tuple[Any, ...]
    n_items: int


class ShardedIndex(HammingIndex):
    """Exact search over shards that workers hold; equal to one index with all codes.

    Every worker answers for its shards, and the answers are merged by distance and then by id: the distance of an item
    depends on the query and the item alone. A shard is the result of a task that never changes: when a worker is lost,
    Dask makes its shards again from the codes that were added, or reads them from their files again.

    Parameters
    ----------
    n_bits : int
    client : distributed.Client
    like : MemoryIndex, default=None
        An empty index of the kind that shards are, such as ``hasher.make_index(codes[:0])`` for codes that a hasher
        compares in its own way; None is :class:`starshl.index.FlatIndex`.

    Examples
    --------
    ::

        index = ShardedIndex.open("codes", client)      # what starshl.distributed.encode has written
        distances, ids = index.search(hasher.encode(X), k=10)
    """

    def __init__(self, n_bits: int, client: Any, *, like: MemoryIndex | None = None) -> None:
        self.n_bits = check_integer(n_bits, "n_bits", low=1)
        self._like = FlatIndex(self.n_bits) if like is None else like
        if self._like.n_bits != self.n_bits or len(self._like):
            raise ValueError(
                f"like holds {counted(len(self._like), 'code')}, of {counted(self._like.n_bits, 'bit')}; it must be "
                f"empty, for codes of {counted(self.n_bits, 'bit')}. Give hasher.make_index(codes[:0])."
            )
        # What these classes promise, an index of shards keeps.
        self.supports = self._like.supports & {"mask", "probability", "reconstruct", "remove", "threads"}
        self.metric, self.distance_type = self._like.metric, self._like.distance_type
        self._engine = DaskEngine(client)
        self._state = _Shards((), 0)
        self._changing = Lock()

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        client: Any,
        *,
        shard_partitions: int = 16,
        like: MemoryIndex | None = None,
    ) -> Self:
        """Return an index of the codes that :func:`starshl.distributed.encode` wrote; ids are the numbers of the rows.

        Workers read the files themselves, so all of them must be able to reach the folder. ``shard_partitions`` of them
        make up a shard.
        """
        manifest = read_manifest(folder)
        step = check_integer(shard_partitions, "shard_partitions", low=1)
        if not manifest["complete"]:
            load_codes(folder)  # says why not
        index = cls(manifest["n_bits"], client, like=like)
        index.space_id = manifest["space_id"]
        lengths = [entry["rows"] for entry in manifest["partitions"]]
        firsts = np.cumsum([0, *lengths])
        path = os.path.abspath(folder)
        shards = tuple(
            index._engine.submit(
                *(_read_shard, index._like, path, range(start, min(start + step, len(lengths))), int(firsts[start]))
            )
            for start in range(0, len(lengths), step)
        )
        index._state = _Shards(shards, manifest["n_rows"])
        return index

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending."""
        found = self._ask(attrgetter("ids"))
        ids = np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)
        ids.flags.writeable = False
        return ids

    def __len__(self) -> int:
        return self._state.n_items

    def _write_lock(self) -> AbstractContextManager[object]:
        return self._changing

    def _add(
        self, codes: BinaryCodes, ids: np.ndarray | None, metadata: Sequence[Mapping[str, Any]] | None
    ) -> np.ndarray:
        if ids is None:
            lasts = [last for last in self._ask(attrgetter("last_id")) if last is not None]
            ids = next_ids(len(codes), max(lasts, default=None))
        if len(ids):
            present = ids[np.any([np.zeros(len(ids), bool), *self._ask(methodcaller("holds", ids))], axis=0)]
            if len(present):
                raise ValueError(
                    f"The id {present[0]} is already in the index, and nothing was added. "
                    "Remove it first, or give a new id."
                )
            shards, n_items = self._state
            self._state = _Shards(
                (*shards, self._engine.submit(_with_codes, self._like, codes, ids)), n_items + len(ids)
            )
        return ids

    def _remove(self, ids: np.ndarray) -> None:
        with self._changing:
            self._require_known(ids)
            shards = tuple(self._engine.submit(_without, shard, ids) for shard in self._state.shards)
            self._state = _Shards(shards, self._state.n_items - len(ids))

    def _search(self, queries: EncodedQueries, k: int, wanted: Wanted) -> Neighbors:
        search = methodcaller("search", _of_any_space(queries), k, **self._of_shards(wanted))
        return merged_neighbors(self._ask(search), len(queries), k)

    def _search_radius(self, queries: EncodedQueries, radius: float, wanted: Wanted) -> RadiusNeighbors:
        search = methodcaller("search_radius", _of_any_space(queries), radius, **self._of_shards(wanted))
        return merged_radius_neighbors(self._ask(search), len(queries))

    def _of_shards(self, wanted: Wanted) -> dict[str, Any]:
        """Return the arguments of a search of each shard."""
        among = {"among": self._as_ids(wanted.among)}
        return among | ({"min_probability": wanted.min_probability} if "probability" in self.supports else {})

    def probabilities(self, queries: BinaryCodes | EncodedQueries, ids: ArrayLike) -> np.ndarray:
        self._require("probability")
        asked, wanted = self._asked(queries), np.asarray(ids)
        self._require_known(np.setdiff1d(wanted, -1))
        # Each item is in one shard, and its probability is 0 in the others.
        found = [np.zeros(wanted.shape), *self._ask(partial(_probabilities, _of_any_space(asked), wanted))]
        return np.sum(found, axis=0)

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        self._require_known(ids)
        nothing = self._like.reconstruct([])
        packed = np.empty((len(ids), nothing.packed.shape[1]), np.uint8)
        classes = np.full(len(ids), -1, np.int32)
        for places, found in self._ask(partial(_codes_of, ids)):
            packed[places] = found.packed
            if found.classes is not None:
                classes[places] = found.classes
        return BinaryCodes(packed, self.n_bits, classes=classes if np.any(classes >= 0) else None)

    def _as_ids(self, among: np.ndarray | None) -> np.ndarray | None:
        if among is None or among.dtype != np.bool_:
            return among
        ids = self.ids
        if len(among) != len(ids):
            raise ValueError(
                f"among has {len(among)} booleans; the index holds {len(ids)} items. Give one per id in index.ids."
            )
        return ids[among]

    def _require_known(self, ids: np.ndarray) -> None:
        known = np.any([np.zeros(len(ids), bool), *self._ask(methodcaller("holds", ids))], axis=0)
        if not known.all():
            raise UnknownIdError(int(ids[~known][0]), "in the index")

    def _ask(self, question: Callable[[MemoryIndex], Any]) -> list[Any]:
        """Return the answer of every shard, asked side by side."""
        asked = [self._engine.submit(_answer, shard, question) for shard in self._state.shards]
        return [self._engine.fetch(each) for each in asked]


def _answer(shard: MemoryIndex, question: Callable[[MemoryIndex], Any]) -> Any:
    return question(shard)


# The index asks once whether spaces agree; shards know none.


def _with_codes(like: MemoryIndex, codes: BinaryCodes, ids: np.ndarray) -> MemoryIndex:
    """Return a shard of these codes."""
    shard = copy(like)
    shard.add(replace(codes, space_id=None), ids)
    return shard


def _read_shard(like: MemoryIndex, folder: str, partitions: range, first: int) -> MemoryIndex:
    shard = copy(like)
    for partition in partitions:
        codes = load_codes(folder, partition)
        shard.add(replace(codes, space_id=None), np.arange(first, first + len(codes)))
        first += len(codes)
    return shard


def _of_any_space(queries: EncodedQueries) -> EncodedQueries:
    return replace(queries, codes=replace(queries.codes, space_id=None))


def _without(shard: MemoryIndex, ids: np.ndarray) -> MemoryIndex:
    """Return a shard without some ids; the given one stays as it is, because others may be reading it."""
    ids = ids[shard.holds(ids)]
    if len(ids) == 0:
        return shard
    smaller = copy(shard)
    smaller.remove(ids)
    return smaller


def _probabilities(queries: EncodedQueries, ids: np.ndarray, shard: MemoryIndex) -> np.ndarray:
    here = np.isin(ids, shard.ids)
    return np.where(here, shard.probabilities(queries, np.where(here, ids, -1)), 0.0)


def _codes_of(ids: np.ndarray, shard: MemoryIndex) -> tuple[np.ndarray, BinaryCodes]:
    places = np.flatnonzero(shard.holds(ids))
    return places, shard.reconstruct(ids[places])
