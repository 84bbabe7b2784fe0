"""ClassRule: the order of items of the query's class and of other classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .snapshot import Hits

__all__ = ["Candidates", "ClassRule", "FloatRule", "HammingRule"]


class Candidates(NamedTuple):
    """Items that may be near some queries, in any order.

    Query and position of each, its distance without regard to classes, and whether it has another class than the
    query.
    """

    queries: np.ndarray
    positions: np.ndarray
    distances: np.ndarray
    differs: np.ndarray


@dataclass(frozen=True, slots=True)
class ClassRule(ABC):
    """What another class costs: ``class_weight``, or more, so that ``class_first`` items of the class come first.

    Let d be the distance of an item without regard to classes. If it is of the query's class, it stays at d. Otherwise
    it is at ``pushed(d, t)``, t being the distance of the ``class_first``-th nearest item of the class, or of the last
    one if there are fewer.
    """

    class_bits: int
    class_weight: float
    class_first: int

    @abstractmethod
    def pushed(self, distances: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the distances of items of another class, given those of the last of the first items of the class."""

    def ends(self, found: Candidates, n_queries: int) -> np.ndarray:
        """Return t above for each query; -1 if there is no item of its class, or none has to be first."""
        ends = np.full(n_queries, -1, found.distances.dtype)
        if self.class_first:
            own = found.differs == 0
            queries, distances = found.queries[own], found.distances[own]
            order = np.lexsort((distances, queries))
            starts = np.searchsorted(queries[order], np.arange(n_queries + 1))
            last = np.minimum(starts[:-1] + self.class_first, starts[1:]) - 1
            some = starts[1:] > starts[:-1]
            ends[some] = distances[order][last[some]]
        return ends

    def distances(self, found: Candidates, ends: np.ndarray) -> np.ndarray:
        """Return the distances of candidates with what another class costs."""
        pushed = self.pushed(found.distances, ends[found.queries])
        return np.where(found.differs, pushed, found.distances.astype(pushed.dtype))

    def ordered(self, found: Candidates, n_queries: int, ends: np.ndarray) -> Hits:
        """Return where each query's items start, and their positions and distances, by distance and position."""
        distances = self.distances(found, ends)
        order = np.lexsort((found.positions, distances, found.queries))
        starts = np.searchsorted(found.queries[order], np.arange(n_queries + 1))
        return starts.astype(np.int64), found.positions[order], distances[order]

    def nearest(self, found: Candidates, n_queries: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and distances of the k nearest of each query, which are among the candidates."""
        starts, positions, distances = self.ordered(found, n_queries, self.ends(found, n_queries))
        first = starts[:-1, None] + np.arange(k)
        return positions[first], distances[first]


class HammingRule(ClassRule):
    """Distances are numbers of bits: another class is at least one bit farther than the first items of the class."""

    def pushed(self, distances: np.ndarray, ends: np.ndarray) -> np.ndarray:
        return np.maximum(distances + int(self.class_weight), ends + 1)


class FloatRule(ClassRule):
    """Distances are real numbers: another class is a little farther than the first items, and keeps its order.

    Distances are single precision, and what is computed from them here is double: different ones stay different.
    """

    def pushed(self, distances: np.ndarray, ends: np.ndarray) -> np.ndarray:
        exact = distances.astype(np.float64)
        just_beyond = np.where(ends < 0, 0.0, ends + (1.0 + exact) / 1024)
        return np.maximum(exact + self.class_weight, just_beyond)
