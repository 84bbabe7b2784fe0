"""Ids: 64-bit integers, all different."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["all_different", "check_ids", "next_ids"]

_LARGEST = np.iinfo(np.int64).max


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
    if given.dtype == np.uint64 and len(given) and given.max() > _LARGEST:
        raise ValueError(f"The id {given.max()} does not fit in 64 signed bits. Use smaller ids.")
    given = given.astype(np.int64)
    if not all_different(given):
        ascending = np.sort(given)
        repeated = ascending[1:][ascending[1:] == ascending[:-1]]
        raise ValueError(f"The id {repeated[0]} is given more than once; ids must be unique.")
    return given


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
    if first + n - 1 > _LARGEST:
        raise ValueError(f"Not enough ids are left above {last} for {n} new items. Give the ids yourself.")
    return np.arange(first, first + n, dtype=np.int64)
