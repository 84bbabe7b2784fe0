"""Indexes in memory: what all of them share, and the plainest of them, which scans every code."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import check_integer
from ..codes.binary import BinaryCodes
from ..codes.hamming import from_planes, score_penalties, to_planes
from ..codes.queries import EncodedQueries
from ..exceptions import UnknownIdError
from .base import HammingIndex, Neighbors, RadiusNeighbors, Wanted, existing_id, next_ids
from .files import write_index_file
from .items import HammingItems, Hits, IndexItems, RunItems


class MemoryIndex(HammingIndex):
    """An index in memory: items that every change replaces by new ones.

    Threads may search it while others change it: every answer belongs to one state.
    """

    kind: ClassVar[str]
    supports = frozenset({"mask", "reconstruct", "remove", "save", "threads"})
    _items: IndexItems

    def _set_up(self, n_bits: int, items: IndexItems, n_jobs: int | None) -> None:
        self.n_bits = n_bits
        self.n_jobs = n_jobs
        self._items = items
        # Only changes hold it, so that none is lost; a search never waits.
        self._changing = Lock()

    @classmethod
    def from_codes(
        cls, codes: BinaryCodes, ids: ArrayLike | None = None, *, n_jobs: int | None = None, **settings: Any
    ) -> Self:
        """Return a new index of these codes; ``settings`` are further arguments of the class."""
        make: Callable[..., Self] = cls
        index = make(codes.n_bits, n_jobs=n_jobs, **settings)
        index.add(codes, ids)
        return index

    @classmethod
    @abstractmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> Self:
        """Return the index that a file holds; raise ValueError for arrays that a search cannot trust."""

    @property
    def ids(self) -> np.ndarray:
        """All ids, read-only, in the order in which a mask lists the items."""
        ids = self._items.ids[:]
        ids.flags.writeable = False
        return ids

    @property
    def nbytes(self) -> int:
        """Bytes held, spare capacity and tables included."""
        return self._items.nbytes

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_ascending(self) -> bool:
        """Whether ``ids`` ascend."""
        return self._items.ascending

    @property
    def last_id(self) -> int | None:
        """The largest id, or None."""
        return self._items.last_id

    def holds(self, ids: np.ndarray) -> np.ndarray:
        """Return which of these ids, given as int64, are in the index."""
        return self._items.find(ids) >= 0

    def mask(self, ids: np.ndarray) -> np.ndarray:
        """Return one boolean per item, in the order of ``ids``: whether it has one of these ids, given as int64."""
        return self._items.mask(ids)

    def __copy__(self) -> Self:
        """Return an index that shares the items: a change of either one leaves the other as it is."""
        copied = type(self).__new__(type(self))
        with self._changing:
            copied.__setstate__(vars(self) | {"_items": self._items.without_capacity()})
        return copied

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock and the spare capacity, into which the original and its copy could both append."""
        with self._changing:
            items = self._items
            exact = items.selected(np.ones(len(items), np.bool_))
        return {**{name: value for name, value in vars(self).items() if name != "_changing"}, "_items": exact}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._changing = Lock()

    def _write_lock(self) -> AbstractContextManager[object]:
        return self._changing

    def _add(
        self, codes: BinaryCodes, ids: np.ndarray | None, metadata: Sequence[Mapping[str, Any]] | None
    ) -> np.ndarray:
        items = self._items
        ids = next_ids(len(codes), items.last_id) if ids is None else ids
        if len(ids):
            _check_new(items, ids)
            if np.any(ids[1:] < ids[:-1]):
                order = np.argsort(ids)
                self._items = items.inserted(codes[order], ids[order])
            else:
                self._items = items.inserted(codes, ids)
        return ids

    def _remove(self, ids: np.ndarray) -> None:
        with self._changing:
            items = self._items
            mask = np.ones(len(items), np.bool_)
            mask[positions_of(items, ids)] = False
            self._items = items.selected(mask)

    def _save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file; :func:`starshl.index.load_index` reads or memory-maps it."""
        write_index_file(path, *self.pack())

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the header and the arrays that a file holds."""
        return {"kind": self.kind, "n_bits": self.n_bits, "space_id": self.space_id}, self._stored_arrays()

    def _stored_arrays(self) -> dict[str, np.ndarray]:
        return self._items.arrays()


