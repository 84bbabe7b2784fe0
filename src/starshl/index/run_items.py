"""Items whose ids are runs of consecutive numbers, so that the ids take no memory worth mentioning."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .checks import check_columns, check_names, check_sorted_ids
from .flat_items import FlatItems, PlaneItems, n_with_room
from .snapshot import empty_planes

__all__ = ["RunItems"]

# A run takes as much memory as two ids. With fewer ids per run, finding one costs more than it saves.
_MIN_IDS_PER_RUN = 4


@dataclass(frozen=True, eq=False)
class RunItems(PlaneItems):
    """Items by ascending id: run r has the ids from ``starts[r]`` on, at the positions from ``places[r]`` on.

    Ids that an index or a collection gave itself are one run, and each removal adds one. If they become too many, the
    items become :class:`FlatItems`, which list all ids. As there, a later snapshot may fill the spare room of the
    planes.
    """

    n_bits: int
    planes: np.ndarray
    starts: np.ndarray
    places: np.ndarray
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
        """Return items of the kind that takes less memory; the planes may have spare room."""
        places = _run_places(ids)
        if _MIN_IDS_PER_RUN * len(places) > len(ids) and len(places) > 1:
            return FlatItems(n_bits, planes, ids, len(ids))
        return cls(n_bits, planes, ids[places], places, len(ids))

    @property
    def ids(self) -> np.ndarray:
        lengths = np.diff(self.places, append=self.n_items)
        return np.repeat(self.starts - self.places, lengths) + np.arange(self.n_items)

    def ids_at(self, positions: np.ndarray) -> np.ndarray:
        runs = np.searchsorted(self.places, positions, side="right") - 1
        return self.starts[runs] + (positions - self.places[runs])

    @property
    def last_id(self) -> int | None:
        return int(self.ids_at(np.array([self.n_items - 1]))[0]) if self.n_items else None

    @property
    def nbytes(self) -> int:
        return self.planes.nbytes + self.starts.nbytes + self.places.nbytes

    def inserted(self, planes: np.ndarray, ids: np.ndarray) -> PlaneItems:  # type: ignore[override]  # as above
        last = self.last_id
        if last is not None and ids[0] < last:
            places = np.searchsorted(self.ids, ids)
            joined = np.insert(self.planes[:, : self.n_items], places, planes, axis=1)
            return self.of(self.n_bits, joined, np.insert(self.ids, places, ids))
        n_new = self.n_items + len(ids)
        roomy = self.planes
        if n_new > roomy.shape[1]:
            roomy = empty_planes(self.n_bits, n_with_room(self.n_bits, self.n_items, n_new))
            roomy[:, : self.n_items] = self.planes[:, : self.n_items]
        roomy[:, self.n_items : n_new] = planes
        return self._appended(roomy, ids, last)

    def _appended(self, planes: np.ndarray, ids: np.ndarray, last: int | None) -> PlaneItems:
        """Return these items and more, whose ids are larger and whose codes are in the planes already."""
        added = _run_places(ids)
        if last is not None and ids[0] == last + 1:
            added = added[1:]
        places = np.concatenate([self.places, self.n_items + added])
        n_items = self.n_items + len(ids)
        if _MIN_IDS_PER_RUN * len(places) > n_items and len(places) > 1:
            return self.of(self.n_bits, planes, np.concatenate([self.ids, ids]))
        starts = np.concatenate([self.starts, ids[added]])
        return replace(self, planes=planes, starts=starts, places=places, n_items=n_items)

    def kept(self, mask: np.ndarray) -> PlaneItems:  # type: ignore[override]  # as above
        if mask.all():
            # A copy without the spare room, which belongs to the successors of this snapshot.
            return replace(self, planes=np.ascontiguousarray(self.planes[:, : self.n_items]))
        return self.of(self.n_bits, np.ascontiguousarray(self.planes[:, : self.n_items][:, mask]), self.ids[mask])

    def find(self, ids: np.ndarray) -> np.ndarray:
        if not self.n_items:
            return np.full(len(ids), -1)
        runs = np.maximum(np.searchsorted(self.starts, ids, side="right") - 1, 0)
        starts, places = self.starts[runs], self.places[runs]
        # A difference that does not fit in 64 bits becomes negative, and no run is that long.
        offsets = ids - starts
        found = (ids >= starts) & (offsets >= 0) & (offsets < np.diff(self.places, append=self.n_items)[runs])
        return np.where(found, places + offsets, -1)


def _run_places(ids: np.ndarray) -> np.ndarray:
    """Return the positions where runs begin in ascending ids."""
    if not len(ids):
        return np.empty(0, np.int64)
    if int(ids[-1]) - int(ids[0]) + 1 == len(ids):
        return np.zeros(1, np.int64)
    return np.concatenate([[0], np.flatnonzero(np.diff(ids) != 1) + 1])
