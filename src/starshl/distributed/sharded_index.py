"""ShardedIndex: codes spread over the workers of a cluster, searched as if they were in one place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np

from .._common.validation import check_integer
from ..codes.binary import BinaryCodes, n_bytes
from ..exceptions import UnknownIdError
from ..index.base import HammingIndex, Neighbors, RadiusNeighbors, next_ids
from ..index.memory import FlatIndex
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
    """Exact search over shards that workers hold; equal to one :class:`starshl.index.FlatIndex` with all codes.

    Every worker answers for its shards, and the answers are merged by distance and then by id. A shard is the result of
    a task that never changes: when a worker is lost, Dask makes its shards again from the codes that were added, or
    reads them from their files again.

    Parameters
    ----------
    n_bits : int
    client : distributed.Client

    Examples
    --------
    ::

        index = ShardedIndex.open("codes", client)      # what starshl.distributed.encode has written
        distances, ids = index.search(hasher.encode(X), k=10)
    """

    supports = frozenset({"mask", "reconstruct", "remove", "threads"})

    def __init__(self, n_bits: int, client: Any) -> None:
        self.n_bits = check_integer(n_bits, "n_bits", low=1)
        self._engine = DaskEngine(client)
        self._state = _Shards((), 0)
        self._changing = Lock()

    @classmethod
    def open(cls, folder: str | os.PathLike[str], client: Any, *, shard_partitions: int = 16) -> Self:
        """Return an index of the codes that :func:`starshl.distributed.encode` wrote; ids are the numbers of the rows.

        Workers read the files themselves, so all of them must be able to reach the folder. ``shard_partitions`` of them
        make up a shard.
        """
        manifest = read_manifest(folder)
        step = check_integer(shard_partitions, "shard_partitions", low=1)
        if not manifest["complete"]:
            load_codes(folder)  # says why not
        index = cls(manifest["n_bits"], client)
        index.space_id = manifest["space_id"]
        lengths = [entry["rows"] for entry in manifest["partitions"]]
        firsts = np.cumsum([0, *lengths])
        path = os.path.abspath(folder)
        shards = tuple(
            index._engine.submit(_read_shard, path, range(start, min(start + step, len(lengths))), int(firsts[start]))
            for start in range(0, len(lengths), step)
        )
        index._state = _Shards(shards, manifest["n_rows"])
        return index

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending."""
        found = self._ask(_ids_of)
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
            lasts = [last for last in self._ask(_last_id_of) if last is not None]
            ids = next_ids(len(codes), max(lasts, default=None))
        if len(ids):
            present = ids[np.any([np.zeros(len(ids), bool), *self._ask(_holds, ids)], axis=0)]
            if len(present):
                raise ValueError(
                    f"The id {present[0]} is already in the index, and nothing was added. "
                    "Remove it first, or give a new id."
                )
            shards, n_items = self._state
            self._state = _Shards((*shards, self._engine.submit(_make_shard, codes, ids)), n_items + len(ids))
        return ids

    def _remove(self, ids: np.ndarray) -> None:
        with self._changing:
            self._require_known(ids)
            shards = tuple(self._engine.submit(_without, shard, ids) for shard in self._state.shards)
            self._state = _Shards(shards, self._state.n_items - len(ids))

    def _search(
        self,
        codes: BinaryCodes,
        k: int,
        *,
        among: np.ndarray | None,
        where: Mapping[str, Any] | None,
        scores: np.ndarray | None,
    ) -> Neighbors:
        return merged_neighbors(self._ask(_nearest, codes, k, self._as_ids(among)), len(codes), k)

    def _search_radius(
        self, codes: BinaryCodes, radius: int, *, among: np.ndarray | None, where: Mapping[str, Any] | None
    ) -> RadiusNeighbors:
        return merged_radius_neighbors(self._ask(_within, codes, radius, self._as_ids(among)), len(codes))

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        self._require_known(ids)
        packed = np.empty((len(ids), n_bytes(self.n_bits)), np.uint8)
        for places, found in self._ask(_codes_of, ids):
            packed[places] = found
        return BinaryCodes(packed, self.n_bits)

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
        known = np.any([np.zeros(len(ids), bool), *self._ask(_holds, ids)], axis=0)
        if not known.all():
            raise UnknownIdError(int(ids[~known][0]), "in the index")

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return the answer of every shard, asked side by side."""
        ask = partial(_answer, question, arguments)
        asked = [self._engine.submit(ask, shard) for shard in self._state.shards]
        return [self._engine.fetch(each) for each in asked]


def _answer(question: Callable[..., Any], arguments: tuple[Any, ...], shard: FlatIndex) -> Any:
    return question(shard, *arguments)


def _make_shard(codes: BinaryCodes, ids: np.ndarray) -> FlatIndex:
    return FlatIndex.from_codes(codes, ids)


def _read_shard(folder: str, partitions: range, first: int) -> FlatIndex:
    shard: FlatIndex | None = None
    for partition in partitions:
        codes = load_codes(folder, partition)
        shard = FlatIndex(codes.n_bits) if shard is None else shard
        shard.add(codes, np.arange(first, first + len(codes)))
        first += len(codes)
    assert shard is not None, "A shard has at least one partition."
    return shard


def _without(shard: FlatIndex, ids: np.ndarray) -> FlatIndex:
    """Return a shard without some ids; the given one stays as it is, because others may be reading it."""
    ids = ids[shard.holds(ids)]
    if len(ids) == 0:
        return shard
    kept = shard.ids[~np.isin(shard.ids, ids)]
    smaller = FlatIndex(shard.n_bits)
    smaller.add(shard.reconstruct(kept), kept)
    return smaller


def _ids_of(shard: FlatIndex) -> np.ndarray:
    return np.array(shard.ids)


def _last_id_of(shard: FlatIndex) -> int | None:
    return shard.last_id


def _holds(shard: FlatIndex, ids: np.ndarray) -> np.ndarray:
    return shard.holds(ids)


def _nearest(shard: FlatIndex, codes: BinaryCodes, k: int, among: np.ndarray | None) -> Neighbors:
    return shard.search(_of_space(codes, shard), k, among=among)


def _within(shard: FlatIndex, codes: BinaryCodes, radius: int, among: np.ndarray | None) -> RadiusNeighbors:
    return shard.search_radius(_of_space(codes, shard), radius, among=among)


def _codes_of(shard: FlatIndex, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    places = np.flatnonzero(shard.holds(ids))
    return places, shard.reconstruct(ids[places]).packed


def _of_space(codes: BinaryCodes, shard: FlatIndex) -> BinaryCodes:
    """Return queries without a question that the whole index has asked already: whether the spaces agree."""
    return BinaryCodes(codes.packed, codes.n_bits, shard.space_id)
