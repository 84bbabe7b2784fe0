"""HybridIndex: codes that begin with a class, searched by neighbor bits and a penalty for another class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._validation import check_integer
from ..codes import BinaryCodes
from .checks import check_names
from .flat import FlatItems
from .scan import ScanIndex
from .snapshot import Hits, empty_planes

__all__ = ["MAX_CLASS_BITS", "HybridIndex", "HybridItems"]

#: A class field lies in the first word of a code, also where words are narrow.
MAX_CLASS_BITS = 16
# Distances are 32-bit numbers, and merging multiplies them by the number of items.
_MAX_WEIGHT = 1 << 20


@dataclass(frozen=True, eq=False)
class HybridItems(FlatItems):
    """Codes whose first ``class_bits`` bits are a class, by ascending id.

    Take the items whose class differs from the query's in p bits. Their distance is their Hamming distance plus a
    number that depends on p alone, so the compiled scans answer for each p, and the answers are merged.
    """

    class_bits: int
    class_weight: int

    @classmethod
    def empty_with(cls, n_bits: int, class_bits: int, class_weight: int) -> Self:
        """Return a snapshot without items."""
        return cls(n_bits, empty_planes(n_bits), np.empty(0, np.int64), 0, class_bits, class_weight)

    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays() | {"rule": np.array([self.class_bits, self.class_weight], np.int64)}

    def nearest(
        self, queries: np.ndarray, k: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        positions = np.empty((queries.shape[1], k), np.int64)
        distances = np.empty((queries.shape[1], k), np.int32)
        for rows, groups in self._groups(queries, mask):
            some = np.ascontiguousarray(queries[:, rows])
            found = []
            for group, penalty in groups:
                n_found = min(k, int(np.count_nonzero(group)))
                near, hamming = super().nearest(some, n_found, group, n_jobs)
                # One number orders by distance and then by position, which is the order of ids.
                found.append((hamming.astype(np.int64) + penalty) * self.n_items + near)
            keys = np.sort(np.concatenate(found, axis=1), axis=1)[:, :k]
            distances[rows], positions[rows] = np.divmod(keys, self.n_items)
        return positions, distances

    def within(self, queries: np.ndarray, radii: np.ndarray, mask: np.ndarray | None, n_jobs: int | None) -> Hits:
        numbers, places, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for rows, groups in self._groups(queries, mask):
            for group, penalty in groups:
                reached = rows[radii[rows] >= penalty]
                some = np.ascontiguousarray(queries[:, reached])
                starts, near, hamming = super().within(some, radii[reached] - penalty, group, n_jobs)
                numbers.append(np.repeat(reached, np.diff(starts)))
                places.append(near.astype(np.int64))
                lengths.append(hamming.astype(np.int64) + penalty)
        number, positions, distances = (np.concatenate(parts) for parts in (numbers, places, lengths))
        order = np.lexsort((positions, distances, number))
        starts = np.searchsorted(number[order], np.arange(queries.shape[1] + 1))
        return starts.astype(np.int64), positions[order], distances[order].astype(np.int32)

    def _groups(
        self, queries: np.ndarray, mask: np.ndarray | None
    ) -> Iterator[tuple[np.ndarray, list[tuple[np.ndarray, int]]]]:
        """Yield the queries of each class, with masks of items and what to add to their Hamming distances."""
        fields, asked = self._fields(self.planes[0, : self.n_items]), self._fields(queries[0])
        for field in np.unique(asked):
            n_differing = np.bitwise_count(fields ^ field)
            groups = []
            for p in range(self.class_bits + 1):
                group = n_differing == p
                if mask is not None:
                    group &= mask
                if group.any():
                    groups.append((group, self.class_weight - p if p else 0))
            if groups:
                yield np.flatnonzero(asked == field), groups

    def _fields(self, words: np.ndarray) -> np.ndarray:
        return (words & words.dtype.type((1 << self.class_bits) - 1)).astype(np.uint16)


class HybridIndex(ScanIndex):
    """Search codes of a class field and neighbor bits.

    The distance is the Hamming distance of the neighbor bits, plus ``class_weight`` if the class fields differ in any
    bit. So items of the query's class come first, unless others are nearer by more than the weight.

    Parameters
    ----------
    n_bits : int
        Length of the codes, both fields together.
    class_bits : int
        Length of the class field, at the beginning of a code; at most 16.
    class_weight : int
        What another class adds to the distance; 0 ignores the class.
    n_jobs : int, default=None
        Threads of a search; None means one. Results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> from starshl.index import HybridIndex
    >>> codes = BinaryCodes.from_signs(np.array([[1, 1, 1, 1, 1], [1, 1, -1, -1, 1], [-1, -1, 1, 1, 1]]))
    >>> index = HybridIndex(5, class_bits=2, class_weight=3)
    >>> index.add(codes).tolist()
    [0, 1, 2]
    >>> distances, ids = index.search(codes[0], k=3)  # item 2 has equal neighbor bits and another class
    >>> distances.tolist(), ids.tolist()
    ([[0, 2, 3]], [[0, 1, 2]])
    """

    kind = "hybrid"
    metric = "hybrid"
    snapshot_type = HybridItems

    def __init__(self, n_bits: int, class_bits: int, class_weight: int, *, n_jobs: int | None = None) -> None:
        n_bits = check_integer(n_bits, "n_bits", low=1)
        self.class_bits = check_integer(class_bits, "class_bits", low=1, high=min(n_bits, MAX_CLASS_BITS))
        self.class_weight = check_integer(class_weight, "class_weight", low=0, high=_MAX_WEIGHT)
        self._set_up(n_bits, HybridItems.empty_with(n_bits, self.class_bits, self.class_weight), n_jobs)

    @classmethod
    def from_codes(
        cls, codes: BinaryCodes, ids: ArrayLike | None = None, *, n_jobs: int | None = None, **rule: Any
    ) -> Self:
        """Return a new index of these codes; ``rule`` are class_bits and class_weight."""
        index = cls(codes.n_bits, n_jobs=n_jobs, **rule)
        index.add(codes, ids)
        return index

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> Self:
        check_names(arrays, ("ids", "planes", "rule"))
        rule = arrays["rule"]
        if rule.dtype != np.int64 or rule.shape != (2,):
            raise ValueError(f"its rule is {rule.dtype} of shape {rule.shape}")
        index = cls(n_bits, int(rule[0]), int(rule[1]), n_jobs=n_jobs)
        plain = FlatItems.from_arrays(n_bits, {name: arrays[name] for name in ("ids", "planes")})
        index._items = HybridItems(
            n_bits, plain.planes, plain.id_room, plain.n_items, index.class_bits, index.class_weight
        )
        return index

    @property
    def _largest_distance(self) -> int:
        return self.n_bits - self.class_bits + self.class_weight
