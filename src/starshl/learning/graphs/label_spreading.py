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
from ..._common.threads import single_threaded_blas, using_threads
from ..._common.validation import SamplesLike, check_n_jobs
from ..._common.words import counted
from .blend import Blend, blend
from .experts import Expert, Labels, read_labels
from .neighbor_graph import NeighborGraph, check_graph, mean_kernel, read_rows
from .plain_kernel import GivenKernel, PlainKernel, RowsKernel, share_kernel

MOST_JUDGES = 4_000  # rows that judge all others again; twice as many take eight times as long
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

    Four experts give every row a class: the graph of nearest neighbors, all other rows after the graph has spoken, and
    a linear and a kernel function of the labeled rows alone. Given labels that each of them has left out tell how much
    to believe it.

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
    return SpreadLabels(
        labels=labels.classes[spread.index].astype(labels.dtype),
        confidences=spread.confidences,
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
    probabilities : array of shape (n_rows, n_classes); given labels are certain
    left_out : array of shape (n_labeled, n_classes)
        Probabilities of labeled rows, in rising order, without their own label. Of very many labels, only some are left
        out.
    on_graph : array of shape (n_rows, n_classes), probabilities by the graph alone
    graph_share : the weight of the experts that unlabeled rows tell something, from 0 to 1
    agreement : how much neighbors agree beyond chance, 1 at most
    note : one line that says what was chosen and why
    """

    index: np.ndarray
    probabilities: np.ndarray
    left_out: np.ndarray
    on_graph: np.ndarray
    graph_share: float
    agreement: float
    note: str

    @property
    def confidences(self) -> np.ndarray:
        """The probability of each row's class; 1 for given labels."""
        return np.asarray(self.probabilities[np.arange(len(self.index)), self.index])

    @property
    def trust(self) -> np.ndarray:
        """The weight of a spread label in fits, where a given one has 1.

        It grows with the square of the confidence. What functions of the labeled rows alone have found counts nothing:
        a fit to the labels knows it already, and would only repeat their mistakes.
        """
        return np.asarray(self.graph_share * self.confidences**2)


def spread_index(
    plain: PlainKernel,
    graph: NeighborGraph,
    index: np.ndarray,
    n_classes: int,
    shares: np.ndarray | None = None,
    n_judges: int = MOST_JUDGES,
    by_kernel: Expert | None = None,
) -> Spread:
    """Return class indices for all rows from those given, -1 for none.

    For ``n_judges`` and ``by_kernel`` see :func:`~starshl.learning.graphs.experts.read_labels`.
    """
    labels = Labels.of(index, n_classes)
    if n_classes == 1 or len(labels.rows) == len(index):
        return _nothing_to_spread(index, n_classes)
    share_kernel(plain, graph)
    experts, out = read_labels(plain, graph, labels, n_judges, by_kernel)
    with single_threaded_blas():
        blended = blend(experts, graph, labels, out)
    logits = blended.logits if shares is None else shift_to_shares(blended.logits, shares)
    probabilities = softmax(logits, axis=1)
    probabilities[labels.rows] = np.eye(n_classes)[labels.index]
    note = _note(graph, labels, blended, len(out))
    return Spread(
        probabilities.argmax(axis=1),
        probabilities,
        blended.left_out,
        blended.on_graph,
        blended.graph_share,
        blended.agreement,
        note,
    )


def _nothing_to_spread(index: np.ndarray, n_classes: int) -> Spread:
    labeled = index >= 0
    index = np.where(labeled, index, 0)
    note = "every row has a label" if n_classes > 1 else "there is only one class, and every row got it"
    certain = np.eye(n_classes)[index]
    return Spread(index, certain, certain[labeled], certain, 1.0, 1.0, note)


def _note(graph: NeighborGraph, labels: Labels, blended: Blend, n_out: int) -> str:
    neighbors, share = counted(graph.n_neighbors, "neighbor"), blended.graph_share
    unreached = int(np.sum(~np.isin(graph.components, graph.components[labels.rows])))
    note = (
        f"spread {counted(len(labels.rows), 'label')} to {counted(graph.n_rows - len(labels.rows), 'row')}: "
        f"{share:.0%} by the graph of {neighbors} each and {1 - share:.0%} by functions of labeled rows alone, "
        f"weighed by {counted(n_out, 'label')}, each left out in turn"
    )
    return f"{note}; {counted(unreached, 'row')} not connected to a label" if unreached else note


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
