"""What an index in memory holds: codes and ids that never change, so that a search reads the same ones to its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ..codes.binary import BinaryCodes, n_bytes
from ..codes.hamming import n_planes, nearest, to_planes, within, word_type
from ._bucket_loops import count_groups
from .base import all_different

# Bytes of an index over those of its packed codes and ids, padding and spare capacity included.
MAX_MEMORY_RATIO = 1.3
ID_BYTES = 8
# How many of the last bits of ids tell those that are wanted from most others: so many more than their number has, and
# a table of up to 4 MB.
_END_BITS, _MOST_END_BITS = 6, 22
_SPARE_SHARE = 0.125  # capacity for appending, as far as MAX_MEMORY_RATIO allows
# A run takes as much memory as two ids. With fewer ids per run, finding one costs more than it saves.
_MIN_IDS_PER_RUN = 4

#: Where each query's hits start, their positions and their distances.
Hits = tuple[np.ndarray, np.ndarray, np.ndarray]


class IndexItems(ABC):
    """One state of an index in memory.

    A change makes new items, and the index replaces the old ones in a single assignment. Searches that started before
    go on reading the old ones, so that each answer belongs to one state. Positions number the items in the order of
    ``ids``.
    """

    n_bits: int
    #: Whether positions are in the order of ids.
    ascending: ClassVar[bool] = False

    @classmethod
    def empty(cls, n_bits: int) -> Self:
        """Return no items; kinds that need more than the length have their own constructor."""
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray]) -> Self:
        """Return what a file holds; raise ValueError for arrays that a search cannot trust."""
        raise NotImplementedError

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return what an index file holds."""

    @property
    @abstractmethod
    def ids(self) -> np.ndarray:
        """The id of each position."""

    @property
    @abstractmethod
    def last_id(self) -> int | None:
        """The largest id, or None."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held."""

    @abstractmethod
    def inserted(self, codes: BinaryCodes, ids: np.ndarray) -> Self:
        """Return these items and more, whose ids are ascending and new."""

    @abstractmethod
    def selected(self, mask: np.ndarray) -> Self:
        """Return the items at the positions whose mask is set."""

    def without_capacity(self) -> Self:
        """Return the same items, for which room is made again before others are appended."""
        return self.selected(np.ones(len(self), np.bool_))

    @abstractmethod
    def find(self, ids: np.ndarray) -> np.ndarray:
        """Return the position of each id, -1 where there is none."""

    def __len__(self) -> int:
        return len(self.ids)

    def ids_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the ids of positions."""
        return self.ids.take(positions)

    def mask(self, ids: np.ndarray) -> np.ndarray:
        """Return which positions hold one of these ids; ids that are not here change nothing."""
        if 16 * len(ids) > len(self):
            return np.isin(self.ids, ids)
        mask = np.zeros(len(self), np.bool_)
        positions = self.find(ids)
        mask[positions[positions >= 0]] = True
        return mask


class HammingItems(IndexItems):
    """Items that are compared by Hamming distance."""

    @abstractmethod
    def nearest(
        self, queries: np.ndarray, k: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and distances, both of shape (n_queries, k); at least k positions pass the mask."""

    @abstractmethod
    def within(self, queries: np.ndarray, radii: np.ndarray, mask: np.ndarray | None, n_jobs: int | None) -> Hits:
        """Return all items within each query's radius, by distance and then by id."""

    @abstractmethod
    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the planes, and the column in them of each position."""


class PlaneItems(HammingItems):
    """The first ``n_items`` columns of planes."""

    ascending = True

    planes: np.ndarray
    n_items: int

    def arrays(self) -> dict[str, np.ndarray]:
        return {"ids": self.ids, "planes": self.planes[:, : self.n_items]}

    def __len__(self) -> int:
        return self.n_items

    def nearest(
        self, queries: np.ndarray, k: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return nearest(self.planes, queries, k, self.n_bits, n_rows=self.n_items, mask=mask, n_jobs=n_jobs)

    def within(self, queries: np.ndarray, radii: np.ndarray, mask: np.ndarray | None, n_jobs: int | None) -> Hits:
        return within(self.planes, queries, radii, self.n_bits, n_rows=self.n_items, mask=mask, n_jobs=n_jobs)

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.planes, positions


@dataclass(frozen=True, eq=False)
class FlatItems(PlaneItems):
    """The first ``n_items`` columns of the planes and entries of ``id_buffer``, by ascending id.

    Everything after them is spare capacity. Later items may fill it while these are searched, so nothing here may read
    it.
    """

    n_bits: int
    planes: np.ndarray
    id_buffer: np.ndarray
    n_items: int

    @classmethod
    def empty(cls, n_bits: int) -> Self:
        return cls(n_bits, empty_planes(n_bits), np.empty(0, np.int64), 0)

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray]) -> Self:
        check_names(arrays, ("ids", "planes"))
        check_sorted_ids(arrays["ids"])
        check_columns(arrays["planes"], n_bits, len(arrays["ids"]))
        return cls(n_bits, arrays["planes"], arrays["ids"], len(arrays["ids"]))

    @property
    def ids(self) -> np.ndarray:
        return self.id_buffer[: self.n_items]

    @property
    def last_id(self) -> int | None:
        return int(self.id_buffer[self.n_items - 1]) if self.n_items else None

    @property
    def nbytes(self) -> int:
        return self.planes.nbytes + self.id_buffer.nbytes

    def inserted(self, codes: BinaryCodes, ids: np.ndarray) -> Self:
        planes = to_planes(codes)
        n_old, n_new = self.n_items, self.n_items + len(ids)
        if n_old and ids[0] < self.id_buffer[n_old - 1]:
            positions = np.searchsorted(self.ids, ids)
            joined = np.insert(self.planes[:, :n_old], positions, planes, axis=1)
            return replace(self, planes=joined, id_buffer=np.insert(self.ids, positions, ids), n_items=n_new)
        grown = self._with_capacity(n_new)
        grown.planes[:, n_old:n_new] = planes
        grown.id_buffer[n_old:n_new] = ids
        return replace(grown, n_items=n_new)

    def _with_capacity(self, n_items: int) -> Self:
        """Return the same items with capacity for this many."""
        if n_items <= len(self.id_buffer):
            return self
        capacity = grown_capacity(self.n_bits, self.n_items, n_items)
        planes, id_buffer = empty_planes(self.n_bits, capacity), np.empty(capacity, np.int64)
        planes[:, : self.n_items] = self.planes[:, : self.n_items]
        id_buffer[: self.n_items] = self.ids
        return replace(self, planes=planes, id_buffer=id_buffer)

    def without_capacity(self) -> Self:
        # The planes may stay as wide: what they have room for is told by the ids.
        return replace(self, id_buffer=self.ids)

    def selected(self, mask: np.ndarray) -> Self:
        planes = np.ascontiguousarray(self.planes[:, : self.n_items][:, mask])
        ids = self.ids[mask]
        return replace(self, planes=planes, id_buffer=ids, n_items=len(ids))

    def find(self, ids: np.ndarray) -> np.ndarray:
        if not self.n_items:
            return np.full(len(ids), -1)
        first, last = int(self.id_buffer[0]), int(self.id_buffer[self.n_items - 1])
        if last - first + 1 == self.n_items:
            # No id is missing between the first and the last, so positions need no search.
            return np.where((ids >= first) & (ids <= last), ids - np.int64(first), -1)
        positions = np.minimum(np.searchsorted(self.ids, ids), self.n_items - 1)
        return np.where(self.id_buffer[positions] == ids, positions, -1)


@dataclass(frozen=True, eq=False)
class RunItems(PlaneItems):
    """Items whose ids are runs of consecutive numbers, so that ids take no memory worth mentioning; by ascending id.

    Run r has the ids from ``first_ids[r]`` on, at the positions from ``first_positions[r]`` on.
    Ids that an index or a collection gave itself are one run, and each removal adds one. If they become too many, the
    items become :class:`FlatItems`, which list all ids. As there, later items may fill the spare capacity of planes.
    """

    n_bits: int
    planes: np.ndarray
    first_ids: np.ndarray
    first_positions: np.ndarray
    n_items: int

    @classmethod
    def empty(cls, n_bits: int) -> PlaneItems:  # type: ignore[override]  # the other kind, if that takes less memory
        return cls(n_bits, empty_planes(n_bits), np.empty(0, np.int64), np.empty(0, np.int64), 0)

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray]) -> PlaneItems:  # type: ignore[override]  # as above
        check_names(arrays, ("ids", "planes"))
        check_sorted_ids(arrays["ids"])
        check_columns(arrays["planes"], n_bits, len(arrays["ids"]))
        return cls.of(n_bits, arrays["planes"], arrays["ids"])

    @classmethod
    def of(cls, n_bits: int, planes: np.ndarray, ids: np.ndarray) -> PlaneItems:
        """Return items of the kind that takes less memory; the planes may have spare capacity."""
        first_positions = _run_starts(ids)
        if _MIN_IDS_PER_RUN * len(first_positions) > len(ids) and len(first_positions) > 1:
            return FlatItems(n_bits, planes, ids, len(ids))
        return cls(n_bits, planes, ids[first_positions], first_positions, len(ids))

    @property
    def ids(self) -> np.ndarray:
        lengths = np.diff(self.first_positions, append=self.n_items)
        return np.repeat(self.first_ids - self.first_positions, lengths) + np.arange(self.n_items)

    def ids_at(self, positions: np.ndarray) -> np.ndarray:
        if len(self.first_ids) == 1:
            # Most often there is one run, and most often it begins with 0: then looking for it would take most of the
            # time of a search with many hits.
            return positions + self.first_ids[0] if self.first_ids[0] else positions
        runs = np.searchsorted(self.first_positions, positions, side="right") - 1
        return self.first_ids[runs] + (positions - self.first_positions[runs])

    @property
    def last_id(self) -> int | None:
        return int(self.ids_at(np.array([self.n_items - 1]))[0]) if self.n_items else None

    @property
    def nbytes(self) -> int:
        return self.planes.nbytes + self.first_ids.nbytes + self.first_positions.nbytes

    def inserted(self, codes: BinaryCodes, ids: np.ndarray) -> PlaneItems:  # type: ignore[override]  # as above
        planes, last = to_planes(codes), self.last_id
        if last is not None and ids[0] < last:
            positions = np.searchsorted(self.ids, ids)
            joined = np.insert(self.planes[:, : self.n_items], positions, planes, axis=1)
            return self.of(self.n_bits, joined, np.insert(self.ids, positions, ids))
        n_new = self.n_items + len(ids)
        grown = self.planes
        if n_new > grown.shape[1]:
            grown = empty_planes(self.n_bits, grown_capacity(self.n_bits, self.n_items, n_new))
            grown[:, : self.n_items] = self.planes[:, : self.n_items]
        grown[:, self.n_items : n_new] = planes
        return self._appended(grown, ids, last)

    def _appended(self, planes: np.ndarray, ids: np.ndarray, last: int | None) -> PlaneItems:
        """Return these items and more, whose ids are larger and whose codes are in the planes already."""
        added = _run_starts(ids)
        if last is not None and ids[0] == last + 1:
            added = added[1:]
        first_positions = np.concatenate([self.first_positions, self.n_items + added])
        n_items = self.n_items + len(ids)
        if _MIN_IDS_PER_RUN * len(first_positions) > n_items and len(first_positions) > 1:
            return self.of(self.n_bits, planes, np.concatenate([self.ids, ids]))
        first_ids = np.concatenate([self.first_ids, ids[added]])
        return replace(self, planes=planes, first_ids=first_ids, first_positions=first_positions, n_items=n_items)

    def selected(self, mask: np.ndarray) -> PlaneItems:  # type: ignore[override]  # as above
        if mask.all():
            # A copy without the spare capacity, which belongs to those who add to these items.
            return replace(self, planes=np.ascontiguousarray(self.planes[:, : self.n_items]))
        return self.of(self.n_bits, np.ascontiguousarray(self.planes[:, : self.n_items][:, mask]), self.ids[mask])

    def find(self, ids: np.ndarray) -> np.ndarray:
        if not self.n_items:
            return np.full(len(ids), -1)
        if len(self.first_ids) == 1:
            first = self.first_ids[0]
            return np.where((ids >= first) & (ids <= first + (self.n_items - 1)), ids - first, -1)
        runs = np.maximum(np.searchsorted(self.first_ids, ids, side="right") - 1, 0)
        lengths = np.diff(self.first_positions, append=self.n_items)[runs]
        # A difference that does not fit in 64 bits becomes negative, and no run is that long.
        offsets = ids - self.first_ids[runs]
        found = (ids >= self.first_ids[runs]) & (offsets >= 0) & (offsets < lengths)
        return np.where(found, self.first_positions[runs] + offsets, -1)

    def mask(self, ids: np.ndarray) -> np.ndarray:
        mask, positions = np.zeros(self.n_items, np.bool_), self.find(ids)
        mask[positions[positions >= 0]] = True
        return mask


def _run_starts(ids: np.ndarray) -> np.ndarray:
    """Return the positions where runs begin in ascending ids."""
    if not len(ids):
        return np.empty(0, np.int64)
    if int(ids[-1]) - int(ids[0]) + 1 == len(ids):
        return np.zeros(1, np.int64)
    return np.concatenate([[0], np.flatnonzero(np.diff(ids) != 1) + 1])


def empty_planes(n_bits: int, n_rows: int = 0) -> np.ndarray:
    """Return word planes for ``n_rows`` codes."""
    return np.zeros((n_planes(n_bits), n_rows), word_type(n_bits))


def positions_of_ids(held: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return where each id is among those held, in any order, -1 where it is not."""
    if not len(ids):
        return np.empty(0, np.int64)
    wanted, places = np.unique(ids, return_inverse=True)
    # Most of those held end otherwise than all that are wanted, which costs less to see than where they would be.
    is_end = np.zeros(1 << min(len(wanted).bit_length() + _END_BITS, _MOST_END_BITS), np.bool_)
    is_end[wanted & (len(is_end) - 1)] = True
    likely = np.flatnonzero(is_end[held & (len(is_end) - 1)])
    ranks = np.minimum(np.searchsorted(wanted, held[likely]), len(wanted) - 1)
    same = wanted[ranks] == held[likely]
    positions = np.full(len(wanted), -1)
    positions[ranks[same]] = likely[same]
    return positions[places]


