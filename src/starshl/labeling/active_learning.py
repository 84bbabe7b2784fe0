"""Predict the label of every item from those of a few, and choose the items whose label would tell most of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from .._common.labels import Label
from .._common.threads import single_threaded_blas, tiles
from ..learning.graphs.label_spreading import Spread, spread_index
from ..learning.graphs.neighbor_graph import NeighborGraph
from ..learning.graphs.plain_kernel import RowsKernel
from ..learning.graphs.spectrum import smooth_basis
from .items import N_VECTORS

_ONE_CLASS = 0.5  # nothing tells how many items are of another class, if there is only one
# The share of labels that are the only one of their class, above which the graph alone chooses items: the blend finds
# new classes later, and tells known ones apart better.
_STILL_FINDING = 0.2
_MOST_UNNAMED = 0.95  # how likely an item is, at most, of a class without a name
_TILE_ROWS = 2048
_JUDGES = 2_000  # items that judge all others: more would make answers wait
_RIDGE = 0.1  # of the mean variance, as that of the labels
Way = Literal["typical", "unsure", "random", "again"]


@dataclass(frozen=True, slots=True)
class ClassProbabilities:
    """How likely items are of each class.

    Parameters
    ----------
    spread : what follows from the given labels
    beliefs : array of shape (n_items, n_classes)
        Probabilities that choose the next items: those of the graph as long as classes are still being found.
    single : the share of labels that are the only one of their class
    """

    spread: Spread
    beliefs: np.ndarray
    single: float = 0.0

    @property
    def knows_confidence(self) -> bool:
        """Whether labels can tell how right confidences are.

        As long as classes are still being found, nobody knows how many items are of one that has no name yet.
        """
        return self.spread.knows_confidence and self.single <= _STILL_FINDING

    @property
    def predicted(self) -> np.ndarray:
        """The likeliest class of each item, -1 if no class is known."""
        return self.spread.index

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of shape (n_items, n_classes); given labels are certain."""
        return self.spread.probabilities

    @property
    def confidences(self) -> np.ndarray:
        """The probability of the predicted class of each item."""
        return self.spread.confidences if self.probabilities.shape[1] else np.zeros(len(self.predicted))


def predict_labels(
    graph: NeighborGraph, coordinates: np.ndarray, given: np.ndarray, n_classes: int
) -> ClassProbabilities:
    """Return how likely all items are of each class, from given classes, -1 for none.

    These are the probabilities of :func:`starshl.spread_labels`, with fewer rows that judge all others, times how
    likely an item is of a class that has a name at all.

    Parameters
    ----------
    graph : the neighbor graph of the items; it keeps one column per labeled item, so that a new label costs one more
    coordinates : array of shape (n_items, n_axes), for ridge regression with a Gaussian kernel
    given : int array of shape (n_items,)
    n_classes : int
    """
    is_given = given >= 0
    if n_classes < 2 or is_given.all():
        probabilities = np.full((graph.n_rows, n_classes), _ONE_CLASS)
        probabilities[is_given] = np.eye(n_classes)[given[is_given]]
        index = given if n_classes == 0 else np.maximum(given, 0)
        left_out = np.zeros((int(is_given.sum()), n_classes))
        return ClassProbabilities(Spread(index, is_given, probabilities, left_out, 1.0), probabilities)
    plain = RowsKernel(coordinates)
    spread = spread_index(plain, graph, given, n_classes, n_judges=_JUDGES)
    single = float(np.mean(np.bincount(given[is_given])[given[is_given]] == 1))
    beliefs = spread.probabilities
    if single > _STILL_FINDING and spread.on_graph is not None:
        beliefs = spread.on_graph
    if single == 0:
        return ClassProbabilities(spread, beliefs)
    # The share of Good and Turing, by half: proposals look for new classes, so that single ones are common among them.
    named = 1.0 - _share_without_name(plain, is_given, single / 2)
    return ClassProbabilities(replace(spread, probabilities=spread.probabilities * named[:, None]), beliefs, single)


def _share_without_name(plain: RowsKernel, is_given: np.ndarray, share: float) -> np.ndarray:
    """Return how likely each item is of a class without a name: likelier the less it is like any labeled one."""
    rows, labeled, unlike = np.arange(len(is_given)), np.flatnonzero(is_given), np.zeros(len(is_given))
    with single_threaded_blas():
        for tile in tiles(len(rows), _TILE_ROWS):
            unlike[tile] = np.maximum(1.0 - plain.block(rows[tile], labeled).max(axis=1), 0.0)
    unlike[labeled] = 0.0
    mean = unlike.sum() / (len(rows) - len(labeled))
    return np.minimum(_MOST_UNNAMED, share * unlike / (mean or 1.0))


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
    probabilities = estimate.beliefs
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
