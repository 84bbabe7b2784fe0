r"""Four experts that each read a class for every row from the labels of a few.

- The *graph*: ridge regression with the diffusion kernel of the neighbor graph.
- The graph *judged again*: every row takes its best class on the graph, and then all other rows judge it with a plain
  kernel, in which a spread label counts a tenth of a given one.
- A *linear* function of the labeled rows alone.
- A *kernel* on the labeled rows alone, the best of a few.

`StarRidge` adds what its own bank of kernels has learned from the labeled rows. Each gives scores of all rows, and
honest scores of labeled rows, as if their own label were not known. Only the latter can tell how far an expert is to be
trusted: the labels that a graph has spread always agree with the graph.

All but the graph are kernel ridge regression with targets T = one-hot - 1 / n_classes:

.. math:: A = (K + \lambda I)^{-1}, \qquad F = K_{\cdot l} A T, \qquad H = T - A T / \mathrm{diag}(A).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import logsumexp

from ..._common.threads import run_all, single_threaded_blas, tiles
from ..linalg import inverse_of_kernel
from ..solvers.discriminant import fit_discriminant
from .diffusion import (
    GRAPH_RIDGE,
    MOST_COLUMNS,
    diffusion_columns,
    diffusion_gram,
    graph_scores,
    scores_without_own_label,
)
from .neighbor_graph import NeighborGraph
from .plain_kernel import LABEL_RIDGE, Block, GivenKernel, PlainKernel, RowsKernel, inverse_with_ridge

_FLOAT64_UP_TO = 1000  # judges; above, float32 halves the time
_PSEUDO_RIDGE = 1.0  # of a spread label, where a given one has .1
_MOST_LEFT_OUT = 300  # labels that are left out in turn: each costs a pass over all rows
_LINEAR_RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_KERNEL_RIDGES = (1e-3, 1e-2, 1e-1)
_USUAL_LINEAR_RIDGE, _USUAL_KERNEL_RIDGE = 0.3, 0.1
_TEMPERATURES = (2.0, 4.0, 8.0, 16.0, 32.0)  # among which each setting is judged at its best
_FEWEST_TELLING = 3  # labels, below which none of them can choose a setting
# Tests replace the next two, so that few rows are treated as many.
MOST_LABELED = 3000  # labels that functions of labeled rows are fitted to
MOST_SEARCHED = 500  # labels from which their settings are chosen
_TILE_ROWS = 2048
# Temperatures of softmax(T scores) that fit best on average: for the graph from 33 with one label per class to 16.
_GRAPH_TEMPERATURES = (16.0, 17.0)
_JUDGES_TEMPERATURE = 8.0
_USUAL_TEMPERATURE = 6.0


@dataclass(frozen=True, slots=True)
class Expert:
    """What one expert says.

    Parameters
    ----------
    scores : array of shape (n_rows, n_classes)
    left_out : array of shape (n_labeled, n_classes), scores of labeled rows without their own label
    usual_temperature : the T of softmax(T scores) that fits best on average
    """

    scores: np.ndarray
    left_out: np.ndarray
    usual_temperature: float = _USUAL_TEMPERATURE


@dataclass(frozen=True, slots=True)
class Labels:
    """Given classes of some rows.

    Parameters
    ----------
    rows : positions of the labeled rows among all, ascending
    index : their classes
    n_classes : int
    """

    rows: np.ndarray
    index: np.ndarray
    n_classes: int

    @classmethod
    def of(cls, index: np.ndarray, n_classes: int) -> Labels:
        """Read classes of all rows, -1 for none."""
        rows = np.flatnonzero(index >= 0)
        return cls(rows, index[rows], n_classes)

    @property
    def targets(self) -> np.ndarray:
        targets: np.ndarray = np.eye(self.n_classes)[self.index] - 1.0 / self.n_classes
        return targets

    @property
    def telling(self) -> np.ndarray:
        """Which labels tell something when they are left out: without its only label, a class cannot win."""
        return np.asarray(np.bincount(self.index, minlength=self.n_classes)[self.index] > 1)

    def some(self, n_most: int) -> np.ndarray:
        """Return positions of at most ``n_most`` labels at equal steps."""
        return np.linspace(0, len(self.rows) - 1, min(len(self.rows), n_most)).astype(np.int64)

    def take(self, positions: np.ndarray) -> Labels:
        return Labels(self.rows[positions], self.index[positions], self.n_classes)


def read_labels(
    plain: PlainKernel, graph: NeighborGraph, labels: Labels, n_judges: int, further: Expert | None = None
) -> tuple[list[Expert], np.ndarray]:
    """Return what the experts say, the graph's two first, and which labels, by position, all of them have left out.

    Of very many labels, some experts leave out only a part.

    Parameters
    ----------
    n_judges : how many rows, at most, judge all rows again; labeled ones come first
    further : another expert that has learned from labeled rows alone
    """
    with single_threaded_blas():
        on_graph, out, left_out = _by_graph(graph, labels)
        unreached = ~np.isin(graph.components, graph.components[labels.rows])
        if unreached.any():
            on_graph[unreached] = scores_from_labeled(plain, labels)[unreached]
        per_class = len(labels.rows) / max(1, len(np.unique(labels.index)))
        many, few = _GRAPH_TEMPERATURES
        experts = [
            Expert(on_graph, left_out, many + few / per_class),
            _judged_again(plain, graph, labels, on_graph, out, n_judges),
        ]
        alone = [] if isinstance(plain, GivenKernel) else [_linear(plain, labels, out)]
        alone.append(_by_kernel(plain, labels, out))
        return experts + alone + ([] if further is None else [further]), out


def _by_graph(graph: NeighborGraph, labels: Labels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return graph scores, which labels to leave out, and scores of labeled rows without their own label."""
    scores = graph_scores(graph, labels.rows, labels.targets)
    left_out = scores[labels.rows]
    positions, without = scores_without_own_label(graph, labels.rows, labels.targets)
    left_out[positions] = without
    some = np.sort(np.random.RandomState(0).permutation(len(positions))[:_MOST_LEFT_OUT])
    return scores, positions[some], left_out


