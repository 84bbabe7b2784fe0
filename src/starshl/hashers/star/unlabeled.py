"""What the neighbor graph says of unlabeled rows, before any hash function is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ..._common.threads import single_threaded_blas
from ..._common.words import counted
from ...learning.graphs.clusters import cluster_graph, modularity, suggest_n_clusters
from ...learning.graphs.label_spreading import spread_index
from ...learning.graphs.neighbor_graph import NeighborGraph, check_graph, principal_coordinates
from ...learning.graphs.plain_kernel import LABEL_RIDGE, PlainKernel, RowsKernel, inverse_with_ridge
from ...learning.kernels.distances import distinct_rows

_N_COORDINATES = 50  # principal components, as many as the neighbor graph reads
_MOST_JUDGED = 10_000  # rows that all others judge again; the inverse takes .4 GB and half a minute
_CLUSTER_TEMPERATURE = 12.0  # that of labels spread from many
_ITEM_SOFTNESS = 3.0  # items at a third of the temperature: sharp codes on both sides find .05 to .08 less


@dataclass(frozen=True, slots=True)
class Guess:
    """A class for every row.

    Parameters
    ----------
    index : array of shape (n_rows,), the class or cluster of every row; given ones are kept
    probabilities : array of shape (n_rows, n_classes), what the other rows say of each row
    trust : array of shape (n_rows,), weight of the loss of an unlabeled row where a labeled one has 1
    note : one line that says what was chosen and why
    """

    index: np.ndarray
    probabilities: np.ndarray
    trust: np.ndarray
    note: str

    def bit_scores(self, codewords: np.ndarray) -> np.ndarray:
        """Return the expected bits of every row as an item of a database, with softened probabilities."""
        softened = self.probabilities ** (1.0 / _ITEM_SOFTNESS)
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
    """Return classes for all rows from those given, -1 for none; see :func:`starshl.spread_labels`."""
    spread = spread_index(plain, graph, index, n_classes)
    return Guess(spread.index, spread.probabilities, spread.trust, spread.note)


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
    if graph.n_rows <= _MOST_JUDGED and n_clusters > 1:
        before, (index, probabilities) = index, _judged_by_others(plain, index, n_clusters)
        n_moved = int(np.sum(before != index))
        note += f"; {counted(n_moved, 'row')} then moved to the cluster that a plain kernel on all other rows gives"
    if is_suggested:
        note += f"; the number {n_clusters} is a suggestion: set n_codewords if you know better"
    return Guess(index, probabilities, np.ones(len(index)), note)


def _n_distinct(plain: PlainKernel) -> int:
    """Return the number of distinct rows; samples behind a kernel count as distinct."""
    return int(distinct_rows(plain.rows)[0].shape[0]) if isinstance(plain, RowsKernel) else plain.n_rows


def _judged_by_others(plain: PlainKernel, index: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters and probabilities from a ridge regression on all other rows; no cluster loses more than half."""
    targets = np.eye(n_clusters)[index] - 1.0 / n_clusters
    with single_threaded_blas():
        inverse = inverse_with_ridge(plain.gram(), np.full(plain.n_rows, LABEL_RIDGE))
        dual = inverse @ targets.astype(inverse.dtype)
        scores = targets - dual / inverse.diagonal()[:, None]
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
