"""How well whole lists are ordered by any distance, and how right probabilities of hits are.

Items at equal distance count in expectation over their orders, as in :mod:`starshl.evaluation.metrics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_N_BINS = 15  # of probabilities, equally wide
_FLOOR = 1e-6  # of a probability whose logarithm is taken


class ListQuality(NamedTuple):
    """Precision at 10, mean average precision, and the area under precision over recall of the pairs of all queries.

    The last one asks for a single threshold for all queries: it sees whether distances mean the same everywhere.
    """

    precision_at_10: float
    mean_average_precision: float
    pooled_area: float


def list_quality(distances: np.ndarray, same: np.ndarray) -> ListQuality:
    """Return how well lists are ordered.

    Parameters
    ----------
    distances : array of shape (n_queries, n_items)
    same : boolean array of the same shape, whether query and item are of the same class

    Examples
    --------
    >>> list_quality(np.array([[0.0, 1.0, 1.0]]), np.array([[True, False, True]]))
    ListQuality(precision_at_10=0.6666666666666666, mean_average_precision=0.9166666666666666, pooled_area=0.91...)
    """
    order = np.argsort(distances, axis=1, kind="stable")
    ordered, right = np.take_along_axis(distances, order, axis=1), np.take_along_axis(same, order, axis=1)
    shares, average_precisions = expected_lists(ordered, right)
    pooled = np.argsort(ordered, axis=None, kind="stable")
    area = expected_lists(ordered.ravel()[pooled][None], right.ravel()[pooled][None])[1][0]
    known = average_precisions[np.isfinite(average_precisions)]
    mean = float(known.mean()) if len(known) else float("nan")
    return ListQuality(float(shares[:, :10].mean()), mean, float(area))


def expected_lists(distances: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how likely each place of ordered lists holds a right item, and their average precisions.

    Where r of n items at equal distance are right, after R right ones among N items, each of their places holds one
    with probability r / n. If place i, counted from 0, does, r - 1 of the n - 1 others are right, and so are i (r - 1)
    / (n - 1) of those before it.
    """
    n_lists, n_items = distances.shape
    is_first = np.ones(distances.shape, np.bool_)
    is_first[:, 1:] = distances[:, 1:] != distances[:, :-1]
    starts = np.flatnonzero(is_first)
    sizes = np.diff(starts, append=distances.size)
    group = np.repeat(np.arange(len(starts)), sizes)
    place = np.arange(distances.size) - starts[group]
    n_right = np.add.reduceat(right.ravel().astype(np.int64), starts)
    earlier = (np.cumsum(right, axis=1) - right).ravel()[starts]
    shares = (n_right / sizes)[group]
    others = np.where(sizes > 1, (n_right - 1) / np.maximum(sizes - 1, 1), 0.0)[group]
    precisions = (earlier[group] + 1 + place * others) / ((starts % n_items)[group] + place + 1)
    totals = (shares * precisions).reshape(n_lists, n_items).sum(axis=1)
    n_relevant = right.sum(axis=1)
    return shares.reshape(n_lists, n_items), totals / np.where(n_relevant > 0, n_relevant, np.nan)


@dataclass(frozen=True, slots=True)
class Reliability:
    """How right probabilities are: what was said and what was so, in bins of what was said.

    Attributes
    ----------
    said, so : lists of float, the mean probability of each bin that has pairs, and the share that came true
    n_pairs : list of int, how many there are
    log_loss : float, the mean negative logarithm of the probability of what was so
    calibration_error : float, the mean gap between what was said and what was so
    """

    said: list[float]
    so: list[float]
    n_pairs: list[int]
    log_loss: float
    calibration_error: float


def reliability(probabilities: np.ndarray, same: np.ndarray) -> Reliability:
    """Return how right the probabilities of pairs are; ``same`` says of each pair whether it is of one class."""
    said, so = np.ravel(probabilities).astype(np.float64), np.ravel(same)
    bins = np.minimum((said * _N_BINS).astype(np.int64), _N_BINS - 1)
    n_pairs = np.bincount(bins, minlength=_N_BINS)
    sums = [np.bincount(bins, weights=values, minlength=_N_BINS) for values in (said, so)]
    filled = np.flatnonzero(n_pairs)
    mean_said, share_so = ((each[filled] / n_pairs[filled]).tolist() for each in sums)
    gaps = np.abs(sums[0] - sums[1])
    loss = -np.log(np.maximum(np.where(so, said, 1.0 - said), _FLOOR))
    error = float(gaps.sum() / len(said))
    return Reliability(mean_said, share_so, n_pairs[filled].tolist(), float(loss.mean()), error)