def packed_size(n_bits: int) -> int:
    """Return the bytes of an id and a packed code."""
    return ID_BYTES + n_bytes(n_bits)


def held_size(n_bits: int) -> int:
    """Return the bytes of an id and a code in planes."""
    return ID_BYTES + empty_planes(n_bits, 1).nbytes


def grown_capacity(n_bits: int, n_items: int, n_wanted: int) -> int:
    """Return for how many items an index takes memory when it grows."""
    # Capacity grows by a share each time, so copying stays linear overall. Where words pad the codes, less is spare.
    share = min(_SPARE_SHARE, MAX_MEMORY_RATIO * packed_size(n_bits) / held_size(n_bits) - 1)
    return max(n_wanted, int(n_items * (1 + share)))


def check_names(arrays: dict[str, np.ndarray], expected: tuple[str, ...]) -> None:
    """Raise ValueError unless there are exactly these arrays."""
    if sorted(arrays) != sorted(expected):
        raise ValueError(f"it holds the arrays {sorted(arrays)}, not {sorted(expected)}")


def check_columns(planes: np.ndarray, n_bits: int, n_columns: int) -> None:
    """Raise ValueError unless the planes are codes of this length: words of the right kind, padding bits zero."""
    word, shape = np.dtype(word_type(n_bits)), (n_planes(n_bits), n_columns)
    if planes.dtype != word or planes.shape != shape:
        raise ValueError(f"its planes are {planes.dtype} of shape {planes.shape}, not {word} of shape {shape}")
    n_used = n_bits - 8 * word.itemsize * (shape[0] - 1)
    # A shift by the whole width of a word is undefined, so words without padding are left out.
    if n_used < 8 * word.itemsize and np.any(planes[-1] >> word.type(n_used)):
        raise ValueError("some padding bits of its codes are set")


