"""Hamming histograms: everything that a retrieval metric needs if ties have no order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import Labels, as_label_array, check_labels
from .._common.threads import run_all, tiles
from ..codes.binary import BinaryCodes
from ._histogram_loops import count_by_distance, count_by_distance_multilabel

# Small tiles keep all threads busy; in large ones, more queries find their distances computed for an equal query.
QUERIES_PER_TILE = 64


@dataclass(frozen=True, slots=True, eq=False)
class HammingHistograms:
    """How many items, and how many relevant ones, lie at each distance from each query.

    Parameters
    ----------
    count : integer array of shape (n_queries, n_bits + 1)
        ``count[q, r]`` items lie at Hamming distance exactly r from query q.
    relevant : integer array of the same shape
        ``relevant[q, r]`` of them share a label with the query.
    """

    count: np.ndarray
    relevant: np.ndarray

    def __post_init__(self) -> None:
        count, relevant = np.asarray(self.count), np.asarray(self.relevant)
        if count.ndim != 2 or count.shape != relevant.shape or 0 in count.shape:
            raise ValueError(
                f"count has shape {count.shape} and relevant {relevant.shape}; both must be "
                "(n_queries, n_bits + 1) with at least one query."
            )
        if count.dtype.kind not in "iu" or relevant.dtype.kind not in "iu":
            raise ValueError(f"count is {count.dtype} and relevant {relevant.dtype}; both must hold integers.")
        if (relevant < 0).any() or (relevant > count).any():
            raise ValueError(
                "Some entries of relevant are negative or exceed count; relevant items are a subset of all items. "
                "Count them again."
            )
        totals = count.sum(axis=1)
        if totals[0] == 0 or (totals != totals[0]).any():
            raise ValueError(
                f"The rows of count sum to {totals.min()} ... {totals.max()} items; every query must have "
                "been compared with the same database of at least one item."
            )
        object.__setattr__(self, "count", count.astype(np.int64, copy=False))
        object.__setattr__(self, "relevant", relevant.astype(np.int64, copy=False))

    @property
    def n_queries(self) -> int:
        return len(self.count)

    @property
    def n_bits(self) -> int:
        return self.count.shape[1] - 1

    @property
    def n_items(self) -> int:
        return int(self.count[0].sum())

    @property
    def n_relevant(self) -> np.ndarray:
        """Relevant items of each query, shape (n_queries,)."""
        return self.relevant.sum(axis=1)


def hamming_histograms(
    codes_query: BinaryCodes,
    codes_db: BinaryCodes,
    y_query: ArrayLike,
    y_db: ArrayLike,
    n_jobs: int | None = None,
) -> HammingHistograms:
    """Count items and relevant items by Hamming distance, for every query.

    An item is relevant if its label equals the query's; with label matrices, if the two share a label.
    O(n_queries n_items n_bits / 64) time; no distance is stored.

    Parameters
    ----------
    codes_query, codes_db : BinaryCodes of the same number of bits
    y_query, y_db : labels of shape (n,), or 0/1 label matrices of shape (n, n_classes)
    n_jobs : int or None, default=None
        Threads, in joblib's sense; the counts are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> items = BinaryCodes.from_signs(np.array([[1, 1], [1, -1], [-1, -1]]))
    >>> histograms = hamming_histograms(items[:1], items, ["cat"], ["cat", "dog", "cat"])
    >>> histograms.count.tolist(), histograms.relevant.tolist()
    ([[1, 1, 1]], [[1, 0, 1]])
    """
    check_codes(codes_query, codes_db)
    query_labels, item_labels = relevance_labels(y_query, y_db, len(codes_query), len(codes_db))
    queries, items = packed_words(codes_query), packed_words(codes_db)
    count = np.zeros((len(queries), codes_query.n_bits + 1), dtype=np.int64)
    relevant = np.zeros_like(count)
    fill = _by_class if query_labels.ndim == 1 else _by_label_sets
    scan = fill(queries, items, query_labels, item_labels, count, relevant)
    run_all([partial(scan, rows) for rows in tiles(len(queries), QUERIES_PER_TILE)], n_jobs)
    return HammingHistograms(count, relevant)


def _by_class(
    queries: np.ndarray,
    items: np.ndarray,
    query_class: np.ndarray,
    item_class: np.ndarray,
    count: np.ndarray,
    relevant: np.ndarray,
) -> Callable[[slice], None]:
    """Return a function that counts for some queries, in an order in which equal ones follow each other."""
    order = equal_together(queries, query_class)
    queries, query_class = queries[order], query_class[order]
    distinct = DistinctItems.of(items, item_class)
    starts = np.searchsorted(distinct.classes, np.arange(2 + query_class.max()))

    def scan(rows: slice) -> None:
        counts = np.empty((2, len(order[rows]), count.shape[1]), dtype=np.int64)
        count_by_distance(queries[rows], distinct.planes, query_class[rows], starts, distinct.weights, *counts)
        count[order[rows]], relevant[order[rows]] = counts

    return scan


def _by_label_sets(
    queries: np.ndarray,
    items: np.ndarray,
    query_labels: np.ndarray,
    item_labels: np.ndarray,
    count: np.ndarray,
    relevant: np.ndarray,
) -> Callable[[slice], None]:
    """Return a function that counts for some queries whose labels are sets."""

    def scan(rows: slice) -> None:
        count_by_distance_multilabel(queries[rows], items, query_labels[rows], item_labels, count[rows], relevant[rows])

    return scan


@dataclass(frozen=True, slots=True, eq=False)
class DistinctItems:
    """The distinct pairs of class and code, in order of their classes: many items often have the same.

    Parameters
    ----------
    planes : array of shape (n_words, n), word w of every code in plane w
    classes : array of shape (n,)
    weights : array of shape (n,)
        How many items have this class and code.
    """

    planes: np.ndarray
    classes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, words: np.ndarray, classes: np.ndarray) -> DistinctItems:
        """Count the items that have the same class and code."""
        order = np.lexsort((*words.T, classes))
        words, classes = words[order], classes[order]
        is_new = np.ones(len(words), dtype=bool)
        is_new[1:] = (words[1:] != words[:-1]).any(axis=1) | (classes[1:] != classes[:-1])
        firsts = np.flatnonzero(is_new)
        weights = np.diff(firsts, append=len(words))
        return cls(np.ascontiguousarray(words[firsts].T), classes[firsts], weights)


def equal_together(words: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return an order of the codes in which equal ones follow each other, by class."""
    return np.lexsort((classes, *words.T))


