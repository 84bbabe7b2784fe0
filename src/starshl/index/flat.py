"""FlatIndex: an exact scan of every code."""

from __future__ import annotations

from .run_items import RunItems
from .scan import ScanIndex

__all__ = ["FlatIndex"]


class FlatIndex(ScanIndex):
    """Search by scanning every code: the index for codes that are mostly different.

    Items are kept in the order of their ids, so ties need no comparison and bisection finds an id.
    Adding ids above all others appends; any other addition and every removal moves items, in O(len). Ids
    that are consecutive, with few gaps, take no memory.

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
    >>> distances, ids = index.search(codes[0], k=2)
    >>> distances.tolist(), ids.tolist()
    ([[0, 1]], [[30, 20]])
    >>> index.search_radius(codes[0], 3, among=[10, 20]).of(0).ids.tolist()
    [20, 10]
    """

    kind = "flat"
    snapshot_type = RunItems
