"""Buckets: equal codes grouped, and what adding, removing and filtering do to the groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _bucket_loops as loops

__all__ = ["Buckets"]


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
