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

from .._threads import run_all, single_threaded_blas
from ._diffusion_loops import solve_diffusion
from .neighbor_graph import NeighborGraph

__all__ = ["GRAPH_RIDGE", "diffusion_columns", "diffusion_gram", "graph_scores"]

DAMPING = 0.99
_TOLERANCE = 1e-4  # relative residual; 1e-1 costs up to .09 of accuracy
_MAX_ITER = 1000  # the condition is at most 199: about 70 iterations
GRAPH_RIDGE = 0.1
_CACHE = "diffusion_columns"


def diffusion_columns(graph: NeighborGraph, rows: np.ndarray) -> np.ndarray:
    """Return the columns of K for some rows, shape (len(rows), n_rows), in float32.

    Column i solves (I - .99 S) x = e_i - phi phi' e_i by conjugate gradients. Each is computed once and kept on the
    graph, so that a new label costs one more column.
    """
    known: dict[int, np.ndarray] = graph.cache.setdefault(_CACHE, {})
    missing = [row for row in np.unique(rows).tolist() if row not in known]
    columns = run_all([partial(_column, graph, row) for row in missing])
    known.update(zip(missing, columns, strict=True))
    return np.stack([known[row] for row in rows.tolist()])


def _column(graph: NeighborGraph, row: int) -> np.ndarray:
    trivial = trivial_direction(graph)
    target = -trivial[row] * trivial
    target[row] += 1.0
    solution = np.zeros(graph.n_rows)
    solve_diffusion(*_operator(graph), np.zeros(graph.n_rows), target, _TOLERANCE, _MAX_ITER, solution)
    # Rounding along phi grows a hundredfold in the solution, whose true component there is zero.
    solution -= (trivial @ solution) * trivial
    return solution.astype(np.float32)


def trivial_direction(graph: NeighborGraph) -> np.ndarray:
    """Return phi, the root of the degrees at length one."""
    roots = np.sqrt(graph.degrees)
    length = float(np.sqrt(graph.degrees.sum()))
    return roots / (length or 1.0)


def _operator(graph: NeighborGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    matrix = graph.normalized
    return matrix.data, matrix.indices, matrix.indptr, DAMPING


def diffusion_gram(graph: NeighborGraph, rows: np.ndarray) -> np.ndarray:
    """Return K between some rows, over its mean diagonal, in float64."""
    gram = diffusion_columns(graph, rows)[:, rows].astype(np.float64)
    return (gram + gram.T) / (2 * _unit(gram))


def graph_scores(graph: NeighborGraph, labeled: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return kernel ridge scores of all rows from the targets of the labeled ones, shape (n_rows, n_classes).

    scores = K_l (K_ll + .1 I)^-1 targets with K over its mean diagonal at the labeled rows.
    """
    with single_threaded_blas():
        columns = diffusion_columns(graph, labeled)
        gram = diffusion_gram(graph, labeled)
        gram[np.diag_indices_from(gram)] += GRAPH_RIDGE
        coefficients = cho_solve(cho_factor(gram, lower=True), targets) / _unit(columns[:, labeled])
        return columns.T.astype(np.float64) @ coefficients


def _unit(gram: np.ndarray) -> float:
    return float(np.trace(gram, dtype=np.float64)) / len(gram) or 1.0
