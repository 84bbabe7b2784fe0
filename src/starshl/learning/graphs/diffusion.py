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
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from ..._common.threads import run_all, single_threaded_blas
from ..linalg import positive_peaks
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


def diffuse(graph: NeighborGraph, values: np.ndarray, tolerance: float = _TOLERANCE) -> np.ndarray:
    """Return K times the values of all rows."""
    return _solve(graph, np.zeros(graph.n_rows), values, tolerance)


def _solve(graph: NeighborGraph, extra: np.ndarray, target: np.ndarray, tolerance: float = _TOLERANCE) -> np.ndarray:
    """Return the x orthogonal to phi whose image under I - .99 S + diag(extra) is the target, but for phi."""
    matrix, trivial = graph.normalized, trivial_direction(graph)
    target = target - (trivial @ target) * trivial
    solution = np.zeros(graph.n_rows)
    edges = matrix.data, matrix.indices, matrix.indptr
    solve_diffusion(*edges, DAMPING, extra, trivial, target, tolerance, _MAX_ITER, solution)
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


# A basis of functions that vary slowly over a neighbor graph: nearly its leading eigenvectors, at less cost.

_N_PASSES = 2  # two linear systems per vector; one would leave more of what is not smooth
_TOLERANCE_SMOOTH_BASIS = 0.03  # any smooth functions will do
_CACHE_SMOOTH_BASIS = "smooth_basis"


def smooth_basis(graph: NeighborGraph, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return :math:`1 / (1 - .99 \theta)`, descending, and orthonormal vectors as columns, shape (n_rows, n_vectors).

    Random vectors are diffused over the graph twice, :math:`Q = \mathrm{orth}(K^2 \Omega)`, and S is diagonalized on
    their span: :math:`Q^T S Q = U \theta U^T`, vectors QU (Halko et al. 2011). Their first ones are eigenvectors of S
    but for the trivial one; the others are mixtures of further ones, and as smooth. Two linear systems per vector: at
    50,000 rows a tenth of the time of as many eigenvectors. The start is fixed, and the graph keeps the result.
    """
    n_vectors = min(n_vectors, graph.n_rows - 1)
    kept: tuple[np.ndarray, np.ndarray] | None = graph.cache.get(_CACHE_SMOOTH_BASIS)
    if kept is None or kept[1].shape[1] != n_vectors:
        kept = _compute(graph, n_vectors)
        graph.cache[_CACHE_SMOOTH_BASIS] = kept
    return kept


def restore_smooth_basis(graph: NeighborGraph, n_vectors: int, values: np.ndarray, vectors: np.ndarray) -> bool:
    """Let a graph keep a basis that was stored; False if these arrays cannot be its basis."""
    n_vectors = min(n_vectors, graph.n_rows - 1)
    fits = values.shape == (n_vectors,) and vectors.shape == (graph.n_rows, n_vectors)
    if not fits or values.dtype != np.float64 or vectors.dtype != np.float32:
        return False
    if not (np.isfinite(values).all() and np.isfinite(vectors).all()):
        return False
    graph.cache[_CACHE_SMOOTH_BASIS] = values, vectors
    return True


def _compute(graph: NeighborGraph, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    vectors = np.random.RandomState(0).standard_normal((graph.n_rows, n_vectors))
    with single_threaded_blas():
        for _ in range(_N_PASSES):
            columns = [np.ascontiguousarray(column) for column in vectors.T]
            vectors = np.stack(
                run_all([partial(diffuse, graph, column, _TOLERANCE_SMOOTH_BASIS) for column in columns]), axis=1
            )
            vectors = np.linalg.qr(vectors)[0]
        small = vectors.T @ (graph.normalized @ vectors)
        values, turned = np.linalg.eigh((small + small.T) / 2)
        basis = positive_peaks((vectors @ turned[:, ::-1]).T).T
    return 1.0 / (1.0 - DAMPING * np.minimum(values[::-1], 1.0)), np.ascontiguousarray(basis, dtype=np.float32)


# The leading eigenvectors of a neighbor graph: smooth coordinates in which clusters are compact.

_DENSE_UP_TO = 400  # rows; ARPACK needs many more rows than eigenvectors
_TOLERANCE_SPECTRUM = 1e-6  # relative; the partitions of 1e-3 and of machine precision are nearly the same
_CACHE_SPECTRUM = "eigenpairs"


def leading_eigenpairs(graph: NeighborGraph, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of S, descending, and their eigenvectors as columns; the graph keeps them.

    At most as many as the graph has rows. The entry of largest magnitude of each vector is positive.
    """
    n_pairs = min(n_pairs, graph.n_rows)
    values, vectors = graph.cache.get(_CACHE_SPECTRUM, (np.empty(0), None))
    if vectors is None or len(values) < n_pairs:
        values, vectors = _compute_spectrum(graph, n_pairs)
        graph.cache[_CACHE_SPECTRUM] = values, vectors
    return values[:n_pairs], vectors[:, :n_pairs]


def _compute_spectrum(graph: NeighborGraph, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    with single_threaded_blas():
        if graph.n_rows <= max(_DENSE_UP_TO, 2 * n_pairs):
            values, vectors = np.linalg.eigh(graph.normalized.toarray())
        else:
            values, vectors = _sparse_eigenpairs(graph, n_pairs)
    order = np.argsort(-values, kind="stable")[:n_pairs]
    return values[order], np.ascontiguousarray(positive_peaks(vectors[:, order].T).T)


def _sparse_eigenpairs(graph: NeighborGraph, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    # Any fixed start will do, except the root of the degrees: that is an eigenvector, and the search would end there.
    start = np.random.RandomState(0).standard_normal(graph.n_rows)
    try:
        return eigsh(graph.normalized, k=n_pairs, which="LA", v0=start, tol=_TOLERANCE_SPECTRUM)
    except ArpackNoConvergence as stopped:
        if len(stopped.eigenvalues) == 0:
            raise
        return stopped.eigenvalues, stopped.eigenvectors
