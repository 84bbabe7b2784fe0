"""How much pseudo-labels may be trusted, and how sure a label is."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp, softmax

from .diffusion import GRAPH_RIDGE, diffusion_gram
from .neighbor_graph import NeighborGraph

__all__ = ["edge_agreement", "leave_one_out_on_graph", "pseudo_label_ridge", "spread_temperature"]

# The graph hurts where the agreement is below .65 and helps above .73 or so; between, a ridge of 3 to 10 is never far
# from the best. Measured on 17 data sets with 1, 5 and 20 labels per class.
_AGREEMENTS = (0.60, 0.78)
_RIDGES = (30.0, 12.8, 5.5, 2.3, 1.0)  # equal ratios; few values, so that a kept inverse serves the next labels too
_TRUSTED = 10.0  # ridge below which pseudo-labels decide more than the labels do

# Temperatures of softmax(T scores) that fit best for graph scores: 25 with one label per class, 12 with many.
_FEW_LABELS_TEMPERATURE, _MANY_LABELS_TEMPERATURE = 25.0, 12.0
_PLAIN_TEMPERATURE = 6.0
_ONE_LABEL_TEMPERATURE = 4.0  # of final scores; no label can be left out then
_PRIOR_WEIGHT = 5.0  # of the squared logarithm of T over those, in labels
_LOG_TEMPERATURES = (-1.0, 6.0)


def edge_agreement(graph: NeighborGraph, index: np.ndarray) -> float:
    r"""Return how much more often than by chance neighbors are in one class, 1 at most.

    .. math:: q' = (q - \sum_g v_g^2) / (1 - \sum_g v_g^2)

    with q the share of edge weight inside the classes and v the classes' shares of the degrees.
    """
    weights, degrees = graph.weights, graph.degrees
    total = float(degrees.sum())
    if total == 0:
        return 0.0
    rows = np.repeat(np.arange(graph.n_rows), np.diff(weights.indptr))
    inside = float(weights.data[index[rows] == index[weights.indices]].sum()) / total
    by_chance = float(np.sum((np.bincount(index, degrees) / total) ** 2))
    return (inside - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0


def pseudo_label_ridge(agreement: float) -> float:
    """Return the ridge of pseudo-labeled rows: 1 where neighbors agree, 30 where they do not, steps between.

    A labeled row has .1.
    """
    low, high = _AGREEMENTS
    position = (agreement - low) / (high - low) * (len(_RIDGES) - 1)
    return _RIDGES[int(np.clip(np.rint(position), 0, len(_RIDGES) - 1))]


def leave_one_out_on_graph(graph: NeighborGraph, labeled: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the graph scores that each labeled row would get without its label, shape (n_labeled, n_classes)."""
    gram = diffusion_gram(graph, labeled)
    gram[np.diag_indices_from(gram)] += GRAPH_RIDGE
    inverse = cho_solve(cho_factor(gram, lower=True), np.eye(len(gram)))
    return targets - (inverse @ targets) / np.diag(inverse)[:, None]


def spread_temperature(
    scores: np.ndarray,
    index: np.ndarray,
    graph_scores: np.ndarray,
    labeled_graph_scores: np.ndarray,
    pseudo_ridge: float,
) -> float:
    """Return T such that softmax(T scores) is about as sure as it is right.

    The scores of pseudo-labeled rows cannot tell: they repeat the graph's mistakes. Where the graph decides, its own
    temperature comes from the labeled rows, each without its label; T then makes the mean probability of the chosen
    class the same as on the graph. Where the labels decide, T comes from the labeled rows directly.

    Parameters
    ----------
    scores, graph_scores : arrays of shape (n_rows, n_classes)
        Final scores, each row without itself, and those of the graph.
    index : array of shape (n_rows,)
        Given classes, -1 for none.
    labeled_graph_scores : array of shape (n_labeled, n_classes)
        See :func:`leave_one_out_on_graph`.
    pseudo_ridge : float
    """
    labeled = np.flatnonzero(index >= 0)
    counts = np.bincount(index[labeled])
    # Without its only label, a class cannot win.
    usable = counts[index[labeled]] > 1
    classes = index[labeled][usable]
    if not usable.any():
        return _ONE_LABEL_TEMPERATURE
    if pseudo_ridge >= _TRUSTED:
        return _fit_temperature(scores[labeled][usable], classes, _PLAIN_TEMPERATURE)
    per_class = len(labeled) / np.count_nonzero(counts)
    few, many = _FEW_LABELS_TEMPERATURE, _MANY_LABELS_TEMPERATURE
    on_graph = _fit_temperature(labeled_graph_scores[usable], classes, many + (few - many) / per_class)
    unlabeled = index < 0
    if not unlabeled.any():
        return on_graph
    expected = float(softmax(on_graph * graph_scores[unlabeled], axis=1).max(axis=1).mean())

    def excess(log_temperature: float) -> float:
        sure = softmax(np.exp(log_temperature) * scores[unlabeled], axis=1).max(axis=1)
        return float(sure.mean()) - expected

    low, high = _LOG_TEMPERATURES
    if excess(low) >= 0 or excess(high) <= 0:
        return float(np.exp(low if excess(low) >= 0 else high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-4)))


def _fit_temperature(scores: np.ndarray, classes: np.ndarray, usual: float) -> float:
    """Return the T of least log loss, drawn toward the usual one because labels are few."""

    def loss(log_temperature: float) -> float:
        values = np.exp(log_temperature) * scores
        own = values[np.arange(len(values)), classes]
        return (
            float(np.sum(logsumexp(values, axis=1) - own) if len(values) else 0.0)
            + _PRIOR_WEIGHT * (log_temperature - np.log(usual)) ** 2
        )

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded").x))
