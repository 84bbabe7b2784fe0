"""Predict the label of every item from those of a few, and choose the items whose label would tell most of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import softmax

from .._common.labels import Label
from .._common.threads import single_threaded_blas
from ..learning.graphs.diffusion import graph_scores, scores_without_own_label
from ..learning.graphs.neighbor_graph import NeighborGraph
from ..learning.graphs.plain_ridge import RowsKernel, labeled_scores_without_own, scores_from_labeled, share_kernel
from ..learning.graphs.spectrum import smooth_basis
from ..learning.graphs.trust import LabelEvidence, edge_agreement, graph_share
from .items import N_VECTORS

_ONE_CLASS = 0.5  # nothing tells how many items are of another class, if there is only one
_RIDGE = 0.1  # of the mean variance, as that of the labels
Way = Literal["typical", "unsure", "random", "again"]


@dataclass(frozen=True, slots=True)
class ClassProbabilities:
    """How likely items are of each class.

    Parameters
    ----------
    predicted : int array of shape (n_items,), the likeliest class of each item, -1 if no class is known
    probabilities : array of shape (n_items, n_classes); given labels are certain
    leave_one_out : array of shape (n_given, n_classes)
        What the other labels say of each item with a given label, in the order of the items.
    """

    predicted: np.ndarray
    probabilities: np.ndarray
    leave_one_out: np.ndarray

    @property
    def confidences(self) -> np.ndarray:
        """The probability of the predicted class of each item."""
        if not self.probabilities.shape[1]:
            return np.zeros(len(self.predicted))
        return np.asarray(self.probabilities.max(axis=1))


def predict_labels(
    graph: NeighborGraph, coordinates: np.ndarray, given: np.ndarray, n_classes: int
) -> ClassProbabilities:
    """Return how likely all items are of each class, from given classes, -1 for none.

    Labels spread over the graph. Where neighbors do not agree on the spread labels, it says little, and ridge
    regression on the labeled items alone decides, or both do; see :func:`~starshl.learning.graphs.trust.graph_share`.

    Parameters
    ----------
    graph : the neighbor graph of the items; it keeps one column per labeled item, so that a new label costs one more
    coordinates : array of shape (n_items, n_axes), for ridge regression with a Gaussian kernel
    given : int array of shape (n_items,)
    n_classes : int
    """
    labeled = np.flatnonzero(given >= 0)
    if n_classes == 0:
        return ClassProbabilities(np.full(graph.n_rows, -1), np.empty((graph.n_rows, 0)), np.empty((0, 0)))
    if n_classes == 1 or len(labeled) == graph.n_rows:
        probabilities = np.full((graph.n_rows, n_classes), _ONE_CLASS)
        probabilities[labeled] = np.eye(n_classes)[given[labeled]]
        return ClassProbabilities(np.maximum(given, 0), probabilities, probabilities[labeled])
    scores, without, out = _scores(graph, coordinates, given, n_classes)
    evidence = LabelEvidence(given, scores, labeled[out], without[out], True)
    temperature = evidence.temperature(scores)
    probabilities = softmax(temperature * scores, axis=1)
    probabilities[labeled] = np.eye(n_classes)[given[labeled]]
    return ClassProbabilities(probabilities.argmax(axis=1), probabilities, softmax(temperature * without, axis=1))


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
        plain = RowsKernel(coordinates)
        share_kernel(plain, graph)
        by_labels = scores_from_labeled(plain, labeled, targets)
        scores = share * scores + (1.0 - share) * by_labels
        scores[unreached] = by_labels[unreached]
        also_out, without_label = labeled_scores_without_own(plain, labeled, targets)
        without[also_out] = share * without[also_out] + (1.0 - share) * without_label
    return scores, without, out


class Proposal(NamedTuple):
    """An item worth a label.

    ``way`` says how it was found: it is "typical" of many items, as long as there are not two classes to be unsure
    about, "unsure", or "random"; "again" if an undo asks for it once more.
    """

    id: int
    predicted: Label | None
    confidence: float
    way: Way


class Choice(NamedTuple):
    """The position of a proposed item among all, and how it was found."""

    position: int
    way: Way


def choose_informative(
    graph: NeighborGraph, given: np.ndarray, estimate: ClassProbabilities, skipped: np.ndarray, n: int
) -> list[Choice]:
    """Return up to n items to ask for next: unsure ones whose label tells much of others, the most useful one first."""
    free = (given < 0) & ~skipped
    uncertainty, way = _uncertainty(estimate)
    choices: list[Choice] = []
    # Once for all steps: each change of the number of threads takes longer than a step.
    with single_threaded_blas():
        covariance = _RemainingCovariance(graph, np.flatnonzero(given >= 0))
        for _ in range(min(n, int(free.sum()))):
            position = int(np.where(free, covariance.gains() * uncertainty, -1.0).argmax())
            free[position] = False
            choices.append(Choice(position, way))
            covariance.add(position)
    return choices


def choose_at_random(given: np.ndarray, skipped: np.ndarray, taken: Sequence[int], n: int) -> list[Choice]:
    """Return up to n items at random, none of the taken ones; the same ones until labels change."""
    free = (given < 0) & ~skipped
    free[list(taken)] = False
    order = np.random.RandomState(int((given >= 0).sum())).permutation(len(given))
    return [Choice(int(position), "random") for position in order[free[order]][:n]]


def _uncertainty(estimate: ClassProbabilities) -> tuple[np.ndarray, Way]:
    """Return how little the first class of each item is ahead of the second, and what that makes a choice."""
    probabilities = estimate.probabilities
    if probabilities.shape[1] < 2:
        return np.ones(len(probabilities), dtype=np.float32), "typical"
    best_two = np.partition(probabilities, -2, axis=1)[:, -2:]
    return (1.0 - (best_two[:, 1] - best_two[:, 0])).astype(np.float32), "unsure"


class _RemainingCovariance:
    """The covariance between the classes of all items that the labels of some leave, as ``smooth @ basis'``.

    To be used with BLAS on a single thread.
    """

    def __init__(self, graph: NeighborGraph, labeled: np.ndarray) -> None:
        variances, vectors = smooth_basis(graph, N_VECTORS)
        self.variances = variances.astype(np.float32)
        self.basis = vectors * np.sqrt(self.variances)
        self.ridge = np.float32(_RIDGE * float(np.einsum("ij,ij->", self.basis, self.basis)) / len(self.basis))
        own = self.basis[labeled].astype(np.float64)
        inner = np.linalg.inv(np.eye(own.shape[1]) + own.T @ own / float(self.ridge)).astype(np.float32)
        self.smooth = self.basis @ inner

    def gains(self) -> np.ndarray:
        """Return by how much the label of each item would lower the variance of all together."""
        left = np.einsum("ij,ij->i", self.smooth, self.basis)
        return np.einsum("ij,ij,j->i", self.smooth, self.smooth, self.variances) / (self.ridge + np.maximum(left, 0.0))

    def add(self, position: int) -> None:
        """Count an item as labeled, by a step of rank one."""
        own = self.smooth[position].copy()
        self.smooth -= np.outer(self.smooth @ self.basis[position], own / (self.ridge + own @ self.basis[position]))
