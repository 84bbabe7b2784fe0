"""BucketIndex: equal codes grouped, so that the cost of a search depends on the number of different codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from .._common.threads import run_all, tiles
from ..codes.binary import BinaryCodes
from ..codes.hamming import nearest, to_planes, within
from . import _bucket_loops as loops
from ._bucket_loops import distance_table, members_of_nearest, table_size
from .items import (
    ID_BYTES,
    MAX_MEMORY_RATIO,
    HammingItems,
    Hits,
    check_buckets,
    check_columns,
    check_names,
    empty_planes,
    held_size,
    packed_size,
    positions_of_ids,
)
from .memory import CodeIndex

# Tables pay off when buckets are large, and must stay small compared with the items that they point to.
_MIN_BUCKET_SIZE_FOR_SLOTS = 8
_MAX_SLOTS_PER_BUCKET = 8
_SLOT_BYTES = 4
_START_BYTES = 4
_QUERIES_PER_TASK = 1024  # enough work to be worth handing out
_SAMPLE_QUERIES = 256  # that show whether most queries equal a stored code
_MIN_DISTANCES_FOR_THREADS = 1 << 21  # below, starting threads costs more than it saves
_EVERY_ITEM = np.empty(0, np.bool_)
_NO_TABLE = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Different codes (columns of ``planes``) and their items, in the order of their lowest ids.

    The ids of bucket b are ``ids[starts[b] : starts[b + 1]]``: at least one, ascending. Because buckets are ordered
    by lowest id, a bucket that follows k others at the same distance cannot hold one of the k nearest.

    Where ``starts`` is None, every item has its own column, and columns may be equal.
    """

    planes: np.ndarray
    starts: np.ndarray | None
    ids: np.ndarray

    def merged(self, max_codes: int) -> Buckets:
        """Join buckets of equal codes and restore the order; single items above ``max_codes`` codes."""
        groups, firsts = loops.group_rows(self.planes)
        if len(firsts) > max_codes or len(firsts) == len(self.ids):
            return self.single_items()
        starts, ids = loops.pool_spans(self.spans(), self.ids, groups, len(firsts))
        return Buckets(self._columns(firsts), _compact(starts), ids).ordered()

    def single_items(self) -> Buckets:
        """Return the same items with one column per item, by id."""
        which = np.arange(len(self)) if self.starts is None else np.repeat(np.arange(len(self)), np.diff(self.starts))
        if np.any(self.ids[1:] < self.ids[:-1]):
            order = np.argsort(self.ids)
            return Buckets(self._columns(which[order]), None, self.ids[order])
        return self if self.starts is None else Buckets(self._columns(which), None, self.ids)

    def joined(self, other: Buckets, max_codes: int) -> Buckets:
        """Return the buckets of both, merged."""
        starts = None
        if self.starts is not None or other.starts is not None:
            starts = np.concatenate([self.spans(), len(self.ids) + other.spans()[1:]])
        planes = np.concatenate([self.planes, other.planes], axis=1)
        return Buckets(planes, starts, np.concatenate([self.ids, other.ids])).merged(max_codes)

    def spans(self) -> np.ndarray:
        """Return the starts; where every item has its own column, these are 0, 1, 2, ..."""
        return _compact(np.arange(len(self.ids) + 1)) if self.starts is None else self.starts

    def selected(self, mask: np.ndarray) -> tuple[Buckets, np.ndarray]:
        """Return the buckets of the items whose mask is set, and the old position of each new one."""
        if self.starts is None:
            kept = np.flatnonzero(mask)
            return Buckets(self._columns(kept), None, self.ids[kept]), kept
        kept, sizes = loops.select_members(self.starts, mask)
        filled = np.flatnonzero(sizes)
        # Spans of positions are ordered like spans of ids, because both ascend within a bucket.
        spans = Buckets(self._columns(filled), _starts_of(sizes[filled]), kept)
        spans = spans.ordered(by=self.ids)
        return Buckets(spans.planes, spans.starts, self.ids[spans.ids]), spans.ids

    def ordered(self, by: np.ndarray | None = None) -> Buckets:
        """Return the same buckets in the order of their lowest ids, or of ``by`` at these."""
        old_starts = self.spans()
        lowest = self.ids[old_starts[:-1]]
        lowest = lowest if by is None else by[lowest]
        if not np.any(lowest[1:] < lowest[:-1]):
            return self
        rank = np.empty(len(lowest), np.int64)
        order = np.argsort(lowest)
        rank[order] = np.arange(len(lowest))
        starts, ids = loops.pool_spans(old_starts, self.ids, rank, len(lowest))
        return Buckets(self._columns(order), _compact(starts), ids)

    def _columns(self, which: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.planes[:, which])

    def __len__(self) -> int:
        return self.planes.shape[1]


