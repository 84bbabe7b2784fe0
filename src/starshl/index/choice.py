"""Which index suits some codes, and which one a file holds."""

from __future__ import annotations

import os

from ..codes import BinaryCodes
from ..codes.hamming import to_planes, word_type
from ..exceptions import IndexFormatError
from ._bucket_loops import count_groups
from .buckets import BucketIndex
from .files import read_index_file
from .flat import FlatIndex
from .multi import MultiIndex
from .scan import ScanIndex

__all__ = ["load_index", "make_index"]

_KINDS = {index.kind: index for index in (FlatIndex, BucketIndex, MultiIndex)}


def make_index(codes: BinaryCodes, ids=None, *, n_jobs: int | None = None) -> ScanIndex:
    """Return the index that suits these codes: buckets if at most half of them are different, else flat.

    Both are exact and give equal answers; only time and memory differ.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> few = BinaryCodes.from_signs(np.repeat([[1, 1], [1, -1]], 50, axis=0))
    >>> type(make_index(few)).__name__
    'BucketIndex'
    """
    n_different = count_groups(to_planes(codes), len(codes) // 2)
    index = BucketIndex if len(codes) and n_different <= len(codes) // 2 else FlatIndex
    return index.from_codes(codes, ids, n_jobs=n_jobs)


def load_index(
    path: str | os.PathLike, *, memory_map: bool = False, verify: bool = True, n_jobs: int | None = None
) -> ScanIndex:
    """Read an index written by ``save``.

    Parameters
    ----------
    path : path of the index file
    memory_map : bool, default=False
        Leave the arrays in the file and let the system read what a search touches. The file is never
        changed: the first addition or removal copies the index into memory.
    verify : bool, default=True
        Compare the contents with their checksum, which reads the whole file once. Without it, only the
        header and the length of the file are checked.
    n_jobs : int, default=None
        Threads of a search.
    """
    header, arrays = read_index_file(path, memory_map=memory_map, verify=verify)
    try:
        kind, n_bits = _KINDS[header["kind"]], header["n_bits"]
        planes, ids = arrays["planes"], arrays["ids"]
        n_planes = -(-n_bits // (8 * word_type(n_bits)().itemsize))
        n_codes = len(arrays["starts"]) - 1 if "starts" in arrays else len(ids)
        if planes.shape != (n_planes, n_codes) or planes.dtype != word_type(n_bits):
            raise ValueError(f"its planes are {planes.dtype} of shape {planes.shape}")
        return kind._from_arrays(n_bits, arrays, n_jobs)
    except (KeyError, TypeError, ValueError) as error:
        raise IndexFormatError(
            f"{os.fspath(path)!r} does not hold a complete index ({error}). Save the index again or fetch a fresh copy."
        ) from error