def check_sorted_ids(ids: np.ndarray) -> None:
    """Raise ValueError unless the ids are int64 and ascend strictly."""
    _check_id_type(ids)
    if np.any(ids[1:] <= ids[:-1]):
        raise ValueError("its ids are not in ascending order")


def check_buckets(planes: np.ndarray, starts: np.ndarray, ids: np.ndarray) -> None:
    """Raise ValueError unless starts cut the ids into buckets as :class:`starshl.index.buckets.Buckets` requires."""
    _check_id_type(ids)
    if starts.ndim != 1 or starts.dtype not in (np.int32, np.int64) or not len(starts):
        raise ValueError(f"its starts are {starts.dtype} of shape {starts.shape}")
    if starts[0] != 0 or starts[-1] != len(ids) or np.any(starts[1:] <= starts[:-1]):
        raise ValueError(f"its starts do not rise from 0 to the number of ids, {len(ids)}")
    descents = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
    if not np.isin(descents, starts).all():
        raise ValueError("the ids of a bucket are not in ascending order")
    lowest = ids[starts[:-1]]
    if np.any(lowest[1:] <= lowest[:-1]):
        raise ValueError("its buckets are not ordered by their lowest ids")
    if not all_different(ids):
        raise ValueError("an id occurs more than once")
    n_buckets = len(starts) - 1
    if n_buckets < len(ids) and count_groups(planes, n_buckets) != n_buckets:
        raise ValueError("two buckets hold the same code")


def _check_id_type(ids: np.ndarray) -> None:
    if ids.dtype != np.int64 or ids.ndim != 1:
        raise ValueError(f"its ids are {ids.dtype} of shape {ids.shape}")