def _judged_again(
    plain: PlainKernel, graph: NeighborGraph, labels: Labels, on_graph: np.ndarray, out: np.ndarray, n_judges: int
) -> Expert:
    """Return what all other rows, or a sample of them, say of each row with a plain kernel.

    Without its label, row i changes the classes that the graph gives to others: its scores change by rank one. The
    ratio of entries of A in the row of i does not depend on its own ridge, so no other inverse is needed.
    """
    judges = _judges(plain.n_rows, labels.rows, n_judges)
    place = np.searchsorted(judges, labels.rows)
    pseudo = on_graph.argmax(axis=1)
    pseudo[labels.rows] = labels.index
    ridges = np.full(len(judges), _PSEUDO_RIDGE)
    is_known = np.isin(labels.rows, judges)
    ridges[place[is_known]] = LABEL_RIDGE
    gram = plain.block(judges, judges)
    inverse = inverse_with_ridge(gram.astype(np.float32 if len(judges) > _FLOAT64_UP_TO else np.float64), ridges)
    targets = (np.eye(labels.n_classes)[pseudo[judges]] - 1.0 / labels.n_classes).astype(inverse.dtype)
    dual, diagonal = inverse @ targets, inverse.diagonal()
    scores = _expanded(plain, judges, dual.astype(np.float64))
    scores[judges] = targets - dual / diagonal[:, None]

    left_out = scores[labels.rows]
    for position, others in zip(out, _graph_without(graph, labels, out, judges), strict=True):
        if not is_known[position]:
            continue
        own = place[position]
        classes = others.argmax(axis=1)
        classes[place[is_known]] = labels.index[is_known]
        ratios = inverse[own] / inverse[own, own]
        ratios[own] = 0.0
        sums = np.bincount(classes, ratios, minlength=labels.n_classes)
        left_out[position] = sums.sum() / labels.n_classes - sums
    return Expert(scores, left_out, _JUDGES_TEMPERATURE)


