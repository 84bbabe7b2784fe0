"""What is believed of every item, from the labels of a few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ..graphs import NeighborGraph
from ..graphs.diffusion import graph_scores, scores_without_own_label
from ..graphs.trust import LabelEvidence

__all__ = ["Beliefs", "believe"]

_ONE_CLASS = 0.5  # nothing tells how many items are of another class, if there is only one


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Parameters
    ----------
    index : int array of shape (n_items,), the believed class of each item, -1 if no class is known
    probabilities : array of shape (n_items, n_classes); given labels are certain
    without_own : array of shape (n_given, n_classes)
        What the other labels say of each item with a given label, in the order of the items.
    """

    index: np.ndarray
    probabilities: np.ndarray
    without_own: np.ndarray

    @property
    def confidences(self) -> np.ndarray:
        """The probability of the believed class of each item."""
        if not self.probabilities.shape[1]:
            return np.zeros(len(self.index))
        return np.asarray(self.probabilities.max(axis=1))


def believe(graph: NeighborGraph, given: np.ndarray, n_classes: int) -> Beliefs:
    """Return what is believed of all items, from given classes, -1 for none."""
    if n_classes == 0:
        return Beliefs(np.full(graph.n_rows, -1), np.empty((graph.n_rows, 0)), np.empty((0, 0)))
    labeled = np.flatnonzero(given >= 0)
    if n_classes == 1:
        probabilities = np.where(given >= 0, 1.0, _ONE_CLASS)[:, None]
        return Beliefs(np.zeros(graph.n_rows, dtype=np.int64), probabilities, np.ones((len(labeled), 1)))
    targets = np.eye(n_classes)[given[labeled]] - 1.0 / n_classes
    scores = graph_scores(graph, labeled, targets)
    places, without = scores_without_own_label(graph, labeled, targets)
    evidence = LabelEvidence(given, scores, labeled[places], without, True)
    temperature = evidence.temperature(scores) if len(labeled) < graph.n_rows else 1.0
    probabilities = softmax(temperature * scores, axis=1)
    probabilities[labeled] = np.eye(n_classes)[given[labeled]]
    index = np.where(given >= 0, given, probabilities.argmax(axis=1))
    return Beliefs(index, probabilities, softmax(temperature * without, axis=1))
