"""HybridIndex: codes that begin with a class, searched by neighbor bits and a penalty for another class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np

from .._common.threads import run_all
from .._common.validation import check_integer
from ..codes.binary import BinaryCodes
from ..codes.hamming import few_pass, scan_tasks, to_planes
from . import _hybrid_loops as loops
from .items import Candidates, Hits, RunItems, WrappedItems, check_names
from .memory import MemoryIndex, passing_items

#: A class field lies in the first word of a code, even if words are narrow.
MAX_CLASS_BITS = 16
# Distances are 32-bit numbers.
_MAX_WEIGHT = 1 << 20


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
    def pushed(self, distances: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the distances of items of another class, given t of their queries."""

    def thresholds(self, found: Candidates, n_queries: int) -> np.ndarray:
        """Return t above for each query; -1 if there is no item of its class, or none has to be first."""
        thresholds = np.full(n_queries, -1, found.distances.dtype)
        if self.class_first:
            own = found.differs == 0
            queries, distances = found.queries[own], found.distances[own]
            order = np.lexsort((distances, queries))
            starts = np.searchsorted(queries[order], np.arange(n_queries + 1))
            last = np.minimum(starts[:-1] + self.class_first, starts[1:]) - 1
            some = starts[1:] > starts[:-1]
            thresholds[some] = distances[order][last[some]]
        return thresholds

    def distances(self, found: Candidates, thresholds: np.ndarray) -> np.ndarray:
        """Return the distances of candidates with what another class costs."""
        pushed = self.pushed(found.distances, thresholds[found.queries])
        return np.where(found.differs, pushed, found.distances.astype(pushed.dtype))

    def ordered(self, found: Candidates, n_queries: int, thresholds: np.ndarray) -> Hits:
        """Return where each query's items start, and their positions and distances, by distance and position."""
        distances = self.distances(found, thresholds)
        order = np.lexsort((found.positions, distances, found.queries))
        starts = np.searchsorted(found.queries[order], np.arange(n_queries + 1))
        return starts.astype(np.int64), found.positions[order], distances[order]

    def nearest(self, found: Candidates, n_queries: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and distances of the k nearest of each query, which are among the candidates."""
        starts, positions, distances = self.ordered(found, n_queries, self.thresholds(found, n_queries))
        first = starts[:-1, None] + np.arange(k)
        return positions[first], distances[first]


class HammingRule(ClassRule):
    """Distances are numbers of bits: another class is at least one bit farther than the first items of the class."""

    def pushed(self, distances: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        return np.maximum(distances + int(self.class_weight), thresholds + 1)


class FloatRule(ClassRule):
    """Distances are real numbers: another class is a little farther than the first items, and keeps its order.

    Distances are single precision, and what is computed from them here is double: different ones stay different.
    """

    def pushed(self, distances: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        exact = distances.astype(np.float64)
        just_beyond = np.where(thresholds < 0, 0.0, thresholds + (1.0 + exact) / 1024)
        return np.maximum(exact + self.class_weight, just_beyond)


@dataclass(frozen=True, eq=False)
class HybridItems(WrappedItems):
    """Codes whose first bits are a class, by ascending id."""

    rule: HammingRule = field(kw_only=True)

    @classmethod
    def empty_with(cls, n_bits: int, rule: HammingRule) -> Self:
        """Return no items, to be ordered by this rule."""
        return cls(RunItems.empty(n_bits), rule=rule)

    def arrays(self) -> dict[str, np.ndarray]:
        rule = [self.rule.class_bits, int(self.rule.class_weight), self.rule.class_first]
        return super().arrays() | {"rule": np.array(rule, np.int64)}

    def nearest(
        self, queries: np.ndarray, k: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        found = self._candidates(queries, k, self._everything(queries), mask, n_jobs)
        positions, distances = self.rule.nearest(found, queries.shape[1], k)
        return positions, distances.astype(np.int32)

    def within(self, queries: np.ndarray, radii: np.ndarray, mask: np.ndarray | None, n_jobs: int | None) -> Hits:
        thresholds = np.full(queries.shape[1], -1)
        if self.rule.class_first:
            found = self._candidates(queries, 1, self._everything(queries), mask, n_jobs)
            thresholds = self.rule.thresholds(found, queries.shape[1])
        of_others = np.where(radii > thresholds, radii - int(self.rule.class_weight), -1)
        limits = np.maximum(np.column_stack([radii, of_others]), -1)
        found = self._candidates(queries, 0, limits, mask, n_jobs)
        starts, positions, distances = self.rule.ordered(found, queries.shape[1], thresholds)
        return starts, positions, distances.astype(np.int32)

    def candidates_near(self, queries: np.ndarray, k: int, mask: np.ndarray | None, n_jobs: int | None) -> Candidates:
        """Return what can be among the k nearest, however near items of the query's class are elsewhere."""
        # Such a weight keeps the items of the class from ruling out others, and the other way around.
        rule = (k, -loops.NOT_YET, max(k, self.rule.class_first))
        return self._candidates(queries, k, self._everything(queries), mask, n_jobs, rule)

    def candidates_within(
        self, queries: np.ndarray, radius: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> Candidates:
        """Return what can be within the radius, however near items of the query's class are elsewhere."""
        limits = np.maximum([radius, radius - int(self.rule.class_weight)], -1)
        return self._candidates(queries, 0, np.tile(limits, (queries.shape[1], 1)), mask, n_jobs)

    def _everything(self, queries: np.ndarray) -> np.ndarray:
        return np.full((queries.shape[1], 2), self.n_bits, np.int64)

    def _candidates(
        self,
        queries: np.ndarray,
        k: int,
        limits: np.ndarray,
        mask: np.ndarray | None,
        n_jobs: int | None,
        rule: tuple[int, int, int] | None = None,
    ) -> Candidates:
        by_query = np.ascontiguousarray(queries.T)
        passing, gather = np.empty(0, np.bool_) if mask is None else mask, few_pass(mask, len(by_query))
        field = self.planes.dtype.type((1 << self.rule.class_bits) - 1)
        given = rule or (k, int(self.rule.class_weight), self.rule.class_first)

        def scan(piece: slice, some: slice) -> np.ndarray:
            hits = loops.candidates(
                *(self.planes, piece.start, piece.stop, by_query[some], field, given, limits[some]),
                *(self.n_bits, passing, gather),
            )
            hits[:, 0] += some.start
            return hits

        parts = run_all((partial(scan, *task) for task in scan_tasks(self.n_items, len(by_query))), n_jobs)
        return Candidates(*np.concatenate(parts).T)


class HybridIndex(MemoryIndex):
    """Search codes of a class field and neighbor bits.

    The distance is the Hamming distance of the neighbor bits, plus ``class_weight`` if the class fields differ in any
    bit. So items of the query's class come first, unless others are nearer by more than the weight. With
    ``class_first``, items of other classes are also at least one bit farther away than this many items of the query's
    class (all of them, if there are fewer): these come first, however near others are. Filters count: the first items
    are those that pass.

    So with ``class_first`` the distance of an item of another class depends on the other items, too: it is
    max(d + ``class_weight``, t + 1), where d is the number of differing neighbor bits and t the distance of the last
    of the first items. Items that this moves to t + 1 are at equal distance and ordered by id.

    Parameters
    ----------
    n_bits : int
        Length of the codes, both fields together.
    class_bits : int
        Length of the class field, at the beginning of a code; at most 16.
    class_weight : int
        What another class adds to the distance; 0 adds nothing.
    class_first : int, default=0
        How many items of the query's class come before those of all other classes.
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
    items_type = HybridItems
    _items: HybridItems

    def __init__(
        self, n_bits: int, class_bits: int, class_weight: int, *, class_first: int = 0, n_jobs: int | None = None
    ) -> None:
        n_bits = check_integer(n_bits, "n_bits", low=1)
        self.class_bits = check_integer(class_bits, "class_bits", low=1, high=min(n_bits, MAX_CLASS_BITS))
        self.class_weight = check_integer(class_weight, "class_weight", low=0, high=_MAX_WEIGHT)
        self.class_first = check_integer(class_first, "class_first", low=0)
        rule = HammingRule(self.class_bits, self.class_weight, self.class_first)
        self._set_up(n_bits, HybridItems.empty_with(n_bits, rule), n_jobs)

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> Self:
        check_names(arrays, ("ids", "planes", "rule"))
        rule = arrays["rule"]
        if rule.dtype != np.int64 or rule.shape != (3,):
            raise ValueError(f"its rule is {rule.dtype} of shape {rule.shape}")
        index = cls(n_bits, int(rule[0]), int(rule[1]), class_first=int(rule[2]), n_jobs=n_jobs)
        plain = RunItems.from_arrays(n_bits, {name: arrays[name] for name in ("ids", "planes")})
        index._items = replace(index._items, plain=plain)
        return index

    @property
    def class_rule(self) -> HammingRule:
        return self._items.rule

    def candidates(self, codes: BinaryCodes, k: int, among: np.ndarray | None) -> Candidates:
        self._check_space(self.check_codes(codes))
        items = self._items
        mask, _ = passing_items(items, among, 1)
        return items.by_id(items.candidates_near(to_planes(codes), k, mask, self.n_jobs))

    def candidates_within(self, codes: BinaryCodes, radius: int, among: np.ndarray | None) -> Candidates:
        radius = min(check_integer(radius, "radius", low=0), self._largest_distance)
        self._check_space(self.check_codes(codes))
        items = self._items
        mask, _ = passing_items(items, among, 1)
        return items.by_id(items.candidates_within(to_planes(codes), radius, mask, self.n_jobs))

    @property
    def _largest_distance(self) -> int:
        return self.n_bits - self.class_bits + self.class_weight + 1