class CodeIndex(MemoryIndex):
    """An index in memory that compares whole codes by Hamming distance."""

    items_type: ClassVar[type[HammingItems]]
    supports = MemoryIndex.supports | {"scores"}
    _items: HammingItems

    def __init__(self, n_bits: int, *, n_jobs: int | None = None) -> None:
        n_bits = check_integer(n_bits, "n_bits", low=1)
        self._set_up(n_bits, self.items_type.empty(n_bits), n_jobs)

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> Self:
        index = cls(n_bits, n_jobs=n_jobs)
        index._items = cls.items_type.from_arrays(index.n_bits, arrays)
        return index

    def _search(self, queries: EncodedQueries, k: int, wanted: Wanted) -> Neighbors:
        items, codes = self._items, queries.codes
        mask, k = passing_items(items, wanted.among, k)
        if k == 0 or not len(codes):
            return Neighbors(np.empty((len(codes), k), np.int32), np.empty((len(codes), k), np.int64))
        planes = to_planes(codes)
        positions, distances = items.nearest(planes, k, mask, self.n_jobs)
        if wanted.scores is not None:
            hits = items.within(planes, distances[:, -1].astype(np.int64), mask, self.n_jobs)
            positions, distances = _best_scored(items, hits, planes, wanted.scores * codes.to_signs(), k)
        return Neighbors(distances, items.ids_at(positions))

    def _search_radius(self, queries: EncodedQueries, radius: float, wanted: Wanted) -> RadiusNeighbors:
        items = self._items
        mask = None if wanted.among is None else _mask(items, wanted.among)
        radii = np.full(len(queries), radius, np.int64)
        starts, positions, distances = items.within(to_planes(queries.codes), radii, mask, self.n_jobs)
        return RadiusNeighbors(starts, distances, items.ids_at(positions))

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        items = self._items
        planes, rows = items.rows(positions_of(items, ids))
        return from_planes(planes[:, rows], self.n_bits)


def _check_new(items: IndexItems, ids: np.ndarray) -> None:
    last = items.last_id
    if last is None or ids.min() > last:
        return
    present = items.find(ids) >= 0
    if present.any():
        raise existing_id(ids[present][0])


def positions_of(items: IndexItems, ids: np.ndarray) -> np.ndarray:
    """Return the position of each id, or raise for one that is not there."""
    positions = items.find(ids)
    if (positions < 0).any():
        raise UnknownIdError(int(ids[positions < 0][0]), "in the index")
    return positions


def passing_items(items: IndexItems, among: np.ndarray | None, k: int) -> tuple[np.ndarray | None, int]:
    """Return a mask of the items that may be returned, None for all, and how many there are, but at most k."""
    mask = None if among is None else _mask(items, among)
    return mask, min(k, len(items)) if mask is None else _n_passing(mask, k)


def _mask(items: IndexItems, among: np.ndarray) -> np.ndarray:
    if among.dtype != np.bool_:
        return items.mask(among)
    if len(among) != len(items):
        raise ValueError(
            f"among has {len(among)} booleans; the index holds {len(items)} items. Give one per id in index.ids."
        )
    return among


def _n_passing(mask: np.ndarray, k: int) -> int:
    """Return how many pass the mask, but at most k; if many pass, it stops before counting all of them."""
    n_first = np.count_nonzero(mask[: 64 * k])
    return k if n_first >= k else min(k, int(np.count_nonzero(mask)))


def _best_scored(
    items: HammingItems, hits: Hits, queries: np.ndarray, weights: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Order each query's hits by distance, score and id; return positions and distances of the first k."""
    starts, positions, distances = hits
    planes, rows = items.rows(positions)
    best = np.empty((len(weights), k), np.int64)
    for q in range(len(weights)):
        span = slice(starts[q], starts[q + 1])
        penalties = score_penalties(planes, rows[span], queries[:, q].copy(), weights[q])
        order = np.lexsort((items.ids_at(positions[span]), penalties, distances[span]))[:k]
        best[q] = starts[q] + order
    return positions[best], distances[best]


class FlatIndex(CodeIndex):
    """Search by scanning every code: the index for codes that are mostly different.

    Items are kept in the order of their ids, so ties need no comparison and bisection finds an id.
    Adding ids above all others appends; any other addition and every removal moves items, in O(len). Ids
    that are consecutive, with few gaps, take no memory.

    Parameters
    ----------
    n_bits : int
    n_jobs : int, default=None
        Threads of a search; None means one. Results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> from starshl.index import FlatIndex
    >>> codes = BinaryCodes.from_signs(np.array([[1, 1, 1], [1, 1, -1], [-1, -1, -1]]))
    >>> index = FlatIndex.from_codes(codes, ids=[30, 20, 10])
    >>> distances, ids = index.search(codes[0], k=2)
    >>> distances.tolist(), ids.tolist()
    ([[0, 1]], [[30, 20]])
    >>> index.search_radius(codes[0], 3, among=[10, 20]).of(0).ids.tolist()
    [20, 10]
    """

    kind = "flat"
    items_type = RunItems
