r"""The diffusion kernel of a graph without its trivial direction, and ridge regression with it on labeled rows.

.. math:: K = (I - .99 S)^{-1} - \phi \phi^T / (1 - .99)

with :math:`\phi \propto D^{1/2} 1`, the eigenvector of S for the eigenvalue 1. Removing it is the centering of Poisson
learning (Calder et al. 2020): scores no longer lean toward classes with more labels. One global phi is removed
whatever the components of the graph: one per component would take away which component a row belongs to.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._common.threads import run_all, single_threaded_blas
from ._graph_loops import solve_diffusion
from .neighbor_graph import NeighborGraph

DAMPING = 0.99  # as in label spreading (Zhou et al. 2004)
GRAPH_RIDGE = 0.1  # the same as LABEL_RIDGE of the plain kernel
_TOLERANCE = 1e-4  # relative residual; 1e-1 costs up to .09 of accuracy
_MAX_ITER = 1000  # the condition is at most 199: about 70 iterations
# Tests replace the next three, so that few labels are treated as many.
MOST_COLUMNS = 1000  # labels; with more, solving once per class is cheaper than once per label
UNIT_COLUMNS = 200  # labels that then give the mean diagonal
HELD_OUT = 0.1  # share of many labels that is held out
_CACHE = "diffusion_columns"


def diffusion_columns(graph: NeighborGraph, rows: np.ndarray) -> np.ndarray:
    """Return the columns of K for some rows, shape (len(rows), n_rows), in float32.

    Column i solves (I - .99 S) x = e_i - phi phi' e_i by conjugate gradients. Each is computed once and kept on the
    graph, so that a new label costs one more column.
    """
    known: dict[int, np.ndarray] = graph.cache.setdefault(_CACHE, {})
    missing = [row for row in np.unique(rows).tolist() if row not in known]
    unit = np.zeros(graph.n_rows)

    def column(row: int) -> np.ndarray:
        target = unit.copy()
        target[row] = 1.0
        return _solve(graph, unit, target).astype(np.float32)

    known.update(zip(missing, run_all([partial(column, row) for row in missing]), strict=True))
    return np.stack([known[row] for row in rows.tolist()])


def _solve(graph: NeighborGraph, extra: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the x orthogonal to phi whose image under I - .99 S + diag(extra) is the target, but for phi."""
    matrix, trivial = graph.normalized, trivial_direction(graph)
    target = target - (trivial @ target) * trivial
    solution = np.zeros(graph.n_rows)
    edges = matrix.data, matrix.indices, matrix.indptr
    solve_diffusion(*edges, DAMPING, extra, trivial, target, _TOLERANCE, _MAX_ITER, solution)
    return solution


def trivial_direction(graph: NeighborGraph) -> np.ndarray:
    """Return phi, the root of the degrees at length one."""
    return np.sqrt(graph.degrees / (float(graph.degrees.sum()) or 1.0))


def diffusion_gram(graph: NeighborGraph, rows: np.ndarray) -> np.ndarray:
    """Return K between some rows, over its mean diagonal, in float64."""
    gram = diffusion_columns(graph, rows)[:, rows].astype(np.float64)
    return (gram + gram.T) / (2 * _mean_diagonal(gram))


def graph_scores(graph: NeighborGraph, labeled: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the scores of all rows from the targets of the labeled ones, shape (n_rows, n_classes).

    Those of :func:`ridge_scores`, except that in a component with labels the classes without a label there come last:
    nothing connects its rows to them.
    """
    scores = ridge_scores(graph, labeled, targets)
    return _lower_unconnected(scores, graph, labeled, targets.argmax(axis=1))


def ridge_scores(graph: NeighborGraph, labeled: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return kernel ridge scores of all rows, shape (n_rows, n_classes).

    scores = K_l (K_ll + .1 I)^-1 targets with K over its mean diagonal at the labeled rows.
    """
    with single_threaded_blas():
        if len(labeled) > MOST_COLUMNS:
            return _scores_by_class(graph, labeled, targets)
        columns = diffusion_columns(graph, labeled)
        gram = diffusion_gram(graph, labeled)
        gram[np.diag_indices_from(gram)] += GRAPH_RIDGE
        coefficients = cho_solve(cho_factor(gram, lower=True), targets) / _mean_diagonal(columns[:, labeled])
        return np.ascontiguousarray((coefficients.T.astype(np.float32) @ columns).T, dtype=np.float64)


def _lower_unconnected(scores: np.ndarray, graph: NeighborGraph, labeled: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return scores in which classes without a label in a row's component stay 1 / n_classes below the best other one.

    Far from the labels of its large component, a row has negative scores for their classes, and any class of a small
    component would win.
    """
    n_classes = scores.shape[1]
    has_label = np.zeros((graph.n_connected_components, n_classes), dtype=bool)
    has_label[graph.components[labeled], index] = True
    n_connected = has_label.sum(axis=1)[graph.components]
    rows = np.flatnonzero((n_connected > 0) & (n_connected < n_classes))
    connected = has_label[graph.components[rows]]
    best = np.where(connected, scores[rows], -np.inf).max(axis=1, keepdims=True)
    scores[rows] = np.where(connected, scores[rows], np.minimum(scores[rows], best - 1.0 / n_classes))
    return scores


def _scores_by_class(graph: NeighborGraph, labeled: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the same scores from one linear system per class.

    They minimize |f_l - targets|^2 / .1 + m f' (I - .99 S) f over f orthogonal to phi, m the mean diagonal: the system
    is I - .99 S + I_l / (.1 m) with the right-hand side targets / (.1 m) at the labeled rows.
    """
    some = labeled[np.linspace(0, len(labeled) - 1, UNIT_COLUMNS).astype(np.int64)]
    weight = 1.0 / (GRAPH_RIDGE * _mean_diagonal(diffusion_columns(graph, some)[:, some]))
    extra = np.zeros(graph.n_rows)
    extra[labeled] = weight

    def scores(values: np.ndarray) -> np.ndarray:
        target = np.zeros(graph.n_rows)
        target[labeled] = weight * values
        return _solve(graph, extra, target)

    return np.stack(run_all([partial(scores, values) for values in targets.T]), axis=1)


def scores_without_own_label(
    graph: NeighborGraph, labeled: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions among the labeled rows and the graph scores that these rows would get without their labels.

    All labeled rows, each left out alone; of many a tenth, all left out together.
    """
    with single_threaded_blas():
        if len(labeled) > MOST_COLUMNS:
            n_out = min(MOST_COLUMNS, int(HELD_OUT * len(labeled)))
            out = np.sort(np.random.RandomState(0).permutation(len(labeled))[:n_out])
            rest = np.setdiff1d(np.arange(len(labeled)), out)
            return out, graph_scores(graph, labeled[rest], targets[rest])[labeled[out]]
        gram = diffusion_gram(graph, labeled)
        gram[np.diag_indices_from(gram)] += GRAPH_RIDGE
        inverse = cho_solve(cho_factor(gram, lower=True), np.eye(len(gram)))
        return np.arange(len(labeled)), targets - (inverse @ targets) / np.diag(inverse)[:, None]


def _mean_diagonal(gram: np.ndarray) -> float:
    return float(np.trace(gram, dtype=np.float64)) / len(gram) or 1.0
