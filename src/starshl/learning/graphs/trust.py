"""How much pseudo-labels may be trusted, and how sure a label is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import logsumexp, softmax

from .clusters import weight_inside
from .neighbor_graph import NeighborGraph

# The graph hurts where the agreement is below .65 and helps above .73 or so; between, a ridge of 3 to 10 is never far
# from the best. Measured on 17 data sets with 1, 5 and 20 labels per class.
_AGREEMENTS = (0.60, 0.78)
_SHARE_AGREEMENTS = (0.25, 0.40)  # lower, where nothing learns from spread labels: see graph_share
_RIDGES = (30.0, 12.8, 5.5, 2.3, 1.0)  # equal ratios; few values, so that a cached inverse serves the next labels too
# Standard errors by which the labels alone must be ahead before trust falls, and at which none is left.
_PREFERENCES = (0.5, 2.0)
_IMAGINED = 4  # labels that one side finds and the other does not, two for each: few real ones must not decide
_ROUNDING = 1e-6  # of losses, to which their least values are found
_TRUSTED_BELOW = 10.0  # ridge of pseudo-labels below which pseudo-labels decide more than the labels do
# Temperatures of softmax(T scores) that fit best for graph scores: 25 with one label per class, 12 with many.
_FEW_LABELS_TEMPERATURE, _MANY_LABELS_TEMPERATURE = 25.0, 12.0
_PLAIN_TEMPERATURE = 6.0  # that of scores of the plain kernel
_ONE_LABEL_TEMPERATURE = 4.0  # of final scores; no label can be left out then
_PRIOR_WEIGHT = 1.0  # of the squared logarithm of T over those, in labels
_LOG_TEMPERATURES = (-1.0, 6.0)  # limits of the search: from nearly uniform to nearly certain


def edge_agreement(graph: NeighborGraph, index: np.ndarray) -> float:
    r"""Return how much more often than by chance neighbors are in one class, 1 at most.

    .. math:: q' = (q - \sum_g v_g^2) / (1 - \sum_g v_g^2)

    with q the share of edge weight inside the classes and v the classes' shares of the degrees.
    """
    total = float(graph.degrees.sum())
    if total == 0:
        return 0.0
    by_chance = float(np.sum((np.bincount(index, graph.degrees) / total) ** 2))
    return (weight_inside(graph, index) - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0


def preference_for_labels(alone: np.ndarray, on_graph: np.ndarray, classes: np.ndarray) -> float:
    r"""Return how many standard errors the labels alone are ahead of the graph in finding labels that were left out.

    .. math:: (a - g) / \sqrt{a + g + 4}

    with a the number of labels that only the plain kernel finds, and g the number that only the graph finds.

    Parameters
    ----------
    alone, on_graph : arrays of shape (n_labels, n_classes), scores of labeled rows without their own label
    classes : array of shape (n_labels,), the labels
    """
    by_labels, by_graph = alone.argmax(axis=1) == classes, on_graph.argmax(axis=1) == classes
    n_labels_only, n_graph_only = int(np.sum(by_labels & ~by_graph)), int(np.sum(by_graph & ~by_labels))
    return (n_labels_only - n_graph_only) / float(np.sqrt(n_labels_only + n_graph_only + _IMAGINED))


def gain_of_graph(alone: np.ndarray, on_graph: np.ndarray, classes: np.ndarray) -> float:
    r"""Return by how many standard errors the graph lowers the log loss of labels that were left out.

    The losses are those of softmax(a h) and of softmax(a h + b g), where h are scores from the other labels alone, g
    those of the graph, and a, b :math:`\ge 0` are best for each of the two. Zero if b is zero.

    Parameters
    ----------
    alone, on_graph : arrays of shape (n_labels, n_classes), h and g
    classes : array of shape (n_labels,), the labels
    """
    rows = np.arange(len(classes))

    def best_losses(experts: np.ndarray) -> np.ndarray:
        own = experts[:, rows, classes]

        def mean_loss(factors: np.ndarray) -> tuple[float, np.ndarray]:
            logits = np.tensordot(factors, experts, 1)
            totals = logsumexp(logits, axis=1)
            slopes = np.einsum("ng,eng->e", np.exp(logits - totals[:, None]), experts) - own.sum(axis=1)
            return float(np.mean(totals - factors @ own)), slopes / len(rows)

        bounds = [(0.0, None)] * len(experts)
        found = minimize(mean_loss, np.full(len(experts), 5.0), jac=True, method="L-BFGS-B", bounds=bounds).x
        return np.asarray(logsumexp(np.tensordot(found, experts, 1), axis=1) - found @ own)

    gains = best_losses(alone[None]) - best_losses(np.stack([alone, on_graph]))
    gain, error = float(gains.mean()), float(gains.std()) / float(np.sqrt(len(rows)))
    return gain / error if gain > _ROUNDING else 0.0


def pseudo_label_ridge(agreement: float, preference: float = 0.0) -> float:
    """Return the ridge of pseudo-labeled rows: 1 where neighbors agree, 30 where they do not, steps between.

    A labeled row has .1. Where the given labels alone find each other better than the graph does, trust falls further.
    """
    last = len(_RIDGES) - 1
    (low, high), (ignored, decisive) = _AGREEMENTS, _PREFERENCES
    trusted = np.clip((agreement - low) / (high - low), 0, 1) * last
    distrusted = np.clip((preference - ignored) / (decisive - ignored), 0, 1) * last
    return _RIDGES[int(np.clip(np.rint(trusted - distrusted), 0, last))]


def graph_share(agreement: float) -> float:
    """Return how much of a score the graph decides where the labels alone decide the rest; all where neighbors agree.

    Lower bounds than those of :func:`pseudo_label_ridge` suffice if nothing learns from the spread labels: with fifty
    labels on small photographs the graph alone is .03 to .04 better than ridge regression at an agreement of .5.
    """
    low, high = _SHARE_AGREEMENTS
    return float(np.clip((agreement - low) / (high - low), 0, 1))


def labels_decide(pseudo_ridge: float) -> bool:
    """Tell whether pseudo-labels have the largest ridge, so that they count next to nothing."""
    return pseudo_ridge >= _RIDGES[0]


def describe_trust(pseudo_ridge: float) -> str:
    """Return how much pseudo-labels count, as the end of a sentence about them."""
    if labels_decide(pseudo_ridge):
        return "the given labels decide nearly alone"
    return "they are trusted" if pseudo_ridge == _RIDGES[-1] else "they count for less"


def is_trusted(pseudo_ridge: float) -> bool:
    """Tell whether pseudo-labels decide more than the labels do."""
    return pseudo_ridge < _TRUSTED_BELOW


@dataclass(frozen=True, slots=True)
class LabelEvidence:
    """What given labels say about how far scores can be trusted.

    Parameters
    ----------
    index : array of shape (n_rows,), given classes, -1 for none
    reference : array of shape (n_rows, n_classes)
        Scores from the given labels: those of the graph where it is trusted, else those of the plain kernel.
    left_out : rows of given labels that were also scored without their own label
    without_label : array of shape (len(left_out), n_classes), these scores
    is_trusted : whether pseudo-labels decide more than the labels do
    """

    index: np.ndarray
    reference: np.ndarray
    left_out: np.ndarray
    without_label: np.ndarray
    is_trusted: bool

    def temperature(self, scores: np.ndarray) -> float:
        """Return T such that softmax(T scores) is about as sure as it is right; each row is scored without itself.

        The scores of a fit on pseudo-labels cannot tell: they repeat its mistakes. Scores from given labels alone can,
        where a label was left out. They have their own temperature, and T makes the mean probability of the
        chosen class the same as theirs.
        """
        labeled = np.flatnonzero(self.index >= 0)
        counts = np.bincount(self.index[labeled])
        # Without its only label, a class cannot win.
        telling = counts[self.index[self.left_out]] > 1
        if self.is_trusted and not telling.any():
            return _ONE_LABEL_TEMPERATURE
        usual = _PLAIN_TEMPERATURE
        if self.is_trusted:
            per_class = len(labeled) / np.count_nonzero(counts)
            usual = _MANY_LABELS_TEMPERATURE + (_FEW_LABELS_TEMPERATURE - _MANY_LABELS_TEMPERATURE) / per_class
        of_reference = _fit_temperature(self.without_label[telling], self.index[self.left_out][telling], usual)
        unlabeled = self.index < 0
        expected = float(softmax(of_reference * self.reference[unlabeled], axis=1).max(axis=1).mean())
        return _temperature_of_confidence(scores[unlabeled], expected)


def _temperature_of_confidence(scores: np.ndarray, expected: float) -> float:
    """Return the T at which the largest probability is the expected one on average."""

    def excess(log_temperature: float) -> float:
        return float(softmax(np.exp(log_temperature) * scores, axis=1).max(axis=1).mean()) - expected

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
