"""Thresholds of one feature, judged by the pairs of rows they separate."""

from __future__ import annotations

import numpy as np

__all__ = ["separated_weights"]


def separated_weights(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return every threshold that tells pairs apart, and the weight of the pairs it separates.

    The threshold t separates a pair of values if :math:`\min < t \le \max`, that is, if exactly one of
    them satisfies ``value >= t``. Each pair thus adds its weight over an interval, and one pass over the
    sorted ends gives the sum for all thresholds: O(n_pairs log n_pairs).

    Returns
    -------
    thresholds : array, ascending, one between every two neighboring distinct values
    sums : array of the same shape, :math:`\sum_p w_p [\min_p < t \le \max_p]`

    Examples
    --------
    >>> separated_weights(np.array([0.0, 1.0]), np.array([2.0, 5.0]), np.array([1.0, 10.0]))
    (array([0.5, 1.5, 3.5]), array([ 1., 11., 10.]))
    """
    values = np.concatenate([np.minimum(first, second), np.maximum(first, second)])
    events = np.concatenate([weights, -weights])
    order = np.argsort(values, kind="stable")
    values, sums = values[order], np.cumsum(events[order])
    last = np.flatnonzero(values[1:] > values[:-1])
    below, above = values[last], values[last + 1]
    middle = below + (above - below) / 2
    # Between neighboring floating-point numbers there is no middle; the upper one separates as well.
    return np.where(middle > below, middle, above), sums[last]
