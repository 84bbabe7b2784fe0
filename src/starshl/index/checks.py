"""Checks of arrays that were read from a file, before a compiled loop trusts them.

The loops read memory wherever these arrays point, without checking that the place exists. A crafted file with a valid
checksum must not be able to exploit that, so every property that a loop relies on is checked here.
"""

from __future__ import annotations

import numpy as np

from ..codes.hamming import n_planes, word_type
from ._bucket_loops import count_groups
from .ids import all_different

__all__ = ["check_buckets", "check_columns", "check_names", "check_sorted_ids"]


def check_names(arrays: dict[str, np.ndarray], expected: tuple[str, ...]) -> None:
    """Raise ValueError unless there are exactly these arrays."""
    if sorted(arrays) != sorted(expected):
        raise ValueError(f"it holds the arrays {sorted(arrays)}, not {sorted(expected)}")


def check_columns(planes: np.ndarray, n_bits: int, n_columns: int) -> None:
    """Raise ValueError unless the planes are codes of this length: words of the right kind, padding bits zero."""
    word, shape = np.dtype(word_type(n_bits)), (n_planes(n_bits), n_columns)
    if planes.dtype != word or planes.shape != shape:
        raise ValueError(f"its planes are {planes.dtype} of shape {planes.shape}, not {word} of shape {shape}")
    n_used = n_bits - 8 * word.itemsize * (shape[0] - 1)
    # A shift by the whole width of a word is undefined, so words without padding are left out.
    if n_used < 8 * word.itemsize and np.any(planes[-1] >> word.type(n_used)):
        raise ValueError("some padding bits of its codes are set")


def check_sorted_ids(ids: np.ndarray) -> None:
    """Raise ValueError unless the ids are int64 and ascend strictly."""
    _check_id_type(ids)
    if np.any(ids[1:] <= ids[:-1]):
        raise ValueError("its ids are not in ascending order")


def check_buckets(planes: np.ndarray, starts: np.ndarray, ids: np.ndarray) -> None:
    """Raise ValueError unless starts cut the ids into buckets as :class:`starshl.index.grouping.Buckets` requires."""
    _check_id_type(ids)
    if starts.ndim != 1 or starts.dtype not in (np.int32, np.int64) or not len(starts):
        raise ValueError(f"its starts are {starts.dtype} of shape {starts.shape}")
    if starts[0] != 0 or starts[-1] != len(ids) or np.any(starts[1:] <= starts[:-1]):
        raise ValueError(f"its starts do not rise from 0 to the number of ids, {len(ids)}")
    descents = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
    if not np.isin(descents, starts).all():
        raise ValueError("the ids of a bucket are not in ascending order")
    lowest = ids[starts[:-1]]
    if np.any(lowest[1:] <= lowest[:-1]):
        raise ValueError("its buckets are not ordered by their lowest ids")
    if not all_different(ids):
        raise ValueError("an id occurs more than once")
    n_buckets = len(starts) - 1
    if n_buckets < len(ids) and count_groups(planes, n_buckets) != n_buckets:
        raise ValueError("two buckets hold the same code")


def _check_id_type(ids: np.ndarray) -> None:
    if ids.dtype != np.int64 or ids.ndim != 1:
        raise ValueError(f"its ids are {ids.dtype} of shape {ids.shape}")
