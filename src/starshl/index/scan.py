"""ScanIndex: what the flat and the bucket index share, from checking arguments to index files."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from .._validation import check_integer
from ..codes import BinaryCodes
from ..codes.hamming import from_planes, score_penalties, to_planes, word_type
from .base import HammingIndex, Neighbors, RadiusNeighbors, Where, check_ids, next_ids
from .files import write_index_file

__all__ = ["ScanIndex"]

# Bytes of an index over those of its packed codes and ids, padding and spare room included.
MOST_MEMORY = 1.3
ID_SIZE = 8


class ScanIndex(HammingIndex):
    """An index in memory whose codes are rows of word planes; positions number the items as ``ids`` does."""

    kind: ClassVar[str]

    def __init__(self, n_bits: int, *, n_jobs: int | None = None) -> None:
        self.n_bits = check_integer(n_bits, "n_bits", low=1)
        self.n_jobs = n_jobs

    @classmethod
    def from_codes(cls, codes: BinaryCodes, ids=None, *, n_jobs: int | None = None) -> Self:
        """Return a new index of these codes."""
        index = cls(codes.n_bits, n_jobs=n_jobs)
        index.add(codes, ids)
        return index

    @abstractmethod
    def _insert(self, planes: np.ndarray, ids: np.ndarray) -> None:
        """Add rows whose ids are ascending and not in the index."""

    @abstractmethod
    def _keep(self, mask: np.ndarray) -> None:
        """Drop the positions whose mask is not set."""

    @abstractmethod
    def _find(self, ids: np.ndarray) -> np.ndarray:
        """Return the position of each id, -1 where there is none."""

    @abstractmethod
    def _last_id(self) -> int | None:
        """Return the largest id, or None."""

    @abstractmethod
    def _nearest(self, queries: np.ndarray, k: int, mask) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and distances, both (n_queries, k)."""

    @abstractmethod
    def _within(self, queries: np.ndarray, radii: np.ndarray, mask) -> tuple[np.ndarray, ...]:
        """Return starts, positions and distances."""

    @abstractmethod
    def _rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the planes and the row in them of each position."""

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """Return what an index file holds."""

    @classmethod
    @abstractmethod
    def _from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], n_jobs: int | None) -> Self:
        """Undo :meth:`_arrays`."""

    def add(self, codes: BinaryCodes, ids=None) -> np.ndarray:
        self._check_codes(codes)
        if ids is None:
            ids = next_ids(len(codes), self._last_id())
        else:
            ids = check_ids(ids, len(codes))
        if not len(ids):
            return ids
        last = self._last_id()
        if last is not None and ids.min() <= last:
            present = self._find(ids) >= 0
            if present.any():
                raise ValueError(
                    f"The id {ids[present][0]} is already in the index, and nothing was added. "
                    "Remove it first, or give a new id."
                )
        planes = to_planes(codes)
        if np.any(ids[1:] < ids[:-1]):
            order = np.argsort(ids)
            self._insert(np.ascontiguousarray(planes[:, order]), ids[order])
        else:
            self._insert(planes, ids)
        return ids

    def remove(self, ids) -> None:
        positions = self._known(check_ids(ids))
        mask = np.ones(len(self), np.bool_)
        mask[positions] = False
        self._keep(mask)

    def search(self, codes: BinaryCodes, k: int = 10, *, where: Where = None, scores=None) -> Neighbors:
        """Return the k nearest items of each code, by distance and then by id.

        Parameters
        ----------
        codes : BinaryCodes, the queries
        k : int, default=10
            At most the number of items held.
        where : default=None
            Which items may be returned: an array of ids, a bool array that says so for each of ``ids``, or a
            function that is given ``ids`` and returns the latter. If fewer than k pass, so many are returned.
        scores : array of shape (n_queries, n_bits), default=None
            Real scores of the queries, as ``hasher.decision_function`` gives them. Items at equal distance
            are then ordered by their inner product with the scores, largest first, and only then by id.
        """
        self._check_codes(codes)
        k = self._check_k(k)
        mask = self._mask(where)
        if mask is not None:
            k = _passing(mask, k)
        if k == 0 or not len(codes):
            return Neighbors(np.empty((len(codes), k), np.int64), np.empty((len(codes), k), np.int32))
        queries = to_planes(codes)
        positions, distances = self._nearest(queries, k, mask)
        if scores is not None:
            weights = self._score_weights(scores, codes)
            positions, distances = self._by_score(queries, weights, k, distances[:, -1], mask)
        return Neighbors(self.ids.take(positions), distances)

    def search_radius(self, codes: BinaryCodes, radius: int, *, where: Where = None) -> RadiusNeighbors:
        """Return all items within ``radius`` (inclusive) of each code; ``where`` is as in :meth:`search`."""
        self._check_codes(codes)
        radius = self._check_radius(radius)
        mask = self._mask(where)
        radii = np.full(len(codes), radius, np.int64)
        starts, positions, distances = self._within(to_planes(codes), radii, mask)
        return RadiusNeighbors(starts, self.ids[positions], distances)

    def reconstruct(self, ids) -> BinaryCodes:
        planes, rows = self._rows(self._known(check_ids(ids)))
        return from_planes(planes[:, rows], self.n_bits)

    def save(self, path: str | os.PathLike) -> None:
        """Write the index to one file; :func:`starshl.index.load_index` reads or memory-maps it."""
        write_index_file(path, {"kind": self.kind, "n_bits": self.n_bits}, self._arrays())

    def _known(self, ids: np.ndarray) -> np.ndarray:
        positions = self._find(ids)
        if (positions < 0).any():
            raise KeyError(f"The id {ids[positions < 0][0]} is not in the index.")
        return positions

    def _mask(self, where: Where) -> np.ndarray | None:
        if where is None:
            return None
        given = np.asarray(where(self.ids) if callable(where) else where)
        if given.dtype == np.bool_ and given.shape == (len(self),):
            return np.ascontiguousarray(given)
        if callable(where) or given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
            raise ValueError(
                f"The filter gave dtype {given.dtype} and shape {given.shape}; it must be an array of ids "
                f"or of {len(self)} booleans, one for each of index.ids."
            )
        mask = np.zeros(len(self), np.bool_)
        mask[self._known(check_ids(np.unique(given)))] = True
        return mask

    def _score_weights(self, scores, codes: BinaryCodes) -> np.ndarray:
        scores = np.asarray(scores, dtype=np.float64)
        if scores.shape != (len(codes), self.n_bits) or not np.isfinite(scores).all():
            raise ValueError(
                f"scores has shape {scores.shape}; it must be finite and of shape "
                f"({len(codes)}, {self.n_bits}), as hasher.decision_function(X) gives it."
            )
        return scores * codes.to_signs()

    def _by_score(self, queries, weights, k: int, radii, mask) -> tuple[np.ndarray, np.ndarray]:
        """Order all items up to the k-th distance by distance, score and id; return the first k."""
        starts, positions, distances = self._within(queries, radii.astype(np.int64), mask)
        planes, rows = self._rows(positions)
        ids = self.ids
        best = np.empty((len(radii), k), np.int64)
        for q in range(len(radii)):
            span = slice(starts[q], starts[q + 1])
            penalties = score_penalties(planes, rows[span], queries[:, q].copy(), weights[q])
            order = np.lexsort((ids[positions[span]], penalties, distances[span]))[:k]
            best[q] = starts[q] + order
        return positions[best], distances[best]


def _passing(mask: np.ndarray, k: int) -> int:
    """Return how many pass the mask, but at most k; where many do, the first ones tell without counting all."""
    n_first = np.count_nonzero(mask[: 64 * k])
    return k if n_first >= k else min(k, int(np.count_nonzero(mask)))


def empty_planes(n_bits: int, n_rows: int = 0) -> np.ndarray:
    """Return word planes with room for so many codes."""
    word = word_type(n_bits)
    return np.zeros((-(-n_bits // (8 * word().itemsize)), n_rows), word)


def packed_size(n_bits: int) -> int:
    """Return the bytes of an id and a packed code."""
    return ID_SIZE + -(-n_bits // 8)


def held_size(n_bits: int) -> int:
    """Return the bytes of an id and a code in planes."""
    return ID_SIZE + empty_planes(n_bits, 1).nbytes
