"""What is believed of every item, from the labels of a few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ..graphs import NeighborGraph
from ..graphs.diffusion import graph_scores, scores_without_own_label
from ..graphs.plain_ridge import RowsPlain, keep_kernel, labeled_scores_without_own, scores_from_labeled
from ..graphs.trust import LabelEvidence, edge_agreement, graph_share

__all__ = ["Beliefs", "believe"]

_ONE_CLASS = 0.5  # nothing tells how many items are of another class, if there is only one


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is believed, and how surely.

    Parameters
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


def believe(graph: NeighborGraph, coordinates: np.ndarray, given: np.ndarray, n_classes: int) -> Beliefs:
    """Return what is believed of all items, from given classes, -1 for none.

    Labels spread over the graph. Where neighbors do not agree on the spread labels, it says little, and ridge
    regression on the labeled items alone decides, or both do; see :func:`~starshl.graphs.trust.graph_share`.

    Parameters
    ----------
    graph : the neighbor graph of the items; it keeps one column per labeled item, so that a new label costs one more
    coordinates : array of shape (n_items, n_axes), for ridge regression with a Gaussian kernel
    given : int array of shape (n_items,)
    n_classes : int
    """
    labeled = np.flatnonzero(given >= 0)
    if n_classes == 0:
        return Beliefs(np.full(graph.n_rows, -1), np.empty((graph.n_rows, 0)), np.empty((0, 0)))
    if n_classes == 1 or len(labeled) == graph.n_rows:
        probabilities = np.full((graph.n_rows, n_classes), _ONE_CLASS)
        probabilities[labeled] = np.eye(n_classes)[given[labeled]]
        return Beliefs(np.maximum(given, 0), probabilities, probabilities[labeled])
    scores, without, out = _scores(graph, coordinates, given, n_classes)
    evidence = LabelEvidence(given, scores, labeled[out], without[out], True)
    temperature = evidence.temperature(scores)
    probabilities = softmax(temperature * scores, axis=1)
    probabilities[labeled] = np.eye(n_classes)[given[labeled]]
    return Beliefs(probabilities.argmax(axis=1), probabilities, softmax(temperature * without, axis=1))


def _scores(
    graph: NeighborGraph, coordinates: np.ndarray, given: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores of all items, those of labeled items without their own label, and for which of them that holds.

    Of more than 1,000 labeled items, only a tenth is scored without its own label.
    """
    labeled = np.flatnonzero(given >= 0)
    targets = np.eye(n_classes)[given[labeled]] - 1.0 / n_classes
    scores = graph_scores(graph, labeled, targets)
    without = scores[labeled]
    out, without_label = scores_without_own_label(graph, labeled, targets)
    without[out] = without_label
    share = graph_share(edge_agreement(graph, np.where(given >= 0, given, scores.argmax(axis=1))))
    unreached = ~np.isin(graph.components, graph.components[labeled])
    if share < 1.0 or unreached.any():
        plain = RowsPlain(coordinates)
        keep_kernel(plain, graph)
        by_labels = scores_from_labeled(plain, labeled, targets)
        scores = share * scores + (1.0 - share) * by_labels
        scores[unreached] = by_labels[unreached]
        also_out, without_label = labeled_scores_without_own(plain, labeled, targets)
        without[also_out] = share * without[also_out] + (1.0 - share) * without_label
    return scores, without, out
