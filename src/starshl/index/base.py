"""HammingIndex: what every index of codes promises, here and in other systems."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import check_integer, check_number
from .._common.warn import warn_caller
from .._common.words import counted
from ..codes.binary import BinaryCodes, Metric
from ..codes.queries import EncodedQueries
from ..exceptions import InputError, SpaceMismatchError, UnknownSpaceWarning, UnsupportedOperationError

_LARGEST_ID = np.iinfo(np.int64).max
#: What an index may support besides adding codes, searching them, and filtering by ids with ``among``.
CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "mask": "among= also takes one boolean per item, in the order of ids",
        "metadata": "add() takes metadata=, and searches filter by it with where=",
        "probability": "probabilities() says how likely hits are of a query's class, searches take min_probability=",
        "reconstruct": "reconstruct() returns stored codes",
        "remove": "remove() removes items",
        "save": "save() writes the index to a file",
        "scores": "search() orders items at equal distance by scores=",
        "threads": "threads may search the index while another one changes it",
    }
)

_ADVICE = {
    "probability": "Codes that stand for probabilities need make_index(codes, hasher=hasher).",
    "scores": "An index that supports probability needs none: queries keep their posteriors.",
}


class Neighbors(NamedTuple):
    """The nearest items of each query, by distance and then by id; both arrays are (n_queries, n_neighbors)."""

    distances: np.ndarray
    ids: np.ndarray


class RadiusNeighbors(NamedTuple):
    """All items within a radius, by distance and then by id; those of query q are ``result.of(q)``."""

    starts: np.ndarray
    distances: np.ndarray
    ids: np.ndarray

    def of(self, query: int) -> Neighbors:
        """Return the distances and ids of one query's neighbors."""
        span = slice(self.starts[query], self.starts[query + 1])
        return Neighbors(self.distances[span], self.ids[span])


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """What a search asks for besides queries and a limit, as checked by :meth:`HammingIndex.search`."""

    among: np.ndarray | None = None
    where: Mapping[str, Any] | None = None
    scores: np.ndarray | None = None
    min_probability: float = 0.0


