"""Exact search among packed codes by a scan: the k nearest, and all within a radius.

Codes are kept as planes of machine words (:func:`to_planes`). The order of results is total, by distance and
then by row, so it does not depend on the number of threads.
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial

import numpy as np

from .._common.threads import count_threads, run_all, tiles
from . import _hamming_loops as loops
from .binary import BinaryCodes, n_bytes

_EVERY_ROW = np.empty(0, np.bool_)
_ONE_ITEM_PER_ROW = np.empty(0, np.int32)
# A task is at least this many queries over all rows, and more where rows are few, or handing out tasks would cost
# more than running them.
_QUERIES_PER_TASK = 32
_DISTANCES_PER_TASK = 1 << 22  # about a millisecond of one thread
# Fewer queries are shared out among threads, and a few of them scan pieces of the rows. Each thread then has to find
# near rows of its own before it can skip others, so there are no more pieces than threads.
_MIN_DISTANCES_PER_THREAD = 1 << 20
_MIN_QUERIES_PER_THREAD = 4
# How many hits of a query within a radius there is room for at first.
_FIRST_HITS = 256


@lru_cache
def word_type(n_bits: int) -> type:
    """Return the widest word that pads code and id (8 bytes) by at most a quarter.

    >>> [word_type(n_bits).__name__ for n_bits in (8, 32, 48, 64, 80, 256)]
    ['uint8', 'uint32', 'uint64', 'uint64', 'uint32', 'uint64']
    """
    packed = n_bytes(n_bits)
    for word in (np.uint64, np.uint32):
        held = -(-packed // word().itemsize) * word().itemsize
        if 4 * (held - packed) <= packed + 8:
            return word
    return np.uint8


def n_planes(n_bits: int) -> int:
    """Return how many words hold a code.

    >>> [n_planes(n_bits) for n_bits in (8, 24, 64, 80, 256)]
    [1, 1, 1, 3, 4]
    """
    return -(-n_bytes(n_bits) // word_type(n_bits)().itemsize)


def to_planes(codes: BinaryCodes) -> np.ndarray:
    """Return the codes as words of shape (n_planes, n_codes); padding bits are zero."""
    word = word_type(codes.n_bits)
    if codes.packed.shape[1] == word().itemsize and sys.byteorder == "little":
        # Bytes that are one word already: a copy, so that nobody changes the codes through it.
        return codes.packed.copy().view(word).reshape(1, len(codes))
    padded = np.zeros((len(codes), n_planes(codes.n_bits) * word().itemsize), np.uint8)
    padded[:, : codes.packed.shape[1]] = codes.packed
    return np.ascontiguousarray(padded.view(np.dtype(word).newbyteorder("<")).astype(word, copy=False).T)


def from_planes(planes: np.ndarray, n_bits: int) -> BinaryCodes:
    """Undo :func:`to_planes`."""
    words = np.ascontiguousarray(planes.T).astype(planes.dtype.newbyteorder("<"), copy=False)
    return BinaryCodes(np.ascontiguousarray(words.view(np.uint8)[:, : n_bytes(n_bits)]), n_bits)


def nearest(
    planes: np.ndarray,
    queries: np.ndarray,
    k: int,
    n_bits: int,
    *,
    n_rows: int | None = None,
    mask: np.ndarray | None = None,
    item_starts: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and distances of the k nearest rows of each query, both of shape (n_queries, k).

    Parameters
    ----------
    planes, queries : words from :func:`to_planes`, shapes (n_planes, n_rows) and (n_planes, n_queries)
    k : int
    n_bits : int
    n_rows : int, default=None
        Scan only the first n_rows of the planes, which may hold spare room after them.
    mask : bool array of shape (n_rows,), default=None
        Rows that may be returned.
    item_starts : integer array of shape (n_rows + 1,), default=None
        Row r stands for the items ``item_starts[r]`` to ``item_starts[r + 1]``, and rows come in the order of
        their lowest ids: only rows that can hold one of the k nearest items are then returned.
    n_jobs : int, default=None
        Threads; the result is the same for any number.

    Returns
    -------
    rows : int64, -1 where there is none
    distances : int32, n_bits + 1 where there is none
    """
    n_rows = planes.shape[1] if n_rows is None else n_rows
    by_query = np.ascontiguousarray(queries.T)
    spans, passing = _or(item_starts, _ONE_ITEM_PER_ROW), _or(mask, _EVERY_ROW)
    gather = few_pass(mask, len(by_query))
    tasks, by_rows = scan_tasks(n_rows, len(by_query), n_jobs)

    def scan(piece: slice, some: slice) -> tuple[np.ndarray, np.ndarray]:
        return loops.nearest_rows(planes, piece.start, piece.stop, by_query[some], k, n_bits, spans, passing, gather)

    if len(tasks) == 1:
        return scan(*tasks[0])
    parts = run_all((partial(scan, *task) for task in tasks), n_jobs)
    # Results of row pieces are side by side, those of query pieces below each other.
    rows, distances = (np.concatenate(part, axis=1 if by_rows else 0) for part in zip(*parts, strict=True))
    if rows.shape[1] > k:
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        rows = np.take_along_axis(rows, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
    return rows, distances


def within(
    planes: np.ndarray,
    queries: np.ndarray,
    radii: np.ndarray,
    n_bits: int,
    *,
    n_rows: int | None = None,
    mask: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all rows within ``radii[q]`` (inclusive) of each query, by distance and then by row.

    Returns
    -------
    starts : int64 of shape (n_queries + 1,)
        The hits of query q are entries ``starts[q]`` to ``starts[q + 1]`` of the other two.
    rows : int64 of shape (n_hits,)
    distances : int32 of shape (n_hits,)
    """
    by_query = np.ascontiguousarray(queries.T)
    radii = np.minimum(np.broadcast_to(np.asarray(radii, np.int64), len(by_query)), n_bits)
    gather = few_pass(mask, len(by_query))
    word = np.uint32 if n_bits < 1 << (32 - loops.OFFSET_BITS) else np.uint64

    def find(piece: slice, some: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        room = np.empty(_FIRST_HITS * (some.stop - some.start), word)
        return loops.rows_within(
            planes, piece.start, piece.stop, by_query[some], radii[some], n_bits, _or(mask, _EVERY_ROW), gather, room
        )

    tasks, _ = scan_tasks(planes.shape[1] if n_rows is None else n_rows, len(by_query), n_jobs)
    parts = run_all((partial(find, *task) for task in tasks), n_jobs)
    counts = np.zeros((len(by_query), n_bits + 1), np.int64)
    for (_, some), (_, _, found) in zip(tasks, parts, strict=True):
        counts[some] += found
    ends = np.cumsum(counts.ravel()).reshape(counts.shape)
    rows, places, placing = np.empty(counts.sum(), np.int64), ends - counts, []
    for (piece, some), (hits, hit_ends, found) in zip(tasks, parts, strict=True):
        placing.append(partial(loops.place_hits, hits, hit_ends, piece.start, places[some].copy(), rows))
        places[some] += found
    run_all(placing, n_jobs)
    starts = np.concatenate([[0], ends[:, -1]])
    return starts, rows, np.repeat(np.tile(np.arange(n_bits + 1, dtype=np.int32), len(by_query)), counts.ravel())


def score_penalties(planes: np.ndarray, rows: np.ndarray, query: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sum_{j: b_j \ne q_j} w_j` for the code b of each row, summed in bit order."""
    return loops.score_penalties(planes, rows, query, np.asarray(weights, np.float64))


def scan_tasks(n_rows: int, n_queries: int, n_jobs: int | None) -> tuple[list[tuple[slice, slice]], bool]:
    """Cut the work into (rows, queries); return the tasks, and whether the rows are cut.

    Results are the same for any cut, because their order is total.
    """
    every_row, every_query = slice(0, n_rows), slice(0, n_queries)
    n_together = max(_QUERIES_PER_TASK, _DISTANCES_PER_TASK // max(n_rows, 1))
    if n_queries >= 2 * n_together:
        return [(every_row, some) for some in tiles(n_queries, n_together)], False
    n_threads = n_rows * n_queries // _MIN_DISTANCES_PER_THREAD
    n_threads = min(n_threads, count_threads(n_jobs)) if n_threads > 1 else 1  # counting cores takes its time
    if n_threads <= 1:
        return [(every_row, every_query)], False
    if n_queries >= n_threads * _MIN_QUERIES_PER_THREAD:
        return [(every_row, some) for some in tiles(n_queries, -(-n_queries // n_threads))], False
    return [(rows, every_query) for rows in tiles(n_rows, -(-n_rows // n_threads))], True


def few_pass(mask: np.ndarray | None, n_queries: int) -> bool:
    """Return whether gathering the rows that pass costs less than scanning past all the others.

    A task gathers a tile once for all its queries. Gathering one row takes as long as scanning eight. If very few
    rows pass, the scan meets no near rows that would narrow it, and has to look through every chunk.
    """
    if mask is None:
        return False
    n_hidden = len(mask) - int(np.count_nonzero(mask))
    return 16 * n_hidden > 15 * len(mask) or min(n_queries, _QUERIES_PER_TASK) * n_hidden > 8 * len(mask)


def _or(array: np.ndarray | None, otherwise: np.ndarray) -> np.ndarray:
    return otherwise if array is None else array