def _judges(n_rows: int, labeled: np.ndarray, n_most: int) -> np.ndarray:
    """Return the rows that judge: all, or the labeled ones and random others, the same whatever the labels."""
    if n_rows <= n_most:
        return np.arange(n_rows)
    order = np.random.RandomState(0).permutation(n_rows)
    is_labeled = np.isin(order, labeled)
    few = order[is_labeled][: n_most // 2]
    return np.sort(np.concatenate([few, order[~is_labeled][: n_most - len(few)]]))


def _graph_without(graph: NeighborGraph, labels: Labels, out: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield graph scores of some rows without one label after the other; of very many labels, without all of these."""
    if len(labels.rows) > MOST_COLUMNS:
        rest = labels.take(np.setdiff1d(np.arange(len(labels.rows)), out))
        scores = graph_scores(graph, rest.rows, rest.targets)[rows]
        yield from (scores for _ in out)
        return
    columns = diffusion_columns(graph, labels.rows)
    gram = diffusion_gram(graph, labels.rows)
    gram[np.diag_indices_from(gram)] += GRAPH_RIDGE
    inverse = inverse_of_kernel(gram)
    coefficients = inverse @ labels.targets
    unit = float(np.trace(columns[:, labels.rows], dtype=np.float64)) / len(labels.rows) or 1.0
    kernel = columns[:, rows].T.astype(np.float64) / unit
    scores = kernel @ coefficients
    for position in out:
        step = coefficients[position] / inverse[position, position]
        yield scores - np.outer(kernel @ inverse[:, position], step)


def _linear(plain: PlainKernel, labels: Labels, out: np.ndarray) -> Expert:
    """Return a linear function of the rows, fitted to the labeled ones alone."""
    assert isinstance(plain, RowsKernel)
    return _of_labels(plain, labels, out, [plain.linear], _LINEAR_RIDGES, (0, _USUAL_LINEAR_RIDGE))


def _by_kernel(plain: PlainKernel, labels: Labels, out: np.ndarray) -> Expert:
    """Return the kernel function of the labeled rows that finds left-out labels best."""
    kernels = plain.kernels
    return _of_labels(plain, labels, out, kernels, _KERNEL_RIDGES, (len(kernels) // 4, _USUAL_KERNEL_RIDGE))


def _of_labels(
    plain: PlainKernel,
    labels: Labels,
    out: np.ndarray,
    kernels: list[Block],
    ridges: tuple[float, ...],
    usual: tuple[int, float],
) -> Expert:
    """Return ridge regression on labeled rows, with the kernel and ridge of least log loss, and its discriminants."""
    which, ridge = _chosen(labels.take(labels.some(MOST_SEARCHED)), kernels, ridges, usual)
    kernel = kernels[which]
    some = np.union1d(labels.some(MOST_LABELED), out)
    used = labels.take(some)
    gram = np.array(kernel(used.rows, used.rows), np.float64)
    gram[np.diag_indices_from(gram)] += ridge
    inverse = inverse_of_kernel(gram)
    dual = inverse @ used.targets
    of_used = used.targets - dual / inverse.diagonal()[:, None]
    scores = _expanded(plain, used.rows, dual, kernel)
    found = fit_discriminant(of_used, used.index, np.ones(len(used.rows)))
    if found is not None:
        scores, of_used = scores @ found.matrix + found.shift, found.crossed
    left_out = scores[labels.rows]
    left_out[some] = of_used
    return Expert(scores, left_out)


def _chosen(
    labels: Labels, kernels: list[Block], ridges: tuple[float, ...], usual: tuple[int, float]
) -> tuple[int, float]:
    """Return the kernel, by position, and the ridge of least log loss of labels that are left out."""
    telling = labels.telling
    if telling.sum() < _FEWEST_TELLING:
        return usual
    losses = {}
    for which, kernel in enumerate(kernels):
        values, vectors = np.linalg.eigh(np.array(kernel(labels.rows, labels.rows), np.float64))
        projected = vectors.T @ labels.targets
        for ridge in ridges:
            factors = 1.0 / (np.maximum(values, 0.0) + ridge)
            dual = vectors @ (factors[:, None] * projected)
            left_out = labels.targets - dual / np.einsum("ij,j,ij->i", vectors, factors, vectors)[:, None]
            losses[which, ridge] = _loss(left_out[telling], labels.index[telling])
    return min(losses, key=lambda setting: losses[setting])


def _loss(scores: np.ndarray, index: np.ndarray) -> float:
    own = scores[np.arange(len(scores)), index]
    return min(float(np.sum(logsumexp(t * scores, axis=1) - t * own)) for t in _TEMPERATURES)


def scores_from_labeled(plain: PlainKernel, labels: Labels) -> np.ndarray:
    """Return the scores of all rows from ridge regression with the plain kernel on the labeled rows alone."""
    used = labels.take(labels.some(MOST_LABELED))
    gram = np.array(plain.block(used.rows, used.rows), np.float64)
    gram[np.diag_indices_from(gram)] += LABEL_RIDGE
    return _expanded(plain, used.rows, np.linalg.solve(gram, used.targets))


def _expanded(plain: PlainKernel, rows: np.ndarray, dual: np.ndarray, kernel: Block | None = None) -> np.ndarray:
    """Return the kernel between all rows and some, times coefficients of these."""
    block = plain.block if kernel is None else kernel
    scores = np.empty((plain.n_rows, dual.shape[1]))

    def fill(tile: slice) -> None:
        scores[tile] = block(np.arange(tile.start, min(tile.stop, plain.n_rows)), rows) @ dual

    run_all([partial(fill, tile) for tile in tiles(plain.n_rows, _TILE_ROWS)])
    return scores
