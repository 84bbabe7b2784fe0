"""How much another class costs, chosen by searching for training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..index.class_rule import ClassRule

__all__ = ["TuningSearches", "choose_weight"]

_N_NEIGHBORS = 10  # precision and recall at 10
# The nearest ten are looked for among the first hundred where there are thousands of items, among fewer otherwise.
_SHORTLIST, _SHORTLIST_SHARE = 100, 1 / 30
# Chosen on samples of AG News and of MNIST, 3,000 rows, 32 and 64 bits: unseen queries lose little more.
_LOST_RECALL, _LOST_PRECISION = 0.001, 0.003


@dataclass(frozen=True, slots=True, eq=False)
class TuningSearches:
    """Training rows as queries, each among other rows and without itself.

    Parameters
    ----------
    distances : array of shape (n_queries, n_items)
        Without regard to classes; infinite where an item is the query itself.
    differs : array of the same shape
        Whether the class that is predicted for the query without itself is another one than that of the item.
    nearest : array of shape (n_queries, at most 10)
        The items whose vectors are nearest.
    relevant : array of shape (n_queries, n_items), or None
        Whether item and query have the same label.
    """

    distances: np.ndarray
    differs: np.ndarray
    nearest: np.ndarray
    relevant: np.ndarray | None

    def ends(self, class_first: int) -> np.ndarray:
        """Return the distance of the last of the first items of each query's class, (n_queries, 1); -1 if none is."""
        of_class = np.where(self.differs, np.inf, self.distances)
        n_finite = np.isfinite(of_class).sum(axis=1)
        last = np.minimum(class_first, n_finite) - 1
        n_sorted = min(max(class_first, 1), of_class.shape[1])
        nearest = np.sort(np.partition(of_class, n_sorted - 1, axis=1)[:, :n_sorted], axis=1)
        return np.where(last >= 0, nearest[np.arange(len(last)), last], -1.0)[:, None]

    def first(self, rule: ClassRule, ends: np.ndarray, n: int) -> np.ndarray:
        """Return the first n items of each query in any order."""
        finite = np.isfinite(self.distances)
        known = np.where(finite, self.distances, 0.0)
        pushed = np.where(self.differs, rule.pushed(known, ends), known)
        # Numbers of bits are often equal: this orders them by position, and changes no other order.
        keys = np.where(finite, pushed + np.arange(known.shape[1]) * 1e-9, np.inf)
        return np.argpartition(keys, n - 1, axis=1)[:, :n]

    def recall(self, rule: ClassRule, ends: np.ndarray) -> float:
        """Return the share of the nearest vectors among the first items."""
        n_items = self.distances.shape[1] - 1
        n = min(n_items, max(self.nearest.shape[1], min(_SHORTLIST, int(n_items * _SHORTLIST_SHARE))))
        found = np.zeros(self.distances.shape, np.bool_)
        np.put_along_axis(found, self.first(rule, ends, n), True, axis=1)
        return float(np.take_along_axis(found, self.nearest, axis=1).mean())

    def precision(self, rule: ClassRule, ends: np.ndarray) -> float:
        """Return the share of the first ten items with the label of the query."""
        assert self.relevant is not None
        first = self.first(rule, ends, min(_N_NEIGHBORS, self.distances.shape[1] - 1))
        return float(np.take_along_axis(self.relevant, first, axis=1).mean())


def choose_weight(searches: TuningSearches, rule_of: Callable[[float], ClassRule], weights: list[float]) -> float:
    """Return the weight that serves the searches best.

    If some items of the class come first anyway, precision is taken care of: take the largest weight whose recall is
    within .001 of the best. Otherwise take the smallest weight whose precision is within .003 of the best.
    """
    rules = [rule_of(weight) for weight in weights]
    ends = searches.ends(rules[0].class_first)
    if rules[0].class_first or searches.relevant is None:
        recalls = np.array([searches.recall(rule, ends) for rule in rules])
        return weights[np.flatnonzero(recalls >= recalls.max() - _LOST_RECALL)[-1]]
    precisions = np.array([searches.precision(rule, ends) for rule in rules])
    return weights[np.flatnonzero(precisions >= precisions.max() - _LOST_PRECISION)[0]]
