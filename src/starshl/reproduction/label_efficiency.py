"""How accuracy on unlabeled rows grows with the number of labels per class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import check_integer
from ..evaluation.reports.document import Chart, Runs, line_over

# Gets rows, labels (-1 where unknown) and a seed; returns the class of every row.
Learner: TypeAlias = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


@dataclass(frozen=True, slots=True)
class LabelEfficiency:
    """Accuracies of some learners on the unlabeled rows of one data set.

    ``accuracies[learner][k]`` lists one accuracy per draw of ``labels_per_class[k]`` labels.
    """

    title: str
    n_rows: int
    labels_per_class: tuple[int, ...]
    accuracies: Mapping[str, tuple[tuple[float, ...], ...]]


def measure_label_efficiency(
    X: ArrayLike,
    y: ArrayLike,
    learners: Mapping[str, Learner],
    *,
    title: str,
    labels_per_class: Sequence[int] = (1, 5, 20),
    n_draws: int = 3,
    seed: int = 0,
) -> LabelEfficiency:
    """Hide all labels but a few, let every learner find the hidden ones, and count how many it gets right.

    ``y`` holds class numbers from 0, because a learner sees -1 where a label is hidden.
    In one draw all learners see the same labels, and more labels per class include the fewer ones.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> always_zero = lambda X, y, seed: np.zeros(len(X), dtype=int)
    >>> curve = measure_label_efficiency(X, y, {"always zero": always_zero}, title="digits", n_draws=1)
    >>> [round(values[0], 2) for values in curve.accuracies["always zero"]]
    [0.1, 0.1, 0.1]
    """
    X, y = np.asarray(X), np.asarray(y)
    accuracies: dict[str, list[list[float]]] = {name: [[] for _ in labels_per_class] for name in learners}
    for draw in range(check_integer(n_draws, "n_draws", low=1)):
        for place, n_labels in enumerate(labels_per_class):
            known = draw_labels(y, n_labels, np.random.default_rng([seed, draw]))
            hidden = known < 0
            for name, learner in learners.items():
                found = learner(X, known, draw)
                accuracies[name][place].append(float(np.mean(found[hidden] == y[hidden])))
    kept = {name: tuple(map(tuple, lists)) for name, lists in accuracies.items()}
    return LabelEfficiency(title, len(X), tuple(labels_per_class), kept)


def draw_labels(y: np.ndarray, n_per_class: int, rng: np.random.Generator) -> np.ndarray:
    """Return y with ``n_per_class`` random labels of every class, -1 elsewhere; y holds class numbers from 0."""
    if y.dtype.kind not in "iu" or y.min(initial=0) < 0:
        raise ValueError(
            f"y holds {y.dtype} labels, {np.unique(y)[:3].tolist()} among them; they must be whole numbers from 0, "
            "because -1 stands for an unknown label. Number the classes: np.unique(y, return_inverse=True)[1]."
        )
    order = rng.permutation(len(y))
    known = np.full(len(y), -1, dtype=np.int64)
    for label, n_rows in zip(*np.unique(y, return_counts=True), strict=True):
        if n_rows <= n_per_class:
            raise ValueError(
                f"Class {label} has {n_rows} rows, but {n_per_class} labels per class should leave some rows "
                "unlabeled. Take more rows or fewer labels."
            )
        known[order[y[order] == label][:n_per_class]] = label
    return known


def label_efficiency_chart(curve: LabelEfficiency, emphasized: str = "") -> Chart:
    """Return accuracy on the unlabeled rows over labels per class."""
    ticks = tuple(float(n) for n in curve.labels_per_class)
    lines = (
        line_over(name, zip(ticks, draws, strict=True), emphasized=name == emphasized)
        for name, draws in _by_draw(curve).items()
    )
    series = tuple(line for line in lines if line is not None)
    return Chart(
        curve.title, "labels per class", "accuracy on unlabeled rows", series, ticks=ticks, log_x=len(ticks) > 1
    )


def _by_draw(curve: LabelEfficiency) -> dict[str, list[Runs]]:
    """Return draw -> accuracy of each learner, for each number of labels."""
    return {name: [dict(enumerate(draws)) for draws in lists] for name, lists in curve.accuracies.items()}
