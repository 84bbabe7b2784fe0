"""Exact search among packed codes by a scan: the k nearest, and all within a radius.

Codes are kept as planes of machine words (:func:`to_planes`). The order of results is total, by distance and
then by row, so it does not depend on the number of threads.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .._common.threads import run_all, tiles
from . import _hamming_loops as loops
from .binary import BinaryCodes, n_bytes

_EVERY_ROW = np.empty(0, np.bool_)
_ONE_ITEM_PER_ROW = np.empty(0, np.int32)
# A task is at least this many queries over all rows, and more where rows are few, or handing out tasks would cost
# more than running them. Fewer queries than two tasks are cut by rows instead.
_QUERIES_PER_TASK = 32
_DISTANCES_PER_TASK = 1 << 22  # about a millisecond of one thread
_N_ROW_PIECES = 8  # of one query, for up to eight threads


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
    n_queries = queries.shape[1]
    spans, passing = _or(item_starts, _ONE_ITEM_PER_ROW), _or(mask, _EVERY_ROW)
    scan = partial(_scan_nearest, planes, queries.T, k, n_bits, spans, passing, few_pass(mask, n_queries))
    parts = run_all((partial(scan, *task) for task in scan_tasks(n_rows, n_queries)), n_jobs)
    # Results of row pieces are side by side, those of query pieces below each other.
    axis = 0 if _cut_by_queries(n_queries) else 1
    rows, distances = (np.concatenate(part, axis=axis) for part in zip(*parts, strict=True))
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

    def scan(piece: slice, some: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        numbers, rows, distances = loops.rows_within(
            planes, piece.start, piece.stop, by_query[some], radii[some], _or(mask, _EVERY_ROW), gather
        )
        return numbers + some.start, rows, distances

    tasks = scan_tasks(planes.shape[1] if n_rows is None else n_rows, len(by_query))
    parts = run_all((partial(scan, *task) for task in tasks), n_jobs)
    numbers, rows, distances = (np.concatenate(part) for part in zip(*parts, strict=True))
    return loops.group_hits(numbers, rows, distances, len(by_query), n_bits)


def score_penalties(planes: np.ndarray, rows: np.ndarray, query: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sum_{j: b_j \ne q_j} w_j` for the code b of each row, summed in bit order."""
    return loops.score_penalties(planes, rows, query, np.asarray(weights, np.float64))


def _scan_nearest(
    planes: np.ndarray,
    by_query: np.ndarray,
    k: int,
    n_bits: int,
    item_starts: np.ndarray,
    mask: np.ndarray,
    gather: bool,
    piece: slice,
    some: slice,
) -> tuple[np.ndarray, np.ndarray]:
    queries = np.ascontiguousarray(by_query[some])
    return loops.nearest_rows(planes, piece.start, piece.stop, queries, k, n_bits, item_starts, mask, gather)


def scan_tasks(n_rows: int, n_queries: int) -> list[tuple[slice, slice]]:
    """Cut the work into (rows, queries) so that no cut depends on the machine."""
    if _cut_by_queries(n_queries):
        n_together = max(_QUERIES_PER_TASK, _DISTANCES_PER_TASK // max(n_rows, 1))
        return [(slice(0, n_rows), some) for some in tiles(n_queries, n_together)]
    piece = max(-(-n_rows // _N_ROW_PIECES), _DISTANCES_PER_TASK // (4 * max(n_queries, 1)), 4 * loops.TILE)
    return [(rows, slice(0, n_queries)) for rows in tiles(n_rows, piece) or [slice(0, 0)]]


def _cut_by_queries(n_queries: int) -> bool:
    return n_queries >= 2 * _QUERIES_PER_TASK


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
