"""Retrieval metrics as expectations over the order of ties, so that storage order never matters.

Many items lie at the same Hamming distance. Each retrieval metric is a function of :class:`HammingHistograms` alone:
the exact mean over all orders of items at equal distance. Accuracies by the nearest codeword or items count ties in
part, and :func:`occupancy` says how codes fill buckets of equal codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import check_labels
from .._common.threads import run_all, tiles
from .._common.validation import check_choice, check_integer
from ..codes.binary import BinaryCodes
from ._histogram_loops import hits_in_storage_order, neighbor_votes
from .histograms import (
    QUERIES_PER_TILE,
    DistinctItems,
    HammingHistograms,
    check_codes,
    equal_together,
    hamming_histograms,
    packed_words,
    relevance_labels,
)


def precision_at(
    codes_query: BinaryCodes,
    codes_db: BinaryCodes,
    y_query: ArrayLike,
    y_db: ArrayLike,
    s: int = 10,
    *,
    ties: Literal["expected", "index"] = "expected",
    n_jobs: int | None = None,
) -> float:
    """Return the mean over queries of the share of relevant items among the s nearest.

    Parameters
    ----------
    codes_query, codes_db : BinaryCodes
    y_query, y_db : labels of shape (n,), or 0/1 label matrices of shape (n, n_classes)
    s : int, default=10
        If the database has fewer items, all of them count.
    ties : {"expected", "index"}, default="expected"
        "expected" averages over all orders of items at equal distance. "index" takes them in storage
        order, as a stable sort does: the result then depends on how the database is sorted.
    n_jobs : int or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> items = BinaryCodes.from_signs(np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]))
    >>> precision_at(items[:1], items, [0], [0, 0, 1, 1], s=2)
    0.75
    """
    s = check_integer(s, "s", low=1)
    check_choice(ties, "ties", ("expected", "index"))
    histograms = hamming_histograms(codes_query, codes_db, y_query, y_db, n_jobs)
    if ties == "expected":
        return float(expected_precision(histograms, s).mean())
    hits = _hits_in_storage_order(codes_query, codes_db, y_query, y_db, s, histograms.count, n_jobs)
    return float((hits / min(s, histograms.n_items)).mean())


def _hits_in_storage_order(
    codes_query: BinaryCodes,
    codes_db: BinaryCodes,
    y_query: ArrayLike,
    y_db: ArrayLike,
    s: int,
    count: np.ndarray,
    n_jobs: int | None,
) -> np.ndarray:
    query_class, item_class = relevance_labels(y_query, y_db, len(codes_query), len(codes_db))
    if query_class.ndim == 2:
        raise ValueError("ties='index' takes one label per code; use ties='expected' with label matrices.")
    queries, items = packed_words(codes_query), packed_words(codes_db)
    hits = np.zeros(len(queries), dtype=np.int64)

    def scan(rows: slice) -> None:
        hits_in_storage_order(queries[rows], items, query_class[rows], item_class, count[rows], s, hits[rows])

    run_all([partial(scan, rows) for rows in tiles(len(queries), QUERIES_PER_TILE)], n_jobs)
    return hits


def mean_average_precision(
    codes_query: BinaryCodes,
    codes_db: BinaryCodes,
    y_query: ArrayLike,
    y_db: ArrayLike,
    k: int | None = None,
    *,
    n_jobs: int | None = None,
) -> float:
    """Return the mean of :func:`average_precision` over the queries that have a relevant item.

    NaN if no query has one.
    """
    histograms = hamming_histograms(codes_query, codes_db, y_query, y_db, n_jobs)
    return mean_of_known(average_precision(histograms, k))


def mean_of_known(values: np.ndarray) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    known = ~np.isnan(values)
    return float(values[known].mean()) if known.any() else float("nan")


def expected_precision(histograms: HammingHistograms, s: int | Sequence[int]) -> np.ndarray:
    r"""Return each query's expected share of relevant items among its s nearest.

    .. math:: P@s = \frac1s \sum_r t_r \frac{rel_r}{cnt_r}, \qquad t_r = \min(cnt_r,\; s - \sum_{r'<r} t_{r'})

    where s is at most the number of items.

    Returns
    -------
    array of shape (n_queries,), or (n_queries, len(s)) for a sequence

    Examples
    --------
    >>> expected_precision(HammingHistograms([[1, 3, 2]], [[1, 1, 1]]), 3)
    array([0.55555556])
    """
    lengths = np.minimum(_check_lengths(s), histograms.n_items)
    before = _items_before(histograms)
    share = _share_relevant(histograms)
    columns = [(np.clip(length - before, 0, histograms.count) * share).sum(axis=1) / length for length in lengths]
    return columns[0] if np.ndim(s) == 0 else np.stack(columns, axis=1)


def list_size(histograms: HammingHistograms, s: int | Sequence[int]) -> np.ndarray:
    """Return how many items lie within the radius at which s items are reached, for each query.

    The larger it is than s, the more the order of ties would have mattered.
    """
    lengths = np.minimum(_check_lengths(s), histograms.n_items)
    ball = histograms.count.cumsum(axis=1)
    columns = [ball[np.arange(len(ball)), (ball >= length).argmax(axis=1)] for length in lengths]
    return columns[0] if np.ndim(s) == 0 else np.stack(columns, axis=1)


def average_precision(histograms: HammingHistograms, k: int | None = None) -> np.ndarray:
    r"""Return each query's expected average precision; NaN where no item is relevant.

    With n = cnt and R = rel at a distance, c items and h relevant items nearer than that,

    .. math:: AP = \frac{1}{Rel} \sum_{buckets} \frac Rn \sum_{i=1}^{n}
              \frac{h + 1 + (i - 1)\frac{R - 1}{n - 1}}{c + i}

    where the inner sum has a closed form in harmonic numbers. With ``k`` it stops at position k and Rel
    becomes min(Rel, k).

    Examples
    --------
    >>> average_precision(HammingHistograms([[1, 3, 2]], [[1, 1, 1]]))
    array([0.75740741])
    """
    n_items = histograms.n_items
    k = n_items if k is None else min(check_integer(k, "k", low=1), n_items)
    n, hits = histograms.count, histograms.relevant
    before = _items_before(histograms)
    hits_before = hits.cumsum(axis=1) - hits
    slope = np.where(n > 1, (hits - 1) / np.maximum(n - 1, 1), 0.0)
    taken = np.clip(k - before, 0, n)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n_items + 1))])
    log_part = harmonic[before + taken] - harmonic[before]
    inner = slope * taken + (hits_before + 1 - slope * (before + 1)) * log_part
    total = (_share_relevant(histograms) * inner).sum(axis=1)
    wanted = np.minimum(histograms.n_relevant, k)
    return np.divide(total, wanted, out=np.full(len(total), np.nan), where=wanted > 0)


def _check_lengths(s: int | Sequence[int]) -> list[int]:
    lengths = [check_integer(length, "s", low=1) for length in np.atleast_1d(np.asarray(s)).tolist()]
    if not lengths:
        raise ValueError("s is empty; give at least one list length.")
    return lengths


def _items_before(histograms: HammingHistograms) -> np.ndarray:
    return histograms.count.cumsum(axis=1) - histograms.count


def _share_relevant(histograms: HammingHistograms) -> np.ndarray:
    return histograms.relevant / np.maximum(histograms.count, 1)


@dataclass(frozen=True, slots=True, eq=False)
class PrecisionRecall:
    """Precision and recall of the ball of each radius 0 ... n_bits around a query.

    Attributes
    ----------
    radius, precision, recall : arrays of shape (n_bits + 1,); NaN where undefined
    empty_share : array of shape (n_bits + 1,)
        Share of queries whose ball holds no item.
    n_without_relevant : int
        Queries without a relevant item; they count for precision, not for recall.
    """

    radius: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    empty_share: np.ndarray
    n_without_relevant: int


def precision_recall(
    histograms: HammingHistograms,
    average: Literal["micro", "macro"] = "micro",
    *,
    empty: Literal["zero", "skip", "nan"] = "zero",
) -> PrecisionRecall:
    """Return precision and recall by Hamming radius.

    Parameters
    ----------
    histograms : HammingHistograms
    average : {"micro", "macro"}, default="micro"
        "micro" pools all (query, item) pairs; precision is NaN while every ball is empty. "macro" averages
        over queries.
    empty : {"zero", "skip", "nan"}, default="zero"
        What an empty ball means for a macro average: precision 0 (a failed lookup), left out (which flatters
        long codes), or no average at that radius.
    """
    check_choice(average, "average", ("micro", "macro"))
    check_choice(empty, "empty", ("zero", "skip", "nan"))
    ball, hit = histograms.count.cumsum(axis=1), histograms.relevant.cumsum(axis=1)
    n_relevant = histograms.n_relevant
    known = n_relevant > 0
    if average == "micro":
        precision = _ratio(hit.sum(axis=0), ball.sum(axis=0))
        recall = _ratio(hit.sum(axis=0), np.full(hit.shape[1], n_relevant.sum()))
    else:
        precision = _macro_precision(hit, ball, empty)
        recalls = hit[known] / n_relevant[known, None]
        recall = recalls.mean(axis=0) if known.any() else np.full(hit.shape[1], np.nan)
    return PrecisionRecall(
        radius=np.arange(hit.shape[1]),
        precision=precision,
        recall=recall,
        empty_share=(ball == 0).mean(axis=0),
        n_without_relevant=int((~known).sum()),
    )


def _macro_precision(hit: np.ndarray, ball: np.ndarray, empty: str) -> np.ndarray:
    precision = hit / np.maximum(ball, 1)
    if empty == "zero":
        return precision.mean(axis=0)
    if empty == "skip":
        return _ratio(precision.sum(axis=0), (ball > 0).sum(axis=0))
    return np.where((ball > 0).all(axis=0), precision.mean(axis=0), np.nan)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def pr_area(curve: PrecisionRecall, rule: Literal["trapezoid", "step"] = "trapezoid") -> float:
    """Return the area under precision over recall, from radius 0 (or the first non-empty one) to n_bits.

    No point is invented at recall 0: the area lacks the strip left of the first radius, so codes whose
    first ball already holds everything have area 0. ``rule`` is "trapezoid", or "step" for the sum of
    precision times the gain in recall, which counts that strip.
    """
    check_choice(rule, "rule", ("trapezoid", "step"))
    known = ~(np.isnan(curve.precision) | np.isnan(curve.recall))
    precision, recall = curve.precision[known], curve.recall[known]
    if not known.any():
        return float("nan")
    if rule == "step":
        return float((np.diff(recall, prepend=0.0) * precision).sum())
    return float(np.trapezoid(precision, recall))


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a lookup of all items within a radius returns; averages over queries, empty balls count as 0.

    ``recall`` leaves out the queries without a relevant item, ``f1`` counts them as 0.
    """

    radius: int
    precision: float
    recall: float
    f1: float
    empty_share: float
    mean_candidates: float


