"""Labels of few rows spread to all: over the neighbor graph, then checked row by row with a plain kernel.

If the shares of the classes are known, scores are shifted so that each class gets its share of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from ..._common.labels import LabelsLike, check_labels
from ..._common.threads import using_threads
from ..._common.validation import SamplesLike, check_n_jobs
from ..._common.words import counted
from .diffusion import graph_scores, scores_without_own_label
from .neighbor_graph import NeighborGraph, check_graph, mean_kernel, read_rows
from .plain_ridge import (
    LARGEST_EXACT,
    GivenKernel,
    PlainKernel,
    RowsKernel,
    labeled_scores_without_own,
    leave_one_out,
    sampled_scores,
    scores_from_labeled,
    share_kernel,
    what_judges,
)
from .trust import (
    LabelEvidence,
    describe_trust,
    edge_agreement,
    is_trusted,
    labels_decide,
    preference_for_labels,
    pseudo_label_ridge,
)

_N_STEPS = 200  # at most; it stops once shares are met to a thousandth
_SHARPNESS = 8.0  # of the soft assignment, in typical leads of the best class over the second


@dataclass(frozen=True, slots=True)
class SpreadLabels:
    """What :func:`spread_labels` returns.

    Parameters
    ----------
    labels : array of shape (n_rows,), given labels where there are any
    confidences : array of shape (n_rows,)
        Estimated probability that the label is right; 1 for given labels.
    probabilities : array of shape (n_rows, n_classes), in the order of ``classes``
    classes : array of shape (n_classes,)
    agreement : float
        How much more often than by chance neighbors share a label, at most 1. Below about .6, unlabeled rows can hardly
        help.
    graph : the NeighborGraph, for the next call
    note : one line that says what was chosen and why
    """

    labels: np.ndarray
    confidences: np.ndarray
    probabilities: np.ndarray
    classes: np.ndarray
    agreement: float
    graph: NeighborGraph
    note: str


def spread_labels(
    X: SamplesLike | None,
    y: LabelsLike,
    *,
    graph: NeighborGraph | None = None,
    kernel: ArrayLike | None = None,
    class_shares: Mapping[Any, float] | ArrayLike | None = None,
    n_jobs: int | None = None,
) -> SpreadLabels:
    """Return a label and a confidence for every row, from the labels of a few.

    Labels spread over the graph of nearest neighbors. Then all other rows judge each unlabeled row again with a plain
    kernel, in which spread labels count less where neighbors disagree.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        All rows, labeled or not. None if ``kernel`` is given.
    y : array of shape (n_rows,)
        Labels; to mark a row as unlabeled, use -1 among numbers, NaN, None or empty text.
    graph : NeighborGraph, default=None
        The graph of these rows, if you have it. With new labels on the same graph, this takes a fraction of the time.
    kernel : array of shape (n_rows, n_rows) or (n_kernels, n_rows, n_rows), default=None
        Kernel values between all rows, for samples that are not vectors.
    class_shares : mapping from class to share, or array in the order of the classes, default=None
        Shares of the classes among all rows, if you know them. They help where classes are unbalanced.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> spread_labels(X, ["left", "", "", "", "", "right"]).labels.tolist()
    ['left', 'left', 'left', 'right', 'right', 'right']
    """
    with using_threads(check_n_jobs(n_jobs)):
        plain, graph = _plain_and_graph(X, kernel, graph)
        labels = check_labels(y, graph.n_rows)
        if not labels.labeled.any():
            raise ValueError("No row has a label, so there is nothing to spread. Label at least one row of each class.")
        shares = None if class_shares is None else check_class_shares(class_shares, labels.classes)
        spread = spread_index(plain, graph, labels.index, len(labels.classes), shares)
    confidences = spread.probabilities[np.arange(graph.n_rows), spread.index]
    return SpreadLabels(
        labels=labels.classes[spread.index].astype(labels.dtype),
        confidences=np.where(labels.labeled, 1.0, confidences),
        probabilities=spread.probabilities,
        classes=labels.classes,
        agreement=spread.agreement,
        graph=graph,
        note=spread.note,
    )


def _plain_and_graph(
    X: SamplesLike | None, kernel: ArrayLike | None, graph: NeighborGraph | None
) -> tuple[PlainKernel, NeighborGraph]:
    if (X is None) == (kernel is None):
        given = "neither X nor a kernel" if X is None else "both X and a kernel"
        raise ValueError(f"There is {given}. Give the rows as X, or X=None and a kernel between all samples.")
    if kernel is not None:
        mean = mean_kernel(kernel)
        graph = NeighborGraph.of_kernel(mean) if graph is None else check_graph(graph, len(mean))
        return GivenKernel(mean), graph
    assert X is not None
    rows = read_rows(X)
    graph = NeighborGraph.of_rows(rows) if graph is None else check_graph(graph, rows.shape[0])
    return RowsKernel(rows), graph


@dataclass(frozen=True, slots=True)
class Spread:
    """Class indices spread to all rows.

    Parameters
    ----------
    index : array of shape (n_rows,), the class of every row; given ones are kept
    scores : array of shape (n_rows, n_classes), what the other rows suggest for each row
    probabilities : array of shape (n_rows, n_classes)
    agreement : how much neighbors agree beyond chance, 1 at most
    pseudo_ridge : ridge of pseudo-labeled rows where labeled ones have .1
    note : one line that says what was chosen and why
    evidence : what the given labels say about temperatures of scores; None if there was nothing to spread
    """

    index: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray
    agreement: float
    pseudo_ridge: float
    note: str
    evidence: LabelEvidence | None = None


def spread_index(
    plain: PlainKernel, graph: NeighborGraph, index: np.ndarray, n_classes: int, shares: np.ndarray | None = None
) -> Spread:
    """Return class indices for all rows from those given, -1 for none."""
    labeled = np.flatnonzero(index >= 0)
    if n_classes == 1 or len(labeled) == len(index):
        return _nothing_to_spread(index, n_classes)
    share_kernel(plain, graph)
    targets = np.eye(n_classes)[index[labeled]] - 1.0 / n_classes
    on_graph = graph_scores(graph, labeled, targets)
    unreached = ~np.isin(graph.components, graph.components[labeled])
    if unreached.any():
        on_graph[unreached] = scores_from_labeled(plain, labeled, targets)[unreached]
    pseudo = _assign(on_graph, index, shares)
    agreement = edge_agreement(graph, pseudo)
    ridge, evidence = _ridge_and_evidence(plain, graph, index, targets, on_graph, agreement)
    scores = _scores_of_others(plain, graph, index, pseudo, n_classes, ridge, on_graph)
    final = scores if shares is None else shift_to_shares(scores, shares)
    probabilities = softmax(evidence.temperature(scores) * final, axis=1)
    probabilities[labeled] = np.eye(n_classes)[index[labeled]]
    note = _note(graph, len(labeled), agreement, ridge, int(unreached.sum()))
    return Spread(_assign(final, index, None), final, probabilities, agreement, ridge, note, evidence)


def _ridge_and_evidence(
    plain: PlainKernel,
    graph: NeighborGraph,
    index: np.ndarray,
    targets: np.ndarray,
    on_graph: np.ndarray,
    agreement: float,
) -> tuple[float, LabelEvidence]:
    """Return the ridge of pseudo-labels, and what given labels that are left out say about temperatures."""
    labeled = np.flatnonzero(index >= 0)
    by_labels = labeled_scores_without_own(plain, labeled, targets)
    ridge = pseudo_label_ridge(agreement)
    if not labels_decide(ridge):
        by_graph = scores_without_own_label(graph, labeled, targets)
        both, of_graph, of_labels = np.intersect1d(by_graph[0], by_labels[0], True, return_indices=True)
        classes = index[labeled[both]]
        telling = np.bincount(index[labeled])[classes] > 1  # without its only label, a class can hardly win
        preference = preference_for_labels(
            by_labels[1][of_labels][telling], by_graph[1][of_graph][telling], classes[telling]
        )
        ridge = pseudo_label_ridge(agreement, preference)
    if is_trusted(ridge):
        return ridge, LabelEvidence(index, on_graph, labeled[by_graph[0]], by_graph[1], True)
    reference = scores_from_labeled(plain, labeled, targets)
    return ridge, LabelEvidence(index, reference, labeled[by_labels[0]], by_labels[1], False)


def _nothing_to_spread(index: np.ndarray, n_classes: int) -> Spread:
    index = np.where(index >= 0, index, 0)
    certain = np.eye(n_classes)[index]
    note = "every row has a label" if n_classes > 1 else "there is only one class, and every row got it"
    return Spread(index, certain, certain, 1.0, pseudo_label_ridge(1.0), note)


def _assign(scores: np.ndarray, index: np.ndarray, shares: np.ndarray | None) -> np.ndarray:
    scores = scores if shares is None else shift_to_shares(scores, shares)
    return np.where(index >= 0, index, scores.argmax(axis=1))


def _scores_of_others(
    plain: PlainKernel,
    graph: NeighborGraph,
    index: np.ndarray,
    pseudo: np.ndarray,
    n_classes: int,
    ridge: float,
    on_graph: np.ndarray,
) -> np.ndarray:
    """Return what all others say of each row with the plain kernel; on a sample of them if there are too many."""
    labeled = np.flatnonzero(index >= 0)
    targets = np.eye(n_classes)[pseudo] - 1.0 / n_classes
    if plain.n_rows <= LARGEST_EXACT:
        return leave_one_out(plain, graph, labeled, targets, ridge)
    return sampled_scores(plain, labeled, targets, ridge, on_graph)


def _note(graph: NeighborGraph, n_labeled: int, agreement: float, ridge: float, n_unreached: int) -> str:
    because = f"neighbors agree on the spread labels to {agreement:.2f} (0 is chance, 1 always)"
    if ridge > pseudo_label_ridge(agreement):
        because += ", but the given labels alone find a label that is left out more often than the graph does"
    note = (
        f"spread {counted(n_labeled, 'label')} to {counted(graph.n_rows - n_labeled, 'row')} over "
        f"{counted(graph.n_neighbors, 'neighbor')} each; "
        f"{because}, so {describe_trust(ridge)} (ridge {ridge:g}, labeled rows 0.1)"
    )
    if n_unreached:
        note += f"; {n_unreached:,} rows are not connected to a label and follow the plain kernel"
    return note + what_judges(graph.n_rows, ridge)


def check_class_shares(class_shares: Mapping[Any, float] | ArrayLike, classes: np.ndarray) -> np.ndarray:
    """Return one positive share per class, in the order of the classes, summing to one."""
    known = classes.tolist()
    if isinstance(class_shares, Mapping):
        if class_shares.keys() != set(known):
            raise ValueError(
                f"class_shares names the classes {sorted(class_shares, key=str)}; the labels name {known}. "
                "Give one share for each labeled class."
            )
        values = np.array([class_shares[label] for label in known], dtype=np.float64)
    else:
        values = np.asarray(class_shares, dtype=np.float64)
    if values.shape != (len(known),):
        raise ValueError(
            f"class_shares has shape {values.shape}; there are {len(known)} labeled classes, so it must be "
            f"({len(known)},), in the order {known}, or a mapping from class to share."
        )
    if not np.isfinite(values).all() or np.any(values <= 0):
        raise ValueError("class_shares has entries that are not positive numbers; every class needs a share above 0.")
    return values / values.sum()


def shift_to_shares(scores: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return scores + b with one number b per class, such that classes win about their shares of the rows.

    b solves mean_n softmax(T (scores_n + b)) = shares by alternate scaling (Sinkhorn), with T so large that most rows
    belong to one class.

    Examples
    --------
    >>> scores = np.array([[0.0, 0.1], [0.0, 0.2], [0.0, 0.3], [0.0, 0.4]])
    >>> shift_to_shares(scores, np.array([0.5, 0.5])).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    best_two = np.partition(scores, -2, axis=1)[:, -2:]
    lead = float(np.median(best_two[:, 1] - best_two[:, 0]))
    sharpness = _SHARPNESS / (lead or 1.0)
    shift = np.zeros(scores.shape[1])
    for _ in range(_N_STEPS):
        values = sharpness * (scores + shift)
        values -= values.max(axis=1, keepdims=True)
        np.exp(values, out=values)
        values /= values.sum(axis=1, keepdims=True)
        step = np.log(shares / np.maximum(values.mean(axis=0), 1e-12)) / sharpness
        shift += step
        if np.abs(step).max() * sharpness < 1e-3:
            break
    return scores + (shift - shift.mean())
