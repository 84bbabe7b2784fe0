"""Whether the neighbor graph knows anything about labels that the learned kernels do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graphs import NeighborGraph
from ..graphs.diffusion import scores_without_own_label
from ..graphs.trust import gain_of_graph
from ..kernels import Kernel, MemoryPlan
from ..solvers.leave_one_out import one_hot
from .ridge_training import RidgeTrainingSet, Targets, discriminate, solve_exactly, stratified_rows
from .samples import Samples

__all__ = ["labels_suffice"]

# Chosen by looking at five data sets, which docs/defaults.md names.
_FEWEST_LABELS = 10  # per class, that can tell
_LEAST_GAIN = 1.0  # in standard errors
_COMPARED, _FURTHER = 500, 200  # labels that are left out in turn, and others that they are found by


def labels_suffice(
    samples: Samples,
    kernels: str | Sequence[Kernel],
    labels: Targets,
    n_classes: int,
    graph: NeighborGraph,
    rows: np.ndarray,
    plan: MemoryPlan,
    seed: int,
) -> bool:
    """Tell whether given labels, each left out in turn, are found as well without the graph as with it.

    Parameters
    ----------
    labels : the targets of labeled rows alone
    graph, rows : the graph, and where its rows stand among the samples
    """
    labeled = labels.rows
    index = labels.index[labeled]
    if len(labeled) < _FEWEST_LABELS * n_classes:
        return False
    targets = one_hot(index, n_classes) - 1.0 / n_classes
    held_out, on_graph = scores_without_own_label(graph, np.searchsorted(rows, labeled), targets)
    compared = held_out[stratified_rows(index[held_out], _COMPARED, seed)]
    chosen = np.union1d(compared, stratified_rows(index, _FURTHER, seed))
    training = RidgeTrainingSet.take(samples, kernels, labels.only(labeled[chosen]), n_classes)
    alone = discriminate(training, solve_exactly(training, plan, seed)).scores
    both, of_graph, of_labels = np.intersect1d(held_out, chosen, assume_unique=True, return_indices=True)
    return gain_of_graph(alone[of_labels], on_graph[of_graph], index[both]) < _LEAST_GAIN
