"""FlatIndex: an exact scan of every code."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..codes.hamming import nearest, within
from .scan import MOST_MEMORY, ScanIndex, empty_planes, held_size, packed_size

__all__ = ["FlatIndex"]


class FlatIndex(ScanIndex):
    """Search by scanning every code: the index for codes that are mostly different.

    Items are kept in the order of their ids, so ties need no comparison and an id is found by bisection.
    Adding ids above all others appends; any other addition and every removal moves items, in O(len).

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
    >>> ids, distances = index.search(codes[0], k=2)
    >>> ids.tolist(), distances.tolist()
    ([[30, 20]], [[0, 1]])
    >>> index.search_radius(codes[0], 3, where=lambda ids: ids < 25).of(0).ids.tolist()
    [20, 10]
    """

    kind = "flat"

    def __init__(self, n_bits: int, *, n_jobs: int | None = None) -> None:
        super().__init__(n_bits, n_jobs=n_jobs)
        self._planes = empty_planes(self.n_bits)
        self._ids = np.empty(0, np.int64)
        self._n_items = 0

    @property
    def ids(self) -> np.ndarray:
        ids = self._ids[: self._n_items]
        ids.flags.writeable = False
        return ids

    @property
    def nbytes(self) -> int:
        """Bytes held, spare room included."""
        return self._planes.nbytes + self._ids.nbytes

    def __len__(self) -> int:
        return self._n_items

    def _insert(self, planes: np.ndarray, ids: np.ndarray) -> None:
        n_old, n_new = self._n_items, self._n_items + len(ids)
        if n_old and ids[0] < self._ids[n_old - 1]:
            places = np.searchsorted(self.ids, ids)
            self._planes = np.insert(self._planes[:, :n_old], places, planes, axis=1)
            self._ids = np.insert(self.ids, places, ids)
        else:
            self._reserve(n_new)
            self._planes[:, n_old:n_new] = planes
            self._ids[n_old:n_new] = ids
        self._n_items = n_new

    def _reserve(self, n_items: int) -> None:
        if n_items <= len(self._ids):
            return
        # A share more each time: copies stay linear in the end. Where words pad the codes, less may be spare.
        share = min(0.125, MOST_MEMORY * packed_size(self.n_bits) / held_size(self.n_bits) - 1)
        room = max(n_items, int(self._n_items * (1 + share)))
        planes, ids = empty_planes(self.n_bits, room), np.empty(room, np.int64)
        planes[:, : self._n_items] = self._planes[:, : self._n_items]
        ids[: self._n_items] = self.ids
        self._planes, self._ids = planes, ids

    def _keep(self, mask: np.ndarray) -> None:
        self._planes = np.ascontiguousarray(self._planes[:, : self._n_items][:, mask])
        self._ids = self.ids[mask]
        self._n_items = len(self._ids)

    def _find(self, ids: np.ndarray) -> np.ndarray:
        if not len(self):
            return np.full(len(ids), -1)
        positions = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return np.where(self._ids[positions] == ids, positions, -1)

    def _last_id(self) -> int | None:
        return int(self._ids[self._n_items - 1]) if self._n_items else None

    def _nearest(self, queries: np.ndarray, k: int, mask) -> tuple[np.ndarray, np.ndarray]:
        return nearest(self._planes, queries, k, self.n_bits, n_rows=len(self), mask=mask, n_jobs=self.n_jobs)

    def _within(self, queries: np.ndarray, radii: np.ndarray, mask) -> tuple[np.ndarray, ...]:
        return within(self._planes, queries, radii, self.n_bits, n_rows=len(self), mask=mask, n_jobs=self.n_jobs)

    def _rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._planes, positions

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"ids": self.ids, "planes": self._planes[:, : self._n_items]}

    @classmethod
    def _from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], n_jobs: int | None) -> Self:
        index = cls(n_bits, n_jobs=n_jobs)
        index._ids, index._planes = arrays["ids"], arrays["planes"]
        index._n_items = len(index._ids)
        return index