def check_codes(codes_query: BinaryCodes, codes_db: BinaryCodes) -> None:
    """Raise an error if the codes cannot be compared."""
    for name, codes in (("codes_query", codes_query), ("codes_db", codes_db)):
        if not isinstance(codes, BinaryCodes):
            raise TypeError(
                f"{name} is of type {type(codes).__name__}; it must be BinaryCodes. "
                "Use hasher.encode(X), or BinaryCodes.from_signs for an array of signs."
            )
        if len(codes) == 0:
            raise ValueError(f"{name} holds no codes; at least one is needed.")
    if codes_query.n_bits != codes_db.n_bits:
        raise ValueError(
            f"Queries have {codes_query.n_bits} bits and items {codes_db.n_bits}. "
            "Encode both sides with the same hasher."
        )


def packed_words(codes: BinaryCodes) -> np.ndarray:
    """Return the packed bytes as rows of 64-bit words, zero padded."""
    n_words = -(-codes.packed.shape[1] // 8)
    padded = np.zeros((len(codes), 8 * n_words), dtype=np.uint8)
    padded[:, : codes.packed.shape[1]] = codes.packed
    return padded.view(np.uint64)


def relevance_labels(
    y_query: ArrayLike, y_db: ArrayLike, n_queries: int, n_items: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return class indices of shape (n,), or packed label sets of shape (n, n_words) for label matrices."""
    of_queries, of_items = _one_column(y_query), _one_column(y_db)
    for name, y, n in (("y_query", of_queries, n_queries), ("y_db", of_items, n_items)):
        if len(y.shape) not in (1, 2) or len(y) != n:
            raise ValueError(f"{name} has shape {y.shape}; there are {n} codes, so give one label per code.")
    if len(of_queries.shape) == 2 or len(of_items.shape) == 2:
        return _label_sets(np.asarray(of_queries), np.asarray(of_items))
    return _class_indices(check_labels(of_queries, n_queries), check_labels(of_items, n_items))


def _class_indices(query: Labels, item: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Return indices into the classes of both sides together."""
    n_missing = int((~query.labeled).sum() + (~item.labeled).sum())
    if n_missing:
        raise ValueError(
            f"{n_missing} labels are missing (-1, NaN, None or empty text); relevance needs the label of every "
            "query and item. Leave unlabeled rows out."
        )
    # As Python values: NumPy compares int64 with uint64 as floats, which merges large numbers.
    query_classes, item_classes = query.classes.tolist(), item.classes.tolist()
    if {_kind(label) for label in query_classes}.isdisjoint(_kind(label) for label in item_classes):
        raise ValueError(
            f"y_query holds {query.dtype} and y_db {item.dtype} labels, so none could be equal. "
            "Use labels of one type on both sides."
        )
    number = {label: position for position, label in enumerate(dict.fromkeys(query_classes + item_classes))}
    query_number, item_number = (
        np.array([number[label] for label in classes]) for classes in (query_classes, item_classes)
    )
    return query_number[query.index], item_number[item.index]


def _kind(label: object) -> type:
    return type(label) if isinstance(label, (str, bytes)) else object


def _one_column(y: ArrayLike) -> np.ndarray | Labels:
    if isinstance(y, Labels):
        return y
    labels = as_label_array(y)
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _label_sets(y_query: np.ndarray, y_db: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if y_query.ndim != 2 or y_db.ndim != 2 or y_query.shape[1] != y_db.shape[1]:
        raise ValueError(
            f"y_query has shape {y_query.shape} and y_db {y_db.shape}; label matrices need one row per code "
            "and the same columns on both sides."
        )
    for name, y in (("y_query", y_query), ("y_db", y_db)):
        if y.dtype.kind not in "biuf" or not np.isin(y, (0, 1)).all():
            raise ValueError(f"{name} is a matrix with entries other than 0 and 1; mark each label with 1.")
    as_codes = [BinaryCodes.from_signs(y.astype(np.int8)) for y in (y_query, y_db)]
    return packed_words(as_codes[0]), packed_words(as_codes[1])
