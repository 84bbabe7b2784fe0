"""Targets of a ridge fit when some rows have no label: labels spread over the neighbor graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from .._validation import PartialLabels
from ..graphs import NeighborGraph, Spread, spread_index
from ..graphs.diffusion import graph_scores
from ..graphs.neighbor_graph import mean_kernel
from ..graphs.plain_ridge import LABEL_RIDGE, KernelPlain, PlainKernel, RowsPlain
from ..graphs.trust import leave_one_out_on_graph, spread_temperature
from ..kernels import Kernel, compute_grams, fit_kernels
from .ridge_training import Targets, label_targets
from .samples import Precomputed, Samples, Vectors

__all__ = ["graph_of_samples", "row_targets"]


def row_targets(
    samples: Samples,
    kernels: str | Sequence[Kernel],
    labels: PartialLabels,
    weights: np.ndarray,
    *,
    unlabeled: str,
    graph: NeighborGraph | None,
) -> Targets:
    """Return the class and the ridge of every row; unlabeled rows have spread labels, or none if they are ignored."""
    if graph is not None:
        graph.require_rows(len(samples))
    present = weights > 0
    is_complete = bool(np.all(labels.labeled[present]))
    if unlabeled == "ignore" or is_complete or len(labels.classes) < 2:
        return label_targets(labels, weights)
    rows = np.flatnonzero(present)
    if len(rows) < len(samples):
        samples = samples.take(rows)
        graph = None if graph is None else NeighborGraph(graph.weights[rows][:, rows], graph.n_neighbors)
    plain, graph = graph_of_samples(samples, kernels, graph)
    given = labels.index[rows]
    spread = spread_index(plain, graph, given, len(labels.classes))
    index = np.full(len(weights), -1)
    index[rows] = spread.index
    ridge_scale = np.ones(len(weights))
    ridge_scale[rows] = np.where(given >= 0, 1.0, spread.pseudo_ridge / LABEL_RIDGE) / weights[rows]
    return Targets(index, ridge_scale, spread.note, labels.labeled, partial(_temperature, graph, given, spread))


def graph_of_samples(
    samples: Samples, kernels: str | Sequence[Kernel], graph: NeighborGraph | None
) -> tuple[PlainKernel, NeighborGraph]:
    """Return the plain kernel of the samples and their graph: Gaussian for vectors, the mean kernel for all others."""
    if isinstance(samples, Vectors):
        rows = samples.values
        return RowsPlain(rows), NeighborGraph.of_rows(rows) if graph is None else graph
    if isinstance(samples, Precomputed):
        grams = samples.values
    else:
        assert not isinstance(kernels, str)
        grams = compute_grams(fit_kernels(kernels, samples.values), samples.values)
    mean = mean_kernel(grams)
    return KernelPlain(mean), NeighborGraph.of_kernel(mean) if graph is None else graph


def _temperature(graph: NeighborGraph, given: np.ndarray, spread: Spread, scores: np.ndarray) -> float:
    """Return the temperature of leave-one-out scores: spread labels cannot tell how often they are right."""
    labeled = np.flatnonzero(given >= 0)
    n_classes = scores.shape[1]
    targets = np.eye(n_classes)[given[labeled]] - 1.0 / n_classes
    without_label = leave_one_out_on_graph(graph, labeled, targets)
    return spread_temperature(scores, given, graph_scores(graph, labeled, targets), without_label, spread.pseudo_ridge)
