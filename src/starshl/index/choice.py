"""Which index suits some codes, and which one a file holds."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import check_integer
from ..codes.binary import BinaryCodes, check_space_id
from ..codes.hamming import to_planes
from ..exceptions import IndexFormatError
from ._bucket_loops import count_groups
from .base import check_spaces
from .buckets import BucketIndex
from .files import read_index_file
from .hybrid import HybridIndex
from .memory import FlatIndex, MemoryIndex
from .multi import MultiIndex
from .posterior import PosteriorIndex
from .residual import ResidualIndex

_KINDS = {
    index.kind: index for index in (FlatIndex, BucketIndex, MultiIndex, PosteriorIndex, HybridIndex, ResidualIndex)
}


class _Hasher(Protocol):
    """What is asked of the hasher of some codes."""

    @property
    def space_id_(self) -> str | None: ...

    def make_index(
        self, codes: BinaryCodes, ids: ArrayLike | None = None, *, n_jobs: int | None = None
    ) -> MemoryIndex: ...


def make_index(
    codes: BinaryCodes, ids: ArrayLike | None = None, *, hasher: _Hasher | None = None, n_jobs: int | None = None
) -> MemoryIndex:
    """Return the index that suits these codes: buckets if at most half of them are different, else flat.

    Both are exact and give equal answers; only time and memory differ. Pass the hasher if it compares codes in another
    way than by Hamming distance.

    Parameters
    ----------
    codes : BinaryCodes
    ids : array of int, default=None
        One per code; 0, 1, 2, ... if None.
    hasher : the fitted hasher of the codes, default=None
        Needed for codes of a :class:`starshl.HybridHasher`. Codes of an unknown space are then those of this hasher.
    n_jobs : int, default=None
        Threads of a search.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> few = BinaryCodes.from_signs(np.repeat([[1, 1], [1, -1]], 50, axis=0))
    >>> type(make_index(few)).__name__
    'BucketIndex'
    """
    if hasher is not None:
        check_spaces(codes.space_id, hasher.space_id_)
        codes = replace(codes, space_id=codes.space_id or hasher.space_id_)
        return hasher.make_index(codes, ids, n_jobs=n_jobs)
    n_different = count_groups(to_planes(codes), len(codes) // 2)
    index = BucketIndex if len(codes) and n_different <= len(codes) // 2 else FlatIndex
    return index.from_codes(codes, ids, n_jobs=n_jobs)


def load_index(
    path: str | os.PathLike[str], *, memory_map: bool = False, verify: bool = True, n_jobs: int | None = None
) -> MemoryIndex:
    """Read an index written by ``save``.

    Parameters
    ----------
    path : path of the index file
    memory_map : bool, default=False
        Leave the arrays in the file and let the system read them when needed. The file is never changed: the first
        addition or removal copies the index into memory. Do not overwrite the file in place while it is mapped;
        ``save`` never does, because it renames a new file.
    verify : bool, default=True
        Compare the contents with their checksum. Without it, damage that leaves a well-formed index goes unnoticed; a
        file that could make a search read outside its arrays is refused either way.
    n_jobs : int, default=None
        Threads of a search.
    """
    header, arrays = read_index_file(path, memory_map=memory_map, verify=verify)
    header.pop("format")
    try:
        return unpack_index(header, arrays, n_jobs=n_jobs)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise IndexFormatError.damaged(f"it does not hold a complete index ({error})", path) from error


def unpack_index(header: dict[str, Any], arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> MemoryIndex:
    """Undo :meth:`starshl.index.MemoryIndex.pack`; raise ValueError for what a search cannot trust."""
    if sorted(header) != ["kind", "n_bits", "space_id"] or header["kind"] not in _KINDS:
        raise ValueError(f"its header is {header}")
    n_bits = check_integer(header["n_bits"], "its n_bits", low=1)
    index = _KINDS[header["kind"]].from_arrays(n_bits, arrays, n_jobs=n_jobs)
    index.space_id = check_space_id(header["space_id"])
    return index
