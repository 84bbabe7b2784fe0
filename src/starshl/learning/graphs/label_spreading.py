"""Labels of few rows spread to all, by experts that given labels weigh, each left out in turn.

If the shares of the classes are known, scores are shifted so that each class gets its share of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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

FEWEST_TELLING = 20  # labels that must have been left out before they tell how right probabilities are
_LEAST_LIKELY = 1e-12
MOST_JUDGES = 4_000  # rows that judge all others again; twice as many take eight times as long
_N_STEPS = 200  # at most; it stops once shares are met to a thousandth
_SHARPNESS = 8.0  # of the soft assignment, in typical leads of the best class over the second


@dataclass(frozen=True, slots=True)
class Spread:
    """Class indices spread to all rows.

    Parameters
    ----------
    index : array of shape (n_rows,), the class of every row; given ones are kept
    is_given : bool array of shape (n_rows,)
    probabilities : array of shape (n_rows, n_classes); given labels are certain
    left_out : array of shape (n_labeled, n_classes)
        Probabilities of labeled rows, in rising order, without their own label; zero if there was nothing to spread. Of
        very many labels, only some are left out.
    graph_share : the weight of the experts that unlabeled rows tell something, from 0 to 1
    note : one line that says what was chosen and why
    on_graph : array of shape (n_rows, n_classes), probabilities by the graph alone
    agreement : how much neighbors agree beyond chance, 1 at most
    """

    index: np.ndarray
    is_given: np.ndarray
    probabilities: np.ndarray
    left_out: np.ndarray
    graph_share: float
    note: str = ""
    on_graph: np.ndarray | None = None
    agreement: float = 1.0

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

    @property
    def found(self) -> np.ndarray:
        """Whether each given label is found without it; the only label of a class, which cannot be, does not count."""
        given, best = self.index[self.is_given], self.left_out.max(axis=1, initial=0.0)
        telling = (np.bincount(given, minlength=1)[given] > 1) & (best > 0)
        return np.asarray((self.left_out[np.arange(len(given)), given] == best)[telling])

    @property
    def knows_confidence(self) -> bool:
        """Whether enough labels could be left out to tell how right probabilities are."""
        return len(self.found) >= FEWEST_TELLING

    def take(self, rows: np.ndarray) -> Spread:
        """Return what is known of some rows, in rising order."""
        return replace(
            self,
            index=self.index[rows],
            is_given=self.is_given[rows],
            probabilities=self.probabilities[rows],
            left_out=self.left_out[np.isin(np.flatnonzero(self.is_given), rows)],
            on_graph=None,
        )

    def among(self, columns: np.ndarray) -> Spread:
        """Return the spread over some classes, in this order, among which are those of all given labels."""
        likely, left_out = (
            shares[:, columns] / np.maximum(shares[:, columns].sum(axis=1, keepdims=True), _LEAST_LIKELY)
            for shares in (self.probabilities, self.left_out)
        )
        return replace(self, index=likely.argmax(axis=1), probabilities=likely, left_out=left_out, on_graph=None)


@dataclass(frozen=True, slots=True)
class SpreadLabels:
    """What :func:`spread_labels` returns.

    Parameters
    ----------
    labels : array of shape (n_rows,), given labels where there are any
    classes : array of shape (n_classes,)
    spread : the same with indices of classes, and how each expert counts
    graph : the NeighborGraph, for the next call
    """

    labels: np.ndarray
    classes: np.ndarray
    spread: Spread
    graph: NeighborGraph | None = None

    @property
    def confidences(self) -> np.ndarray:
        """Estimated probability that each label is right; 1 for given labels."""
        return self.spread.confidences

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of shape (n_rows, n_classes), in the order of ``classes``."""
        return self.spread.probabilities

    @property
    def accuracy(self) -> float | None:
        """The share of given labels that are found when they are left out, None if too few labels can tell.

        With few labels per class, it is lower than that of other rows, because leaving out a label makes them fewer.
        """
        return float(self.spread.found.mean()) if self.spread.knows_confidence else None

    @property
    def agreement(self) -> float:
        """How much more often than by chance neighbors share a label, at most 1.

        Below about .6, unlabeled rows can hardly help.
        """
        return self.spread.agreement

    @property
    def note(self) -> str:
        """One line that says what was chosen and why."""
        return self.spread.note


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
        if len(labels.classes) == 1 and not labels.labeled.all():
            raise ValueError(
                f"All labels are {labels.classes.tolist()[0]!r}, so every row would get this one, right or wrong. "
                "Label at least one row of another class."
            )
        shares = None
        if class_shares is not None:
            shares = check_class_shares(class_shares, labels.classes)
            _check_counts(labels.classes, labels.class_counts, shares * graph.n_rows)
        spread = spread_index(plain, graph, labels.index, len(labels.classes), shares)
    return SpreadLabels(labels.classes[spread.index].astype(labels.dtype), labels.classes, spread, graph)


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


def spread_index(
    plain: PlainKernel,
    graph: NeighborGraph,
    index: np.ndarray,
    n_classes: int,
    shares: np.ndarray | None = None,
    n_judges: int = MOST_JUDGES,
    further: Expert | None = None,
) -> Spread:
    """Return class indices for all rows from those given, -1 for none.

    For ``n_judges`` and ``further`` see :func:`~starshl.learning.graphs.experts.read_labels`.
    """
    labels = Labels.of(index, n_classes)
    if n_classes == 1 or len(labels.rows) == len(index):
        return _nothing_to_spread(index, n_classes)
    share_kernel(plain, graph)
    experts, out = read_labels(plain, graph, labels, n_judges, further)
    with single_threaded_blas():
        blended = blend(experts, graph, labels, out, shares)
    logits = blended.logits if shares is None else shift_to_shares(blended.logits, shares)
    probabilities = softmax(logits, axis=1)
    probabilities[labels.rows] = np.eye(n_classes)[labels.index]
    return Spread(
        probabilities.argmax(axis=1),
        index >= 0,
        probabilities,
        blended.left_out,
        blended.graph_share,
        _note(graph, labels, blended, len(out)),
        blended.on_graph,
        blended.agreement,
    )


def _nothing_to_spread(index: np.ndarray, n_classes: int) -> Spread:
    labeled = index >= 0
    index = np.where(labeled, index, 0)
    note = "every row has a label" if n_classes > 1 else "there is only one class, and every row got it"
    certain = np.eye(n_classes)[index]
    return Spread(index, labeled, certain, np.zeros((int(labeled.sum()), n_classes)), 1.0, note, certain)


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


def _check_counts(classes: np.ndarray, given: np.ndarray, expected: np.ndarray) -> None:
    """Refuse shares of classes that have more labels than the shares leave rows for."""
    contradicting = np.flatnonzero(given > np.ceil(expected))
    if len(contradicting):
        first = contradicting.tolist()[0]
        raise ValueError(
            f"class_shares leaves {expected[first]:.1f} of {expected.sum():.0f} rows for the class "
            f"{classes.tolist()[first]!r}, and {counted(int(given[first]), 'row')} of y have this label. Give shares "
            "among all rows, labeled or not."
        )


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
