"""BucketIndex: equal codes grouped, so that a search costs what the different codes cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from .._threads import run_all, tiles
from ..codes.hamming import nearest, within
from . import _bucket_loops as loops
from ._near_loops import distance_table, members_of_nearest, table_size
from .scan import ID_SIZE, MOST_MEMORY, ScanIndex, empty_planes, held_size, packed_size

__all__ = ["BucketIndex"]

# Tables pay when buckets are large, and must not weigh much beside the items that they find.
_ITEMS_A_BUCKET_FOR_SLOTS = 8
_QUERIES_A_TASK = 1024
_QUERIES_LOOKED_AT = 256
_DISTANCES_FOR_THREADS = 1 << 21

_START_SIZE = 4

_EVERY_ITEM = np.empty(0, np.bool_)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Different codes (columns of ``planes``) and their items, in the order of their lowest ids.

    The ids of bucket b are ``ids[starts[b] : starts[b + 1]]``, ascending. Because buckets are ordered by
    lowest id, a bucket that follows k others at the same distance cannot hold one of the k nearest.

    Where ``starts`` is None, every item has a column of its own, and columns may be equal.
    """

    planes: np.ndarray
    starts: np.ndarray | None
    ids: np.ndarray

    def merged(self, most: int) -> Buckets:
        """Join buckets of equal codes and restore the order; single items if there are more than ``most`` codes."""
        groups, firsts = loops.group_rows(self.planes)
        if len(firsts) > most or len(firsts) == len(self.ids):
            return self.single_items()
        starts, ids = loops.pool_spans(self.spans(), self.ids, groups, len(firsts))
        return Buckets(self._columns(firsts), _compact(starts), ids).ordered()

    def single_items(self) -> Buckets:
        """Return the same items with a column each, by id."""
        which = np.arange(len(self)) if self.starts is None else np.repeat(np.arange(len(self)), np.diff(self.starts))
        if np.any(self.ids[1:] < self.ids[:-1]):
            order = np.argsort(self.ids)
            return Buckets(self._columns(which[order]), None, self.ids[order])
        return self if self.starts is None else Buckets(self._columns(which), None, self.ids)

    def joined(self, other: Buckets, most: int) -> Buckets:
        """Return the buckets of both, merged."""
        starts = None
        if self.starts is not None or other.starts is not None:
            starts = np.concatenate([self.spans(), len(self.ids) + other.spans()[1:]])
        planes = np.concatenate([self.planes, other.planes], axis=1)
        return Buckets(planes, starts, np.concatenate([self.ids, other.ids])).merged(most)

    def spans(self) -> np.ndarray:
        """Return the starts, made up where every item has a column of its own."""
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
        lowest = self.ids[self.starts[:-1]]
        lowest = lowest if by is None else by[lowest]
        if not np.any(lowest[1:] < lowest[:-1]):
            return self
        rank = np.empty(len(lowest), np.int64)
        order = np.argsort(lowest)
        rank[order] = np.arange(len(lowest))
        starts, ids = loops.pool_spans(self.starts, self.ids, rank, len(lowest))
        return Buckets(self._columns(order), _compact(starts), ids)

    def _columns(self, which: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.planes[:, which])

    def __len__(self) -> int:
        return self.planes.shape[1]


def _compact(starts: np.ndarray) -> np.ndarray:
    """Return starts in 4 bytes each if they fit."""
    return starts.astype(np.int32 if starts[-1] <= np.iinfo(np.int32).max else np.int64, copy=False)


def _starts_of(sizes: np.ndarray) -> np.ndarray:
    return _compact(np.concatenate([[0], np.cumsum(sizes)]))


def _words(planes: np.ndarray) -> np.ndarray:
    """Return the first plane as words of 64 bits."""
    return planes[0].astype(np.uint64, copy=False)


