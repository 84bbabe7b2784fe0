"""Targets of a ridge fit: labels, and where rows have none, labels spread to them, or clusters of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..._common.labels import Labels, LabelsLike, check_labels
from ..._common.validation import check_weights
from ..._common.words import counted
from ...exceptions import InputError
from ...learning.graphs.blend import temperature_of_confidence
from ...learning.graphs.experts import MOST_LABELED, Expert
from ...learning.graphs.label_spreading import Spread, SpreadLabels, spread_index
from ...learning.graphs.neighbor_graph import NeighborGraph, check_graph
from ...learning.graphs.plain_kernel import PlainKernel
from ...learning.kernels.banks import MemoryPlan
from ...learning.kernels.choice import fit_kernels
from ...learning.kernels.kernel import Kernel
from ..supervision import require_labels
from .ridge_training import (
    RidgeSettings,
    RidgeTrainingSet,
    Targets,
    discriminate,
    label_targets,
    solve_exactly,
    stratified_rows,
)
from .samples import Samples
from .star_training import check_classes, check_n_codewords
from .unlabeled import graph_of_rows, guess_clusters

if TYPE_CHECKING:
    from .star_ridge import StarRidge

# A weight below which unlabeled rows would only cost time, and that of the least sure one of them.
_LEAST_SHARE, _LEAST_TRUST = 0.05, 1e-3


def weighted_labels(
    hasher: StarRidge, y: LabelsLike, sample_weight: ArrayLike | None, n_rows: int
) -> tuple[Labels, np.ndarray]:
    """Return labels over the classes that have a row of positive weight, and the weights."""
    given, weights = check_labels(y, n_rows), check_weights(sample_weight, n_rows)
    if not given.labeled.any() and hasher.unlabeled == "graph":
        if y is not None and hasher.n_codewords is None:
            raise InputError(
                "All {n_rows} rows of y are unlabeled, and {parameter} is not set",
                advice="Leave y out to let the fit suggest a number of clusters, set {parameter} to that number, or "
                "label some rows.",
                parameter="n_codewords",
                n_rows=n_rows,
            )
        return replace(given, dtype=np.dtype(np.int64)), weights
    given = require_labels(hasher, y, n_rows, partial=True)
    seen = np.unique(given.index[(weights > 0) & given.labeled])
    if len(seen) == 0:
        raise ValueError("Every labeled row has a sample_weight of zero. Give some labeled row a positive weight.")
    labels = given.among(given.classes[seen])
    check_n_codewords(hasher.n_codewords, len(seen))
    check_classes(labels, hasher.unlabeled)
    return labels, weights


def choose_targets(
    samples: Samples,
    kernels: str | Sequence[Kernel],
    labels: Labels,
    weights: np.ndarray,
    settings: RidgeSettings,
    graph: NeighborGraph | None,
    spread: SpreadLabels | None,
    seed: int,
) -> tuple[Labels, Targets]:
    """Return the labels and the targets of all rows; without any label, clusters are the classes."""
    if graph is not None:
        check_graph(graph, len(samples))
    known = None if spread is None else _spread_of(spread, labels)
    if labels.labeled.any():
        return labels, row_targets(samples, kernels, labels, weights, settings, graph, known, seed)
    targets = cluster_targets(samples, kernels, weights, settings, graph, seed)
    return replace(labels, classes=np.arange(targets.index.max() + 1)), targets


def _spread_of(spread: SpreadLabels, labels: Labels) -> Spread:
    """Return what was spread from these labels, and refuse what was spread from others."""
    known = labels.classes.tolist()
    if len(spread.labels) != labels.n_rows or spread.classes.tolist() != known:
        raise ValueError(
            f"What was spread has {len(spread.labels):,} rows of the classes {spread.classes.tolist()}; X has "
            f"{labels.n_rows:,} rows, labels name {known}. Spread the labels of this fit to the rows of this fit."
        )
    if wrong := int(np.sum(spread.spread.index[labels.labeled] != labels.index[labels.labeled])):
        raise ValueError(
            f"{counted(wrong, 'row')} of y had another label when labels were spread. Spread the labels of this fit."
        )
    return spread.spread


def row_targets(
    samples: Samples,
    kernels: str | Sequence[Kernel],
    labels: Labels,
    weights: np.ndarray,
    settings: RidgeSettings,
    graph: NeighborGraph | None,
    known: Spread | None,
    seed: int,
) -> Targets:
    """Return the class and the ridge of every row; unlabeled rows have spread labels, or none if they are left out."""
    rows, n_classes = np.flatnonzero(weights > 0), len(labels.classes)
    given = labels.index[rows]
    alone = label_targets(labels, weights)
    if settings.unlabeled == "ignore" or np.all(given >= 0) or n_classes < 2:
        return alone
    if known is None:
        plan = settings.memory_plan
        plain = _plain_kernel(samples, kernels, rows, plan)
        graph = graph_of_rows(plain, graph, rows, len(samples))
        further = _learned_from_labels(samples, kernels, alone, n_classes, rows, plan, seed)
        spread = spread_index(plain, graph, given, n_classes, further=further)
    else:
        spread = known.take(rows)
    if spread.graph_share < _LEAST_SHARE:
        return replace(alone, note=f"{alone.note}: {spread.note}")
    index = np.full(len(weights), -1)
    index[rows] = spread.index
    unlabeled = given < 0
    trust = np.where(unlabeled, np.maximum(_LEAST_TRUST, spread.trust), 1.0)
    ridge_scale = np.ones(len(weights))
    ridge_scale[rows] = 1.0 / (trust * weights[rows])
    expected = float(spread.confidences[unlabeled].mean())

    def temperature_of(scores: np.ndarray) -> float:
        return temperature_of_confidence(scores[unlabeled], expected)

    return Targets(index, ridge_scale, spread.note, labels.labeled, temperature_of, spread)


def _learned_from_labels(
    samples: Samples,
    kernels: str | Sequence[Kernel],
    labels: Targets,
    n_classes: int,
    rows: np.ndarray,
    plan: MemoryPlan,
    seed: int,
) -> Expert:
    """Return what the fit to labeled rows alone says of all rows, and of the labeled ones without their own label."""
    labeled = labels.rows
    some = labeled[stratified_rows(labels.index[labeled], MOST_LABELED, seed)]
    training = RidgeTrainingSet.take(samples, kernels, labels.only(some), n_classes)
    solution = discriminate(training, solve_exactly(training, plan, seed))
    expansion = solution.expansion(samples, training, some)
    scores = expansion.scores(samples.queries(rows)).astype(np.float64)
    left_out = scores[np.searchsorted(rows, labeled)]
    left_out[np.searchsorted(labeled, some)] = solution.scores
    return Expert(scores, left_out)


def cluster_targets(
    samples: Samples,
    kernels: str | Sequence[Kernel],
    weights: np.ndarray,
    settings: RidgeSettings,
    graph: NeighborGraph | None,
    seed: int,
) -> Targets:
    """Return clusters of the graph as the classes of rows without any label."""
    rows = np.flatnonzero(weights > 0)
    plain = _plain_kernel(samples, kernels, rows, settings.memory_plan)
    guess = guess_clusters(plain, graph_of_rows(plain, graph, rows, len(samples)), settings.n_codewords, seed)
    index = np.full(len(weights), -1)
    index[rows] = guess.index
    ridge_scale = 1.0 / np.where(weights > 0, weights, 1.0)
    return Targets(index, ridge_scale, guess.note, np.zeros(len(weights), dtype=bool))


def _plain_kernel(samples: Samples, kernels: str | Sequence[Kernel], rows: np.ndarray, plan: MemoryPlan) -> PlainKernel:
    chosen = samples if len(rows) == len(samples) else samples.take(rows)
    known = [] if isinstance(kernels, str) else list(kernels)
    return chosen.plain_kernel(known, lambda: chosen.bank(fit_kernels(known, chosen.values), plan))
