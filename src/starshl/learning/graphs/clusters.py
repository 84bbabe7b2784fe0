"""Clusters of a neighbor graph: many partitions are tried, and the one of highest modularity is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from ..._common.threads import run_all, single_threaded_blas
from ..._common.validation import check_integer
from ..linalg import unit_rows
from ._graph_loops import k_means_centers, move_rows, nearest_centers
from .neighbor_graph import NeighborGraph
from .spectrum import leading_eigenpairs

_N_EIGENPAIRS = 40  # for the powers and dampings below; more than the clusters of most data
_EXTRA_EIGENVECTORS = range(11)  # beyond one per cluster
_POWERS = (8, 16, 32)  # short to long diffusion: modularity decides which suits the data
_DAMPINGS = (0.9, 0.95)  # of endless diffusion, for the same choice
_K_MEANS_STARTS = 10  # of each embedding; fewer save time and find worse partitions
_MOST_STARTED_CENTERS = 1000  # in all starts together: a start takes the square of its centers, and many are all alike
_SUGGESTING_STARTS = 3  # fewer, because many numbers of clusters are tried
_K_MEANS_TRIALS = 3  # candidates for each new center
_K_MEANS_PASSES = 100  # if centers never rest; not tuned
_MOST_K_MEANS_ROWS = 10_000  # centers of so many rows, drawn at random, serve for all others
_MOVING_PASSES = 50  # if rows never rest; not tuned
_MOST_SUGGESTED = 30  # clusters; more take longer to try, and people name fewer classes
_ENOUGH_MODULARITY = 0.98  # of the maximum; within two of the classes in 23 of 24 samples of ten-class sets
_ENOUGH_INSIDE = 0.9  # of the edge weight; chosen by looking at digits, USPS, MNIST and AG News


def modularity(graph: NeighborGraph, labels: np.ndarray) -> float:
    r"""Return how much more edge weight lies inside the clusters than random edges would have there.

    .. math:: Q = \sum_g \frac{w_{gg}}{2m} - \left(\frac{d_g}{2m}\right)^2

    with :math:`w_{gg}` the weight between rows of cluster g, both ways, :math:`d_g` the sum of their degrees and
    :math:`2m` the sum of all degrees (Newman 2006). 0 without edges.

    Examples
    --------
    >>> graph = NeighborGraph.of_rows([[0.0], [1.0], [50.0], [51.0]], n_neighbors=1)
    >>> modularity(graph, np.array([0, 0, 1, 1]))
    0.5
    """
    total = float(graph.degrees.sum())
    if total <= 0:
        return 0.0
    volumes = np.bincount(labels, graph.degrees)
    return weight_inside(graph, labels) - float(np.sum((volumes / total) ** 2))


def weight_inside(graph: NeighborGraph, labels: np.ndarray) -> float:
    """Return the share of the weight of all edges that joins rows of one cluster; 1 without edges.

    Examples
    --------
    >>> graph = NeighborGraph.of_rows([[0.0], [1.0], [50.0], [51.0]], n_neighbors=1)
    >>> weight_inside(graph, np.array([0, 1, 2, 2]))
    0.5
    """
    weights, total = graph.weights, float(graph.degrees.sum())
    rows = np.repeat(np.arange(graph.n_rows), np.diff(weights.indptr))
    inside = float(weights.data[labels[rows] == labels[weights.indices]].sum())
    return inside / total if total > 0 else 1.0


def cluster_graph(
    graph: NeighborGraph,
    n_clusters: int,
    rng: np.random.RandomState,
    coordinates: np.ndarray | None = None,
) -> np.ndarray:
    r"""Return a cluster for each row, numbered by size, the largest first.

    With the 40 leading eigenpairs :math:`(\lambda, V)` of S, k-means runs on the unit rows of the first
    :math:`k, \dots, k + 10` eigenvectors, of :math:`V \max(\lambda, 0)^t` for t = 8, 16, 32, of
    :math:`V / (1 - a \lambda)` for a = .9, .95 and on the coordinates, if they are given. In each partition single
    rows then move while that raises the :func:`modularity`; the partition where it ends highest is returned. Fewer
    clusters than asked for come back if there are fewer distinct rows.

    Parameters
    ----------
    graph : NeighborGraph
    n_clusters : int
    rng : RandomState
        Draws the starts of k-means.
    coordinates : array of shape (n_rows, n_features), default=None
        The rows themselves, or principal components of them.
    """
    n_clusters = check_integer(n_clusters, "n_clusters", low=1, high=graph.n_rows)
    if n_clusters == 1:
        return np.zeros(graph.n_rows, dtype=np.int64)
    if n_clusters == graph.n_rows:
        return np.arange(graph.n_rows)
    embeddings = _embeddings(graph, n_clusters, _EXTRA_EIGENVECTORS, _POWERS, _DAMPINGS)
    if coordinates is not None:
        embeddings.append(np.ascontiguousarray(coordinates, dtype=np.float64))
    n_starts = min(_K_MEANS_STARTS, max(1, _MOST_STARTED_CENTERS // n_clusters))
    return _best_partition(graph, n_clusters, embeddings, rng, n_starts)[0]


def suggest_n_clusters(graph: NeighborGraph, rng: np.random.RandomState) -> int:
    """Return the smallest number of clusters, up to 30, whose modularity is at least .98 of the highest.

    A suggestion only: on ten-class sets it is mostly within two of ten, but classes need not be clusters, and on four
    kinds of news it says eleven and more.
    """
    most = min(_MOST_SUGGESTED, graph.n_rows)
    reached = np.zeros(most + 1)
    for n_clusters in range(2, most + 1):
        embeddings = _embeddings(graph, n_clusters, (0, 4), (), (0.95,))
        reached[n_clusters] = _best_partition(graph, n_clusters, embeddings, rng, _SUGGESTING_STARTS)[1]
    return max(1, int(np.argmax(reached >= _ENOUGH_MODULARITY * reached.max())))


def n_coherent_clusters(graph: NeighborGraph, most: int, rng: np.random.RandomState) -> int:
    """Return the largest power of two, up to ``most`` and at least 2, whose clusters rarely part near rows.

    At least .9 of the weight of all edges then lies inside of clusters.
    """
    n_clusters = 1 << min(most, graph.n_rows).bit_length() - 1
    while n_clusters > 2:
        embeddings = _embeddings(graph, n_clusters, (0, 4), (), (0.95,))
        labels, _ = _best_partition(graph, n_clusters, embeddings, rng, _SUGGESTING_STARTS)
        if weight_inside(graph, labels) >= _ENOUGH_INSIDE:
            break
        n_clusters //= 2
    return n_clusters


def _embeddings(
    graph: NeighborGraph, n_clusters: int, extra: Iterable[int], powers: Iterable[int], dampings: Iterable[float]
) -> list[np.ndarray]:
    """Return the rows in the coordinates that k-means is run on."""
    values, vectors = leading_eigenpairs(graph, max(_N_EIGENPAIRS, n_clusters + max(_EXTRA_EIGENVECTORS)))
    n_columns = {min(n_clusters + more, len(values)) for more in extra}
    embeddings = [vectors[:, :n] for n in sorted(n_columns)]
    embeddings += [vectors * np.maximum(values, 0.0) ** power for power in powers]
    embeddings += [vectors / (1.0 - damping * values) for damping in dampings]
    return [np.ascontiguousarray(unit_rows(embedding)) for embedding in embeddings]


def _best_partition(
    graph: NeighborGraph,
    n_clusters: int,
    embeddings: list[np.ndarray],
    rng: np.random.RandomState,
    n_starts: int,
) -> tuple[np.ndarray, float]:
    """Return the partition of highest modularity that k-means and moving rows reach in any of the embeddings."""
    tasks: list[Callable[[], tuple[np.ndarray, float]]] = []
    for embedding in embeddings:
        draws = rng.uniform(size=(n_starts, n_clusters, _K_MEANS_TRIALS))
        n_drawn = min(graph.n_rows, _MOST_K_MEANS_ROWS)
        drawn = np.sort(rng.choice(graph.n_rows, n_drawn, replace=False)) if n_drawn < graph.n_rows else None
        tasks.append(partial(_partition, graph, embedding, draws, drawn))
    with single_threaded_blas():
        candidates = run_all(tasks)
    # Where modularity asks for fewer clusters than were asked for, coordinates that merge some would win.
    labels, reached = max(candidates, key=lambda candidate: (len(np.unique(candidate[0])), candidate[1]))
    return _by_size(labels), reached


def _partition(
    graph: NeighborGraph, embedding: np.ndarray, draws: np.ndarray, drawn: np.ndarray | None
) -> tuple[np.ndarray, float]:
    centers = k_means_centers(embedding if drawn is None else embedding[drawn], draws, _K_MEANS_PASSES)
    labels = np.empty(graph.n_rows, dtype=np.int64)
    nearest_centers(embedding, centers, labels)
    weights = graph.weights
    ends, columns = weights.indptr.astype(np.int64), weights.indices.astype(np.int64)  # one type, compiled once
    move_rows(ends, columns, weights.data, graph.degrees, labels, len(centers), _MOVING_PASSES)
    return labels, modularity(graph, labels)


def _by_size(labels: np.ndarray) -> np.ndarray:
    """Return the labels renumbered, the largest cluster first; of equal ones that of the first row."""
    _, first, members, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    places = np.empty(len(sizes), dtype=np.int64)
    places[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return places[members]