class BucketIndex(ScanIndex):
    """Search among the different codes only: the index for learned codes, which are few.

    A supervised hasher gives thousands of items the same code. They are kept as one bucket, so a search
    costs O(different codes), and a query that equals a code with at least k items costs one look-up. Where
    codes have at most 64 bits and buckets hundreds of items, tables make the search of the different codes
    three times as fast as a scan. Adding and removing cost O(len) a call: do both in batches. Where most codes
    are different, items are not grouped: that would take more memory and save little time.

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
    >>> ids, distances = index.search(BinaryCodes.from_signs(signs[:1]), k=4)
    >>> ids.tolist(), distances.tolist()
    ([[0, 2, 4, 1]], [[0, 0, 0, 3]])
    """

    kind = "buckets"

    def __init__(self, n_bits: int, *, n_jobs: int | None = None) -> None:
        super().__init__(n_bits, n_jobs=n_jobs)
        self._hold(Buckets(empty_planes(self.n_bits), np.zeros(1, np.int32), np.empty(0, np.int64)))

    @property
    def ids(self) -> np.ndarray:
        ids = self._buckets.ids[:]
        ids.flags.writeable = False
        return ids

    @property
    def n_buckets(self) -> int:
        """How many different codes there are."""
        if self._buckets.starts is None:
            return loops.count_groups(self._buckets.planes, len(self))
        return len(self._buckets)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = (self._buckets.planes, self._buckets.starts, self._buckets.ids, self._slots, self._near)
        return sum(array.nbytes for array in held if array is not None)

    def __len__(self) -> int:
        return len(self._buckets.ids)

    def _hold(self, buckets: Buckets) -> None:
        self._buckets = buckets
        self._slots = self._near = None
        if _ITEMS_A_BUCKET_FOR_SLOTS * len(buckets) <= len(buckets.ids):
            # The more slots are empty, the sooner a code that is not stored is known to be none; a slot is 4 bytes.
            slots_a_row = min(8, len(buckets.ids) // (4 * max(len(buckets), 1)))
            self._slots = loops.make_table(buckets.planes, np.arange(len(buckets)), len(buckets), slots_a_row)
        # One plane is one word a code; the table may take a byte an item.
        if len(buckets.planes) == 1 and table_size(len(buckets)) <= len(buckets.ids):
            self._near = distance_table(_words(buckets.planes))

    def _insert(self, planes: np.ndarray, ids: np.ndarray) -> None:
        added, most = Buckets(planes, None, ids), self._most_buckets(len(self) + len(ids))
        self._hold(self._buckets.joined(added, most) if len(self) else added.merged(most))

    def _keep(self, mask: np.ndarray) -> None:
        kept, _ = self._buckets.selected(mask)
        self._hold(kept.merged(self._most_buckets(len(kept.ids))))

    def _most_buckets(self, n_items: int) -> int:
        """Return how many buckets of so many items stay within the memory that an index may take."""
        for_buckets = n_items * (MOST_MEMORY * packed_size(self.n_bits) - ID_SIZE) - _START_SIZE
        return max(0, int(for_buckets / (held_size(self.n_bits) - ID_SIZE + _START_SIZE)))

    def _find(self, ids: np.ndarray) -> np.ndarray:
        order = np.argsort(ids)
        ascending = ids[order]
        places = np.minimum(np.searchsorted(ascending, self._buckets.ids), max(len(ids) - 1, 0))
        found = np.full(len(ids), -1)
        if len(ids):
            hits = np.flatnonzero(ascending[places] == self._buckets.ids)
            found[order[places[hits]]] = hits
        return found

    def _last_id(self) -> int | None:
        return int(self._buckets.ids.max()) if len(self) else None

    def _nearest(self, queries: np.ndarray, k: int, mask) -> tuple[np.ndarray, np.ndarray]:
        if self._slots is None:
            return self._scan(queries, k, mask)
        positions = np.empty((queries.shape[1], k), np.int64)
        distances = np.empty((queries.shape[1], k), np.int32)
        done = np.zeros(queries.shape[1], np.bool_)
        look = partial(self._take_nearest, queries, mask, positions, distances, done)
        tasks = [partial(look, some) for some in tiles(len(done), _QUERIES_A_TASK)]
        run_all(tasks, self.n_jobs if self._threads_pay(queries) else 1)
        if not done.all():
            rest = np.ascontiguousarray(queries[:, ~done])
            positions[~done], distances[~done] = self._scan(rest, k, mask)
        return positions, distances

    def _threads_pay(self, queries: np.ndarray) -> bool:
        """Starting a thread costs as much as thousands of queries that equal a stored code; the first ones tell."""
        if queries.shape[1] * len(self._buckets) < _DISTANCES_FOR_THREADS:
            return False
        first = np.ascontiguousarray(queries[:, :_QUERIES_LOOKED_AT])
        share = np.mean(loops.look_up(self._buckets.planes, self._slots, first) < 0)
        return share * queries.shape[1] * len(self._buckets) >= _DISTANCES_FOR_THREADS

    def _take_nearest(self, queries, mask, positions, distances, done, some: slice) -> None:
        """Answer the queries whose nearest buckets hold k items that pass."""
        buckets, queries = self._buckets, np.ascontiguousarray(queries[:, some])
        # Where k exceeds the usual bucket, the nearest ones are seldom enough: leave those queries to the scan.
        enough = self._near is not None and positions.shape[1] * len(buckets) <= len(buckets.ids)
        members_of_nearest(
            self._near if enough else np.empty(0, np.uint8),
            _words(buckets.planes),
            buckets.starts,
            buckets.ids,
            _EVERY_ITEM if mask is None else mask,
            loops.look_up(buckets.planes, self._slots, queries),
            _words(queries),
            positions[some],
            distances[some],
            done[some],
        )

    def _scan(self, queries: np.ndarray, k: int, mask) -> tuple[np.ndarray, np.ndarray]:
        if mask is not None:
            buckets, kept = self._buckets.selected(mask)
            positions, distances = self._scan_buckets(buckets, queries, k)
            return kept[positions], distances
        return self._scan_buckets(self._buckets, queries, k)

    def _scan_buckets(self, buckets: Buckets, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        if buckets.starts is None or len(buckets) == len(buckets.ids):
            return nearest(buckets.planes, queries, k, self.n_bits, n_jobs=self.n_jobs)
        rows, distances = nearest(
            buckets.planes, queries, k, self.n_bits, item_starts=buckets.starts, n_jobs=self.n_jobs
        )
        positions = np.empty((queries.shape[1], k), np.int64)
        member_distances = np.empty((queries.shape[1], k), np.int32)
        loops.nearest_members(buckets.starts, buckets.ids, rows, distances, positions, member_distances)
        return positions, member_distances

    def _within(self, queries: np.ndarray, radii: np.ndarray, mask) -> tuple[np.ndarray, ...]:
        buckets, kept = self._buckets, None
        if mask is not None:
            buckets, kept = buckets.selected(mask)
        starts, rows, distances = within(buckets.planes, queries, radii, self.n_bits, n_jobs=self.n_jobs)
        if buckets.starts is not None:
            starts, rows, distances = loops.members_within(buckets.starts, buckets.ids, starts, rows, distances)
        return starts, rows if kept is None else kept[rows], distances

    def _rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._buckets.starts is None:
            return self._buckets.planes, positions
        buckets = np.searchsorted(self._buckets.starts, positions, side="right") - 1
        return self._buckets.planes, buckets

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"ids": self._buckets.ids, "planes": self._buckets.planes, "starts": self._buckets.spans()}

    @classmethod
    def _from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], n_jobs: int | None) -> Self:
        index = cls(n_bits, n_jobs=n_jobs)
        planes, starts, ids = arrays["planes"], arrays["starts"], arrays["ids"]
        index._hold(Buckets(planes, None if len(starts) == len(ids) + 1 else starts, ids))
        return index