def _compact(starts: np.ndarray) -> np.ndarray:
    """Return starts as 32-bit integers if they fit."""
    return starts.astype(np.int32 if starts[-1] <= np.iinfo(np.int32).max else np.int64, copy=False)


def _starts_of(sizes: np.ndarray) -> np.ndarray:
    return _compact(np.concatenate([[0], np.cumsum(sizes)]))


@dataclass(frozen=True, eq=False)
class BucketItems(HammingItems):
    """Buckets, and the tables that find the ones nearest to a query.

    ``slots`` is a hash table of the codes, ``near`` holds distances to pieces of codes; both are None where they
    would not pay off.
    """

    n_bits: int
    buckets: Buckets
    slots: np.ndarray | None
    near: np.ndarray | None

    @classmethod
    def of(cls, n_bits: int, buckets: Buckets) -> Self:
        """Return the items of these buckets with the tables that suit them."""
        slots = near = None
        if _MIN_BUCKET_SIZE_FOR_SLOTS * len(buckets) <= len(buckets.ids):
            # The more empty slots, the sooner the search for a code that is not stored ends.
            affordable = len(buckets.ids) // (_SLOT_BYTES * max(len(buckets), 1))
            slots = loops.make_table(
                buckets.planes, np.arange(len(buckets)), len(buckets), min(_MAX_SLOTS_PER_BUCKET, affordable)
            )
        # The table takes codes of one word. It may use one byte per item.
        if len(buckets.planes) == 1 and table_size(len(buckets)) <= len(buckets.ids):
            near = distance_table(_words(buckets.planes))
        return cls(n_bits, buckets, slots, near)

    @classmethod
    def empty(cls, n_bits: int) -> Self:
        return cls.of(n_bits, Buckets(empty_planes(n_bits), np.zeros(1, np.int32), np.empty(0, np.int64)))

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray]) -> Self:
        check_names(arrays, ("ids", "planes", "starts"))
        planes, starts, ids = arrays["planes"], arrays["starts"], arrays["ids"]
        check_columns(planes, n_bits, len(starts) - 1)
        check_buckets(planes, starts, ids)
        return cls.of(n_bits, Buckets(planes, None if len(starts) == len(ids) + 1 else starts, ids))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"ids": self.buckets.ids, "planes": self.buckets.planes, "starts": self.buckets.spans()}

    @property
    def ids(self) -> np.ndarray:
        return self.buckets.ids

    @property
    def last_id(self) -> int | None:
        return int(self.ids.max()) if len(self) else None

    @property
    def n_codes(self) -> int:
        """How many different codes there are."""
        if self.buckets.starts is None:
            return loops.count_groups(self.buckets.planes, len(self))
        return len(self.buckets)

    @property
    def nbytes(self) -> int:
        held = (self.buckets.planes, self.buckets.starts, self.buckets.ids, self.slots, self.near)
        return sum(array.nbytes for array in held if array is not None)

    def inserted(self, codes: BinaryCodes, ids: np.ndarray) -> Self:
        added, max_codes = Buckets(to_planes(codes), None, ids), self._max_codes(len(self) + len(ids))
        return self.of(self.n_bits, self.buckets.joined(added, max_codes) if len(self) else added.merged(max_codes))

    def without_capacity(self) -> Self:
        return self  # they have none

    def selected(self, mask: np.ndarray) -> Self:
        kept, _ = self.buckets.selected(mask)
        return self.of(self.n_bits, kept.merged(self._max_codes(len(kept.ids))))

    def _max_codes(self, n_items: int) -> int:
        """Return how many buckets an index of this many items may have within its memory limit."""
        for_buckets = n_items * (MAX_MEMORY_RATIO * packed_size(self.n_bits) - ID_BYTES) - _START_BYTES
        return max(0, int(for_buckets / (held_size(self.n_bits) - ID_BYTES + _START_BYTES)))

    def find(self, ids: np.ndarray) -> np.ndarray:
        return positions_of_ids(self.ids, ids)

    def nearest(
        self, queries: np.ndarray, k: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.slots is None:
            return self._scan(queries, k, mask, n_jobs)
        positions = np.empty((queries.shape[1], k), np.int64)
        distances = np.empty((queries.shape[1], k), np.int32)
        done = np.zeros(queries.shape[1], np.bool_)
        look = partial(self._take_nearest, queries, mask, positions, distances, done)
        tasks = [partial(look, some) for some in tiles(len(done), _QUERIES_PER_TASK)]
        run_all(tasks, n_jobs if self._threads_pay(queries) else 1)
        if not done.all():
            rest = np.ascontiguousarray(queries[:, ~done])
            positions[~done], distances[~done] = self._scan(rest, k, mask, n_jobs)
        return positions, distances

    def _threads_pay(self, queries: np.ndarray) -> bool:
        """Return whether enough queries need distances: starting a thread costs as much as thousands of look-ups."""
        if queries.shape[1] * len(self.buckets) < _MIN_DISTANCES_FOR_THREADS:
            return False
        first = np.ascontiguousarray(queries[:, :_SAMPLE_QUERIES])
        share = np.mean(loops.look_up(self.buckets.planes, self.slots, first) < 0)
        return share * queries.shape[1] * len(self.buckets) >= _MIN_DISTANCES_FOR_THREADS

    def _take_nearest(
        self,
        queries: np.ndarray,
        mask: np.ndarray | None,
        positions: np.ndarray,
        distances: np.ndarray,
        done: np.ndarray,
        some: slice,
    ) -> None:
        """Answer the queries whose nearest buckets hold k items that pass."""
        buckets, queries = self.buckets, np.ascontiguousarray(queries[:, some])
        # Where k exceeds the usual bucket, the nearest ones are rarely enough: leave those queries to the scan.
        enough = self.near is not None and positions.shape[1] * len(buckets) <= len(buckets.ids)
        members_of_nearest(
            self.near if enough else _NO_TABLE,
            _words(buckets.planes),
            buckets.starts,
            buckets.ids,
            _EVERY_ITEM if mask is None else mask,
            loops.look_up(buckets.planes, self.slots, queries),
            _words(queries),
            positions[some],
            distances[some],
            done[some],
        )

    def _scan(
        self, queries: np.ndarray, k: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        if mask is not None:
            buckets, kept = self.buckets.selected(mask)
            positions, distances = self._scan_buckets(buckets, queries, k, n_jobs)
            return kept[positions], distances
        return self._scan_buckets(self.buckets, queries, k, n_jobs)

    def _scan_buckets(
        self, buckets: Buckets, queries: np.ndarray, k: int, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        if buckets.starts is None or len(buckets) == len(buckets.ids):
            return nearest(buckets.planes, queries, k, self.n_bits, n_jobs=n_jobs)
        rows, distances = nearest(buckets.planes, queries, k, self.n_bits, item_starts=buckets.starts, n_jobs=n_jobs)
        positions = np.empty((queries.shape[1], k), np.int64)
        member_distances = np.empty((queries.shape[1], k), np.int32)
        loops.nearest_members(buckets.starts, buckets.ids, rows, distances, positions, member_distances)
        return positions, member_distances

    def within(self, queries: np.ndarray, radii: np.ndarray, mask: np.ndarray | None, n_jobs: int | None) -> Hits:
        buckets, kept = self.buckets, None
        if mask is not None:
            buckets, kept = buckets.selected(mask)
        starts, rows, distances = within(buckets.planes, queries, radii, self.n_bits, n_jobs=n_jobs)
        if buckets.starts is not None:
            starts, rows, distances = loops.members_within(buckets.starts, buckets.ids, starts, rows, distances)
        return starts, rows if kept is None else kept[rows], distances

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.buckets.starts is None:
            return self.buckets.planes, positions
        return self.buckets.planes, np.searchsorted(self.buckets.starts, positions, side="right") - 1


class BucketIndex(CodeIndex):
    """Search only among the distinct codes: the index for learned codes, of which few are distinct.

    A supervised hasher gives thousands of items the same code. They are kept as one bucket, so a search costs
    O(distinct codes), and a query that equals a code with at least k items costs one lookup. If codes have at most 64
    bits and buckets hold hundreds of items, tables make the search of the different codes three times as fast as a
    scan. Adding and removing cost O(len) per call: do both in batches. If most codes are different, items are not
    grouped: that would take more memory and save little time.

    Parameters
    ----------
    n_bits : int
    n_jobs : int, default=None
        Threads of a search; None means one. Results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> from starshl.index import BucketIndex
    >>> signs = np.array([[1, 1, 1], [-1, -1, -1]])
    >>> index = BucketIndex.from_codes(BinaryCodes.from_signs(signs[[0, 1, 0, 1, 0]]))
    >>> index.n_buckets
    2
    >>> distances, ids = index.search(BinaryCodes.from_signs(signs[:1]), k=4)
    >>> distances.tolist(), ids.tolist()
    ([[0, 0, 0, 3]], [[0, 2, 4, 1]])
    """

    kind = "buckets"
    items_type = BucketItems
    _items: BucketItems

    @property
    def n_buckets(self) -> int:
        """How many different codes there are."""
        return self._items.n_codes


def _words(planes: np.ndarray) -> np.ndarray:
    """Return the first plane as words of 64 bits."""
    return planes[0].astype(np.uint64, copy=False)
