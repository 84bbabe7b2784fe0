"""HammingIndex: what every index of codes promises, here and on other people's systems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._validation import check_integer
from ..codes import BinaryCodes

__all__ = ["HammingIndex", "Neighbors", "RadiusNeighbors"]

Where = np.ndarray | Callable[[np.ndarray], np.ndarray] | None


class Neighbors(NamedTuple):
    """The nearest items of each query, by distance and then by id; both arrays are (n_queries, k)."""

    ids: np.ndarray
    distances: np.ndarray


class RadiusNeighbors(NamedTuple):
    """All items within a radius, by distance and then by id; those of query q are ``result.of(q)``."""

    starts: np.ndarray
    ids: np.ndarray
    distances: np.ndarray

    def of(self, query: int) -> Neighbors:
        """Return ids and distances found for one query."""
        span = slice(self.starts[query], self.starts[query + 1])
        return Neighbors(self.ids[span], self.distances[span])


class HammingIndex(ABC):
    """Codes with ids, searched exactly by Hamming distance; equal distances are ordered by id."""

    n_bits: int

    @property
    @abstractmethod
    def ids(self) -> np.ndarray:
        """The ids held, int64, in the order in which a filter's mask lists them."""

    @abstractmethod
    def __len__(self) -> int:
        """How many codes are held."""

    @abstractmethod
    def add(self, codes: BinaryCodes, ids=None) -> np.ndarray:
        """Add codes under new ids and return the ids; without ids, the next free ones are taken."""

    @abstractmethod
    def remove(self, ids) -> None:
        """Remove the items with these ids; if one is unknown, nothing is removed."""

    @abstractmethod
    def search(self, codes: BinaryCodes, k: int = 10, *, where: Where = None) -> Neighbors:
        """Return the k nearest items of each code."""

    @abstractmethod
    def search_radius(self, codes: BinaryCodes, radius: int, *, where: Where = None) -> RadiusNeighbors:
        """Return all items within ``radius`` (inclusive) of each code."""

    @abstractmethod
    def reconstruct(self, ids) -> BinaryCodes:
        """Return the codes of these ids."""

    def _check_codes(self, codes: BinaryCodes, role: str = "codes") -> BinaryCodes:
        if not isinstance(codes, BinaryCodes):
            raise TypeError(
                f"{role} is a {type(codes).__name__}; it must be BinaryCodes. "
                "Get them from hasher.encode(X) or BinaryCodes.from_signs(signs)."
            )
        if codes.n_bits != self.n_bits:
            raise ValueError(
                f"{role} has {codes.n_bits} bits; this index holds codes of {self.n_bits}. "
                "Encode with the hasher that made the index."
            )
        return codes

    def _check_k(self, k: int) -> int:
        k = check_integer(k, "k", low=1)
        if k > len(self):
            raise ValueError(f"k is {k}, but the index holds {len(self)} items. Ask for at most that many.")
        return k

    def _check_radius(self, radius: int) -> int:
        return min(check_integer(radius, "radius", low=0), self.n_bits)


def check_ids(ids, n: int | None = None) -> np.ndarray:
    """Return ids as int64, all different; ``n`` is how many there must be."""
    given = np.asarray(ids)
    if given.size == 0:
        given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"ids has dtype {given.dtype} and shape {given.shape}; ids must be one integer an item. "
            "Keep other names in a collection's metadata."
        )
    if n is not None and len(given) != n:
        raise ValueError(f"There are {len(given)} ids for {n} codes; give one id a code.")
    if given.dtype == np.uint64 and len(given) and given.max() > np.iinfo(np.int64).max:
        raise ValueError(f"The id {given.max()} does not fit in 64 signed bits. Use smaller ids.")
    given = given.astype(np.int64)
    ascending = np.sort(given)
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    if len(repeated):
        raise ValueError(f"The id {repeated[0]} is given more than once; ids must be unique.")
    return given


def next_ids(n: int, last: int | None) -> np.ndarray:
    """Return the n ids after ``last`` (from 0 if there is none)."""
    first = 0 if last is None else max(int(last) + 1, 0)
    if first + n - 1 > np.iinfo(np.int64).max:
        raise ValueError(f"No {n} ids are left above {last}. Give the ids yourself.")
    return np.arange(first, first + n, dtype=np.int64)
