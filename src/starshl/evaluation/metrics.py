"""Retrieval metrics as expectations over the order of ties, so that storage order never matters.

Many items lie at the same Hamming distance. Each metric here is a function of :class:`HammingHistograms` alone: the
exact mean over all orders of items at equal distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .._threads import run_all, tiles
from .._validation import check_choice, check_integer
from ..codes import BinaryCodes
from ._histogram_loops import hits_in_storage_order
from .histograms import QUERIES_PER_TILE, HammingHistograms, hamming_histograms, relevance_labels, words_of

__all__ = [
    "Lookup",
    "PrecisionRecall",
    "average_precision",
    "expected_precision",
    "list_size",
    "lookup",
    "mean_average_precision",
    "mean_of_known",
    "pr_area",
    "precision_at",
    "precision_recall",
]


def precision_at(
    codes_query: BinaryCodes,
    codes_db: BinaryCodes,
    y_query: ArrayLike,
    y_db: ArrayLike,
    s: int = 10,
    *,
    ties: str = "expected",
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
    queries, items = words_of(codes_query), words_of(codes_db)
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


def precision_recall(histograms: HammingHistograms, average: str = "micro", *, empty: str = "zero") -> PrecisionRecall:
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


def pr_area(curve: PrecisionRecall, rule: str = "trapezoid") -> float:
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


def _check_lengths(s: int | Sequence[int]) -> list[int]:
    lengths = [check_integer(length, "s", low=1) for length in np.atleast_1d(np.asarray(s)).tolist()]
    if not lengths:
        raise ValueError("s is empty; give at least one list length.")
    return lengths


def _items_before(histograms: HammingHistograms) -> np.ndarray:
    return histograms.count.cumsum(axis=1) - histograms.count


def _share_relevant(histograms: HammingHistograms) -> np.ndarray:
    return histograms.relevant / np.maximum(histograms.count, 1)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _macro_precision(hit: np.ndarray, ball: np.ndarray, empty: str) -> np.ndarray:
    precision = hit / np.maximum(ball, 1)
    if empty == "zero":
        return precision.mean(axis=0)
    if empty == "skip":
        return _ratio(precision.sum(axis=0), (ball > 0).sum(axis=0))
    return np.where((ball > 0).all(axis=0), precision.mean(axis=0), np.nan)


def mean_of_known(values: np.ndarray) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    known = ~np.isnan(values)
    return float(values[known].mean()) if known.any() else float("nan")
