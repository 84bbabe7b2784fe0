"""What the neighbor graph says of unlabeled rows, before any hash function is learned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from ..._common.words import counted
from ...learning.graphs.clusters import cluster_graph, modularity, suggest_n_clusters
from ...learning.graphs.label_spreading import spread_index
from ...learning.graphs.neighbor_graph import NeighborGraph, check_graph, principal_coordinates
from ...learning.graphs.plain_ridge import LABEL_RIDGE, LARGEST_EXACT, PlainKernel, RowsKernel, leave_one_out
from ...learning.graphs.trust import labels_decide
from ...learning.kernels.distances import distinct_rows

_N_COORDINATES = 50  # principal components, as many as the neighbor graph reads
_CLUSTER_TEMPERATURE = 12.0  # that of labels spread from many
_DISTANCE_WEIGHT = 8.0  # of mean hinge distances against log probabilities; 6 to 16 differ by less than .01
_SMALLEST_PROBABILITY = 1e-12  # keeps a logarithm finite
_ITEM_SOFTNESS = 3.0  # items at a third of the temperature: sharp codes on both sides find .05 to .08 less
_TWICE_READ_SOFTNESS = 10.0  # two readings of the same labels together are far too sure; 6 finds .005 less, 20 the same


@dataclass(frozen=True, slots=True)
class Guess:
    """A class for every row.

    Parameters
    ----------
    index : array of shape (n_rows,), the class or cluster of every row; given ones are kept
    probabilities : array of shape (n_rows, n_classes), what the other rows say of each row
    trust : weight of the loss of an unlabeled row where a labeled one has 1; 0 where the given labels decide alone
    note : one line that says what was chosen and why
    softness : what temperatures are divided by for the codes of items
    """

    index: np.ndarray
    probabilities: np.ndarray
    trust: float
    note: str
    softness: float = _ITEM_SOFTNESS

    def after_fit(self, distances: np.ndarray) -> Guess:
        """Return the guess in which the fitted functions have a say, if they learned from the given labels alone.

        The plain kernel and the functions are then two readings of the same labels, and neither is always the better
        one. Functions that learned from the guess would only repeat it.

        Parameters
        ----------
        distances : array of shape (n_rows, n_classes), mean hinge distances to the codewords
        """
        if self.trust > 0:
            return self
        logarithms = np.log(np.maximum(self.probabilities, _SMALLEST_PROBABILITY))
        probabilities = softmax(logarithms - _DISTANCE_WEIGHT * distances, axis=1)
        index = probabilities.argmax(axis=1)
        return replace(self, index=index, probabilities=probabilities, softness=_TWICE_READ_SOFTNESS)

    def bit_scores(self, codewords: np.ndarray) -> np.ndarray:
        """Return the expected bits of every row as an item of a database, with softened probabilities."""
        softened = self.probabilities ** (1.0 / self.softness)
        return softened @ codewords


def graph_of_rows(plain: PlainKernel, given: NeighborGraph | None, rows: np.ndarray, n_rows: int) -> NeighborGraph:
    """Return the graph of the rows that take part in a fit; ``rows`` says where they stand among all ``n_rows``.

    A given graph is of all rows.
    """
    if given is None:
        return (
            NeighborGraph.of_rows(plain.rows)
            if isinstance(plain, RowsKernel)
            else NeighborGraph.of_kernel(plain.gram())
        )
    given = check_graph(given, n_rows)
    if len(rows) == n_rows:
        return given
    return NeighborGraph(given.weights[rows][:, rows], given.n_neighbors)


def guess_classes(plain: PlainKernel, graph: NeighborGraph, index: np.ndarray, n_classes: int) -> Guess:
    """Return classes for all rows from those given, -1 for none; see :func:`starshl.spread_labels`.

    A spread label has a ridge from 1 to 30 there, larger where it is trusted less. Its hinge loss weighs one over that,
    and nothing at 30: many rows of little weight still pull functions away from what the labels say.
    """
    spread = spread_index(plain, graph, index, n_classes)
    trust = 0.0 if labels_decide(spread.pseudo_ridge) else min(1.0, 1.0 / spread.pseudo_ridge)
    return Guess(spread.index, spread.probabilities, trust, spread.note)


def guess_clusters(plain: PlainKernel, graph: NeighborGraph, n_clusters: int | None, seed: int) -> Guess:
    """Return clusters of the graph, each row then judged again by all others; None suggests how many."""
    rng = np.random.RandomState(seed)
    is_suggested = n_clusters is None
    coordinates = principal_coordinates(plain.rows, _N_COORDINATES) if isinstance(plain, RowsKernel) else None
    # In a fixed order, so that the clusters do not depend on the order in which the rows came.
    order = np.arange(graph.n_rows) if coordinates is None else np.lexsort(coordinates.T)
    ordered = NeighborGraph(graph.weights[order][:, order], graph.n_neighbors)
    if n_clusters is None:
        n_clusters = suggest_n_clusters(ordered, rng)
    index = np.empty(graph.n_rows, dtype=np.int64)
    n_found = min(n_clusters, _n_distinct(plain))
    index[order] = cluster_graph(ordered, n_found, rng, None if coordinates is None else coordinates[order])
    reached = modularity(graph, index)
    neighbors = counted(graph.n_neighbors, "neighbor")
    note = f"{counted(n_found, 'cluster')} of the graph of {neighbors}, modularity {reached:.3f}"
    if n_found < n_clusters:
        note += f"; you asked for {n_clusters:,}, more than there are distinct rows"
    probabilities = np.eye(n_clusters)[index]
    if graph.n_rows <= LARGEST_EXACT and n_clusters > 1:
        before, (index, probabilities) = index, _judged_by_others(plain, graph, index, n_clusters)
        n_moved = int(np.sum(before != index))
        note += f"; {counted(n_moved, 'row')} then moved to the cluster that a plain kernel on all other rows gives"
    if is_suggested:
        note += f"; the number {n_clusters} is a suggestion: set n_codewords if you know better"
    return Guess(index, probabilities, 1.0, note)


def _n_distinct(plain: PlainKernel) -> int:
    """Return the number of distinct rows; samples behind a kernel count as distinct."""
    return int(distinct_rows(plain.rows)[0].shape[0]) if isinstance(plain, RowsKernel) else plain.n_rows


def _judged_by_others(
    plain: PlainKernel, graph: NeighborGraph, index: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters and probabilities from a ridge regression on all other rows; no cluster loses more than half."""
    targets = np.eye(n_clusters)[index] - 1.0 / n_clusters
    scores = leave_one_out(plain, graph, np.empty(0, dtype=np.int64), targets, LABEL_RIDGE)
    judged = scores.argmax(axis=1)
    sizes = np.bincount(index, minlength=n_clusters)
    kept = np.zeros(len(index), dtype=bool)
    while True:  # rows that stay take away from other clusters what those counted on
        halved = np.flatnonzero(2 * np.bincount(judged, minlength=n_clusters) < sizes)
        again = np.isin(index, halved) & ~kept
        if not again.any():
            break
        kept |= again
        judged[again] = index[again]
    probabilities = softmax(_CLUSTER_TEMPERATURE * scores, axis=1)
    probabilities[kept] = np.eye(n_clusters)[index[kept]]
    return judged, probabilities
