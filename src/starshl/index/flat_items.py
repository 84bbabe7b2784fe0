"""Items whose codes are scanned as they are: planes of words, by ascending id."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..codes.hamming import nearest, within
from .checks import check_columns, check_names, check_sorted_ids
from .snapshot import MAX_MEMORY_RATIO, Hits, Snapshot, empty_planes, held_size, packed_size

__all__ = ["FlatItems", "PlaneItems", "n_with_room"]

_SPARE_SHARE = 0.125  # room for appending, as far as MAX_MEMORY_RATIO allows


class PlaneItems(Snapshot):
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
    """The first ``n_items`` columns of the planes and entries of ``id_room``, by ascending id.

    Everything after them is spare room. A later snapshot may fill it while this one is searched, so nothing here may
    read it.
    """

    n_bits: int
    planes: np.ndarray
    id_room: np.ndarray
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
        return self.id_room[: self.n_items]

    @property
    def last_id(self) -> int | None:
        return int(self.id_room[self.n_items - 1]) if self.n_items else None

    @property
    def nbytes(self) -> int:
        return self.planes.nbytes + self.id_room.nbytes

    def inserted(self, planes: np.ndarray, ids: np.ndarray) -> Self:
        n_old, n_new = self.n_items, self.n_items + len(ids)
        if n_old and ids[0] < self.id_room[n_old - 1]:
            places = np.searchsorted(self.ids, ids)
            joined = np.insert(self.planes[:, :n_old], places, planes, axis=1)
            return replace(self, planes=joined, id_room=np.insert(self.ids, places, ids), n_items=n_new)
        roomy = self._with_room(n_new)
        roomy.planes[:, n_old:n_new] = planes
        roomy.id_room[n_old:n_new] = ids
        return replace(roomy, n_items=n_new)

    def _with_room(self, n_items: int) -> Self:
        """Return the same items with room for this many."""
        if n_items <= len(self.id_room):
            return self
        room = n_with_room(self.n_bits, self.n_items, n_items)
        planes, id_room = empty_planes(self.n_bits, room), np.empty(room, np.int64)
        planes[:, : self.n_items] = self.planes[:, : self.n_items]
        id_room[: self.n_items] = self.ids
        return replace(self, planes=planes, id_room=id_room)

    def kept(self, mask: np.ndarray) -> Self:
        planes = np.ascontiguousarray(self.planes[:, : self.n_items][:, mask])
        ids = self.ids[mask]
        return replace(self, planes=planes, id_room=ids, n_items=len(ids))

    def find(self, ids: np.ndarray) -> np.ndarray:
        if not self.n_items:
            return np.full(len(ids), -1)
        first, last = int(self.id_room[0]), int(self.id_room[self.n_items - 1])
        if last - first + 1 == self.n_items:
            # No id is missing between the first and the last, so positions need no search.
            return np.where((ids >= first) & (ids <= last), ids - np.int64(first), -1)
        positions = np.minimum(np.searchsorted(self.ids, ids), self.n_items - 1)
        return np.where(self.id_room[positions] == ids, positions, -1)


def n_with_room(n_bits: int, n_items: int, n_wanted: int) -> int:
    """Return how many items an index makes room for when it grows."""
    # Room grows by a share each time, so copying stays linear overall. Where words pad the codes, less is spare.
    share = min(_SPARE_SHARE, MAX_MEMORY_RATIO * packed_size(n_bits) / held_size(n_bits) - 1)
    return max(n_wanted, int(n_items * (1 + share)))