def lookup(histograms: HammingHistograms, radius: int = 2) -> Lookup:
    """Return precision, recall and the share of failed lookups within a Hamming radius.

    Examples
    --------
    >>> result = lookup(HammingHistograms([[0, 2, 2], [0, 0, 4]], [[0, 1, 1], [0, 0, 2]]), radius=1)
    >>> result.precision, result.recall, result.empty_share, result.mean_candidates
    (0.25, 0.25, 0.5, 1.0)
    """
    radius = check_integer(radius, "radius", low=0)
    ball = histograms.count[:, : radius + 1].sum(axis=1)
    hit = histograms.relevant[:, : radius + 1].sum(axis=1)
    n_relevant = histograms.n_relevant
    known = n_relevant > 0
    return Lookup(
        radius=radius,
        precision=float((hit / np.maximum(ball, 1)).mean()),
        recall=float((hit[known] / n_relevant[known]).mean()) if known.any() else float("nan"),
        f1=float((2 * hit / np.maximum(ball + n_relevant, 1)).mean()),
        empty_share=float((ball == 0).mean()),
        mean_candidates=float(ball.mean()),
    )


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
    queries, items = packed_words(codes_query), packed_words(codes_db)
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


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Buckets of equal codes.

    Attributes
    ----------
    n_codes, n_distinct, largest : int
        The number of codes, of distinct codes, and of codes in the fullest bucket.
    mean_bucket_of_a_code : float
        How many codes share the bucket of a code drawn at random, itself included.
    code_entropy : float
        Entropy of the bucket of a random code, in bits: at most log2(n_codes) and n_bits.
    mean_bit_entropy : float
        Mean over bits of the entropy of one bit: 1 if every bit splits the codes in half.
    n_constant_bits : int
        Bits that are equal in all codes and so carry nothing.
    """

    n_codes: int
    n_distinct: int
    largest: int
    mean_bucket_of_a_code: float
    code_entropy: float
    mean_bit_entropy: float
    n_constant_bits: int


def occupancy(codes: BinaryCodes) -> Occupancy:
    """Describe how codes fill their buckets.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> buckets = occupancy(BinaryCodes.from_signs(np.array([[1, 1], [1, 1], [-1, 1], [-1, 1]])))
    >>> buckets.n_distinct, buckets.code_entropy, buckets.n_constant_bits
    (2, 1.0, 1)
    """
    if len(codes) == 0:
        raise ValueError("codes holds no codes; at least one is needed.")
    filling = np.unique(codes.packed, axis=0, return_counts=True)[1]
    bits = np.unpackbits(codes.packed, axis=1, bitorder="little", count=codes.n_bits)
    set_share = bits.mean(axis=0, dtype=np.float64)
    return Occupancy(
        n_codes=len(codes),
        n_distinct=len(filling),
        largest=int(filling.max()),
        mean_bucket_of_a_code=float((filling**2).sum() / len(codes)),
        code_entropy=float(_entropy_terms(filling / len(codes)).sum()),
        mean_bit_entropy=float((_entropy_terms(set_share) + _entropy_terms(1 - set_share)).mean()),
        n_constant_bits=int(np.isin(set_share, (0.0, 1.0)).sum()),
    )


def _entropy_terms(shares: np.ndarray) -> np.ndarray:
    # Adding 0.0 turns the -0.0 of a certain event into 0.0.
    return -shares * np.log2(np.where(shares > 0, shares, 1.0)) + 0.0