class HammingIndex(ABC):
    """Codes with ids, searched by Hamming distance; equal distances are ordered by id.

    A subclass declares in ``supports`` which :data:`CAPABILITIES` it has, and implements the methods whose names
    begin with an underscore. These get checked arguments, and only those that the class supports: asking for
    anything else raises :class:`~starshl.exceptions.UnsupportedOperationError` before they are called.
    :func:`starshl.testing.check_index` tests the whole contract.

    Attributes
    ----------
    n_bits : int
    space_id : str or None
        The space of the codes, taken from the first ones that are added; None is unknown. Codes of another space are
        refused, in additions and in searches. If only one side is unknown, the index warns once.
    """

    supports: frozenset[str] = frozenset()
    #: The distance that answers are ordered by: that of ``BinaryCodes.metric``.
    metric: Metric = "hamming"
    #: The type of distances: numbers of bits, unless a class says otherwise.
    distance_type: type[np.number[Any]] = np.int32

    n_bits: int
    space_id: str | None = None
    _has_warned: bool = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({counted(len(self), 'item')} of {counted(self.n_bits, 'bit')})"

    @property
    @abstractmethod
    def ids(self) -> np.ndarray:
        """All ids, int64, as a read-only array or a copy."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many codes the index holds."""

    def add(
        self, codes: BinaryCodes, ids: ArrayLike | None = None, metadata: Sequence[Mapping[str, Any]] | None = None
    ) -> np.ndarray:
        """Add codes and return their ids: all of them, or none if one is wrong.

        Parameters
        ----------
        codes : BinaryCodes
        ids : array of int, default=None
            New ids, one per code; the next free ones if None.
        metadata : list of dict, default=None
            One dictionary per code, where the index supports "metadata".
        """
        self.check_codes(codes)
        if metadata is not None:
            self._require("metadata")
        ids = None if ids is None else check_ids(ids, len(codes))
        with self._write_lock():
            takes_space = not self._check_space(codes) and len(codes) > 0
            added = self._add(codes, ids, metadata)
            if takes_space:
                self._set_space(codes.space_id)
        return added

    def remove(self, ids: ArrayLike) -> None:
        """Remove the items with these ids; if one is unknown, nothing is removed."""
        self._require("remove")
        self._remove(check_ids(ids))

    def search(
        self,
        queries: BinaryCodes | EncodedQueries,
        k: int = 10,
        *,
        among: ArrayLike | None = None,
        where: Mapping[str, Any] | None = None,
        scores: ArrayLike | None = None,
        min_probability: float | None = None,
    ) -> Neighbors:
        """Return the k nearest items of each query, by distance and then by id.

        Parameters
        ----------
        queries : EncodedQueries or BinaryCodes
            As ``hasher.encode_queries`` or ``hasher.encode`` returns them.
        k : int, default=10
            If fewer items can be returned, the result has fewer columns.
        among : array of int, default=None
            The ids that may be returned; ids that are not in the index change nothing. An index that supports "mask"
            also takes one boolean per item, in the order of ``ids``.
        where : dict, default=None
            What the metadata of an item must equal, such as ``{"label": 3}``, where the index supports "metadata".
        scores : array of shape (n_queries, n_bits), default=None
            Real scores of the queries, as ``hasher.decision_function`` returns them, where the index supports
            "scores". Items at equal distance are then ordered by their inner product with the scores, largest
            first, and only then by id.
        min_probability : float, default=None
            How likely an item must be of the query's class, from 0 to 1, where the index supports "probability". Where
            that leaves fewer than k items, the last ids are -1 and their distances infinite.
        """
        asked, least = self._asked(queries), self._check_probability(min_probability)
        k = check_integer(k, "k", low=1)
        among = self._check_filters(among, where)
        if scores is not None:
            self._require("scores")
            scores = _check_scores(scores, asked.codes)
        return self._search(asked, k, Wanted(among, where, scores, least))

    def search_radius(
        self,
        queries: BinaryCodes | EncodedQueries,
        radius: float = np.inf,
        *,
        among: ArrayLike | None = None,
        where: Mapping[str, Any] | None = None,
        min_probability: float | None = None,
    ) -> RadiusNeighbors:
        """Return all items within ``radius`` (inclusive) of each query; filters are those of :meth:`search`."""
        asked, least = self._asked(queries), self._check_probability(min_probability)
        radius, among = self._check_radius(radius), self._check_filters(among, where)
        return self._search_radius(asked, radius, Wanted(among, where, min_probability=least))

    def probabilities(self, queries: BinaryCodes | EncodedQueries, ids: ArrayLike) -> np.ndarray:
        """Return how likely items are of the class of a query, float64 of the shape of ``ids``.

        Parameters
        ----------
        queries : EncodedQueries or BinaryCodes
        ids : array of shape (n_queries, n)
            For each query the ids of items, as :meth:`search` returns them. That of -1 is 0, if no item has this id.
        """
        self._require("probability")
        raise NotImplementedError

    def queries_of(self, ids: ArrayLike) -> EncodedQueries:
        """Return what stands for these items when others are to be found by them."""
        return EncodedQueries(self.reconstruct(ids))

    def reconstruct(self, ids: ArrayLike) -> BinaryCodes:
        """Return the codes of these ids."""
        self._require("reconstruct")
        return replace(self._reconstruct(check_ids(ids)), space_id=self.space_id, metric=self.metric)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file."""
        self._require("save")
        self._save(path)

    def check_codes(self, codes: BinaryCodes) -> BinaryCodes:
        """Return the codes, or raise if they are not such as this index holds."""
        if not isinstance(codes, BinaryCodes):
            raise TypeError(
                f"codes is a {type(codes).__name__}; it must be BinaryCodes. "
                "Get them from hasher.encode(X) or BinaryCodes.from_signs(signs)."
            )
        if codes.n_bits != self.n_bits:
            raise ValueError(
                f"codes has {codes.n_bits} bits; this index holds codes of {self.n_bits}. "
                "Encode with the hasher that made the index."
            )
        check_metric(codes, type(self).__name__, self.metric)
        return codes

    @abstractmethod
    def _add(
        self, codes: BinaryCodes, ids: np.ndarray | None, metadata: Sequence[Mapping[str, Any]] | None
    ) -> np.ndarray: ...

    @abstractmethod
    def _search(self, queries: EncodedQueries, k: int, wanted: Wanted) -> Neighbors: ...

    @abstractmethod
    def _search_radius(self, queries: EncodedQueries, radius: float, wanted: Wanted) -> RadiusNeighbors: ...

    def _remove(self, ids: np.ndarray) -> None:
        raise NotImplementedError

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        raise NotImplementedError

    def _save(self, path: str | os.PathLike[str]) -> None:
        raise NotImplementedError

    def _write_lock(self) -> AbstractContextManager[object]:
        """Keep other threads from adding: two must not both find an empty index, which takes codes of any space."""
        return nullcontext()

    def _set_space(self, space_id: str | None) -> None:
        """Remember the space of the codes, also where others will open the index."""
        self.space_id = space_id

    def _current_space(self) -> str | None:
        """Return the space of the codes, also where others may have changed it."""
        return self.space_id

    def _check_space(self, codes: BinaryCodes) -> bool:
        """Refuse codes of another space, warn once of unknown ones; return whether the index has its space."""
        if codes.space_id == self.space_id:
            return True
        if not len(self):
            return False
        held = self._current_space()
        check_spaces(codes.space_id, held)
        if codes.space_id != held and not self._has_warned:
            self._has_warned = True
            warn_of_unknown_space(codes.space_id, held)
        return True

    def _asked(self, queries: BinaryCodes | EncodedQueries) -> EncodedQueries:
        """Return queries, or raise if this index cannot compare them."""
        codes = self.check_codes(queries.codes if isinstance(queries, EncodedQueries) else queries)
        self._check_space(codes)
        return queries if isinstance(queries, EncodedQueries) else EncodedQueries(codes)

    def _check_radius(self, radius: float) -> float:
        """Return the radius as a number that the distances of this index can be compared with."""
        if self.distance_type is np.float64:
            return check_number(radius, "radius", low=0, finite=False)
        if isinstance(radius, float) and radius == np.inf:
            return self.n_bits
        return min(check_integer(radius, "radius", low=0), self.n_bits)

    def _check_probability(self, value: float | None) -> float:
        """Return the least probability as a number; 0 leaves nothing out."""
        if value is None:
            return 0.0
        self._require("probability")
        least = float(value) if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) else np.nan
        if not 0 <= least <= 1:
            raise InputError(
                "{parameter} is {value!r}", "it must be a number from 0 to 1", parameter="min_probability", value=value
            )
        return least

    def _require(self, capability: str) -> None:
        if capability not in self.supports:
            raise UnsupportedOperationError(
                f"{type(self).__name__} does not support {capability!r} ({CAPABILITIES[capability]}). "
                f"It supports: {', '.join(sorted(self.supports)) or 'nothing beyond adding and searching'}. "
                f"{_ADVICE.get(capability, '')}".rstrip()
            )

    def _check_filters(self, among: ArrayLike | None, where: Mapping[str, Any] | None) -> np.ndarray | None:
        """Return ``among`` as an array of int64 or bool."""
        if where is not None:
            self._require("metadata")
            if not isinstance(where, Mapping):
                raise ValueError(
                    f"where is a {type(where).__name__}; it must be a dictionary such as {{'label': 3}}. "
                    "Pass ids as among=."
                )
        if among is None:
            return None
        given = np.asarray(among)
        if given.dtype == np.bool_ and given.ndim == 1:
            self._require("mask")
            return np.ascontiguousarray(given)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
            raise ValueError(f"among has dtype {given.dtype} and shape {given.shape}; it must be an array of ids.")
        if given.dtype == np.uint64:
            given = given[given <= np.iinfo(np.int64).max]
        return given.astype(np.int64, copy=False)


def _check_scores(scores: ArrayLike, codes: BinaryCodes) -> np.ndarray:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(codes), codes.n_bits) or not np.isfinite(scores).all():
        raise ValueError(
            f"scores has shape {scores.shape}; it must be finite and of shape "
            f"({len(codes)}, {codes.n_bits}), as hasher.decision_function(X) gives it."
        )
    return scores


def check_metric(codes: BinaryCodes, name: str, metric: Metric) -> None:
    """Refuse codes that an index of this metric would compare in a way they are not made for."""
    if codes.metric not in ("hamming", metric):
        raise ValueError(
            f"These are hybrid codes, which begin with a class; {name} treats all bits the same and would rank them "
            "wrongly. Make their index with hasher.make_index(codes) or make_index(codes, hasher=hasher)."
        )


def check_spaces(arriving: str | None, held: str | None) -> None:
    """Refuse codes of another space than those of an index; None is unknown."""
    if None not in (arriving, held) and arriving != held:
        raise SpaceMismatchError(
            f"These codes are of space {arriving}; the index holds codes of space {held}. Distances between spaces "
            "mean nothing. Encode with the hasher of the index, or fit hashers to one Codebook."
        )


def warn_of_unknown_space(arriving: str | None, held: str | None) -> None:
    """Warn that codes of an unknown space and of a known one meet."""
    if arriving is None:
        what = f"The space of these codes is unknown; the index holds codes of space {held}"
        advice = "If the same hasher made them, say so: BinaryCodes(packed, n_bits, space_id=hasher.space_id_)."
    else:
        what = f"These codes are of space {arriving}; the index holds codes of an unknown space"
        advice = "Make the index from codes that know theirs, such as hasher.encode(X), or set index.space_id."
    warn_caller(
        f"{what}. They are compared as if both were of the same space. {advice}",
        UnknownSpaceWarning,
    )


def check_ids(ids: ArrayLike, n: int | None = None) -> np.ndarray:
    """Return ids as int64, all different; ``n`` is how many there must be."""
    given = np.asarray(ids)
    if given.size == 0:
        given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"ids has dtype {given.dtype} and shape {given.shape}; it must be a list of integers, one per item. "
            "Keep other names in a collection's metadata."
        )
    if n is not None and len(given) != n:
        raise ValueError(f"There are {len(given)} ids for {n} codes; give one id per code.")
    if given.dtype == np.uint64 and len(given) and given.max() > _LARGEST_ID:
        raise ValueError(f"The id {given.max()} does not fit in 64 signed bits. Use smaller ids.")
    given = given.astype(np.int64)
    if not all_different(given):
        ascending = np.sort(given)
        repeated = ascending[1:][ascending[1:] == ascending[:-1]]
        raise ValueError(f"The id {repeated[0]} is given more than once; ids must be unique.")
    return given


def existing_id(item: int) -> ValueError:
    """Return the error for an id that is in an index already."""
    return ValueError(
        f"The id {item} is already in the index, and nothing was added. Remove it first, or give a new id."
    )


def all_different(ids: np.ndarray) -> bool:
    """Return whether no id occurs twice."""
    if len(ids) < 2 or (ids[1:] > ids[:-1]).all():
        return True
    lowest, span = ids.min(), int(ids.max()) - int(ids.min()) + 1
    if span <= 8 * len(ids):
        # Marking a place for each id takes a tenth of the time of sorting them.
        seen = np.zeros(span, np.bool_)
        seen[ids - lowest] = True
        return int(np.count_nonzero(seen)) == len(ids)
    ascending = np.sort(ids)
    return bool((ascending[1:] > ascending[:-1]).all())


def next_ids(n: int, last: int | None) -> np.ndarray:
    """Return the n ids after ``last`` (from 0 if there is none)."""
    first = 0 if last is None else max(int(last) + 1, 0)
    if first + n - 1 > _LARGEST_ID:
        raise ValueError(f"Not enough ids are left above {last} for {n} new items. Give the ids yourself.")
    return np.arange(first, first + n, dtype=np.int64)
