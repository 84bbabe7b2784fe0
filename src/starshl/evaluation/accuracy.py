"""How well the nearest codeword, or the nearest items, predict the class of a code."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .._threads import run_all, tiles
from .._validation import check_integer, check_labels
from ..codes import BinaryCodes
from ._histogram_loops import neighbor_votes
from .histograms import QUERIES_PER_TILE, DistinctItems, check_codes, equal_together, relevance_labels, words_of

__all__ = ["codeword_accuracy", "codeword_hits", "knn_accuracy"]


def codeword_accuracy(
    codes: BinaryCodes, y: ArrayLike, codewords: BinaryCodes | ArrayLike, classes: ArrayLike
) -> float:
    """Return the share of codes whose nearest codeword is that of their class.

    If several codewords are equally near, the code counts with the share of them that is right: the
    expectation of a random choice.

    Parameters
    ----------
    codes : BinaryCodes
    y : labels of shape (n_codes,)
    codewords : BinaryCodes, or signs of shape (n_codewords, n_bits)
    classes : array of shape (n_codewords,)
        The class that each codeword stands for; a class of y without a codeword is never right.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> codes = BinaryCodes.from_signs(np.array([[1, 1], [1, -1], [-1, -1]]))
    >>> codeword_accuracy(codes, ["a", "a", "a"], [[1, 1], [-1, -1]], ["a", "b"])
    0.5
    """
    if not isinstance(codewords, BinaryCodes):
        codewords = BinaryCodes.from_signs(np.asarray(codewords))
    classes, y = np.asarray(classes), np.asarray(y)
    if classes.shape != (len(codewords),):
        raise ValueError(
            f"classes has shape {classes.shape}; there are {len(codewords)} codewords. Name one class per codeword."
        )
    if not check_labels(y, len(codes)).labeled.all():
        raise ValueError("y has unlabeled rows; accuracy needs the label of every code. Leave them out.")
    return float(codeword_hits(codes.distances(codewords), y, classes).mean())


def codeword_hits(distances: np.ndarray, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return for each row the share of its nearest codewords that stand for its class."""
    nearest = distances == distances.min(axis=1, keepdims=True)
    right = np.reshape(y, (-1, 1)) == np.reshape(classes, (1, -1))
    return (nearest & right).sum(axis=1) / nearest.sum(axis=1)


def knn_accuracy(
    codes_query: BinaryCodes,
    codes_db: BinaryCodes,
    y_query: ArrayLike,
    y_db: ArrayLike,
    k: int = 5,
    *,
    n_jobs: int | None = None,
) -> float:
    """Return the share of queries whose k nearest items vote for their class.

    Items at the distance where k is reached share the votes that are left, so storage order does not
    matter; classes with equally many votes share the query. If a database has fewer than k items, all of them vote.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> items = BinaryCodes.from_signs(np.array([[1, 1], [1, -1], [-1, 1]]))
    >>> knn_accuracy(items[:1], items, ["a"], ["a", "b", "b"], k=2)
    0.5
    """
    check_codes(codes_query, codes_db)
    k = min(check_integer(k, "k", low=1), len(codes_db))
    query_class, item_class = relevance_labels(y_query, y_db, len(codes_query), len(codes_db))
    if query_class.ndim == 2:
        raise ValueError("knn_accuracy takes one label per code, not label matrices. Use precision_at for these.")
    queries, items = words_of(codes_query), words_of(codes_db)
    order = equal_together(queries, query_class)
    queries, query_class = queries[order], query_class[order]
    distinct = DistinctItems.of(items, item_class)
    votes = np.zeros((len(queries), 1 + max(query_class.max(), item_class.max())))

    def scan(rows: slice) -> None:
        loop_items = distinct.planes, distinct.classes, distinct.weights
        neighbor_votes(queries[rows], *loop_items, codes_db.n_bits, k, votes[rows])

    run_all([partial(scan, rows) for rows in tiles(len(queries), QUERIES_PER_TILE)], n_jobs)
    # Fractions of votes that are mathematically equal differ by rounding.
    winners = votes >= votes.max(axis=1, keepdims=True) - 1e-9
    right = winners[np.arange(len(votes)), query_class]
    shares = np.empty(len(votes))
    shares[order] = right / winners.sum(axis=1)
    return float(shares.mean())
