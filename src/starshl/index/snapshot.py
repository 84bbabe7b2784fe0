"""Snapshot: items that never change, so that a search reads the same ones from start to end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from ..codes import n_bytes
from ..codes.hamming import n_planes, word_type

__all__ = ["ID_BYTES", "MAX_MEMORY_RATIO", "Hits", "Snapshot", "empty_planes", "held_size", "packed_size"]

# Bytes of an index over those of its packed codes and ids, padding and spare room included.
MAX_MEMORY_RATIO = 1.3
ID_BYTES = 8

#: Where each query's hits start, their positions and their distances.
Hits = tuple[np.ndarray, np.ndarray, np.ndarray]


class Snapshot(ABC):
    """One state of an index in memory.

    A change makes a new snapshot, and the index replaces the old one in a single assignment. Searches that started
    before go on reading the old one, so that each answer belongs to one state. Positions number the items in the
    order of ``ids``.
    """

    n_bits: int
    #: Whether positions are in the order of ids.
    ascending: ClassVar[bool] = False

    @classmethod
    def empty(cls, n_bits: int) -> Self:
        """Return a snapshot without items; kinds that need more than the length have their own constructor."""
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray]) -> Self:
        """Return the snapshot that a file holds; raise ValueError for arrays that a search cannot trust."""
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
    def inserted(self, planes: np.ndarray, ids: np.ndarray) -> Self:
        """Return a snapshot with more items, whose ids are ascending and new."""

    @abstractmethod
    def kept(self, mask: np.ndarray) -> Self:
        """Return a snapshot with only the positions whose mask is set."""

    @abstractmethod
    def find(self, ids: np.ndarray) -> np.ndarray:
        """Return the position of each id, -1 where there is none."""

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


def empty_planes(n_bits: int, n_rows: int = 0) -> np.ndarray:
    """Return word planes with room for ``n_rows`` codes."""
    return np.zeros((n_planes(n_bits), n_rows), word_type(n_bits))


def packed_size(n_bits: int) -> int:
    """Return the bytes of an id and a packed code."""
    return ID_BYTES + n_bytes(n_bits)


def held_size(n_bits: int) -> int:
    """Return the bytes of an id and a code in planes."""
    return ID_BYTES + empty_planes(n_bits, 1).nbytes
