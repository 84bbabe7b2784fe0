"""Labels, pairs and triplets, which methods learn from in addition to the rows: checked, or drawn from labels.

Pairs are three arrays ``(first, second, similarity)``: row indices, and +1 for similar, -1 for dissimilar.
Triplets are an array of shape (n_triplets, 3): anchor, a similar row, a dissimilar row. Training rows go with the
class of their labels, and with the posteriors that they have without themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_random_state

from .._common.labels import Labels, LabelsLike, check_labels
from .._common.validation import Rows, Seed, check_integer, check_number
from .._common.warn import warn_caller
from ..exceptions import InputWarning
from ..learning.linalg import nearest_rows

PairsLike: TypeAlias = np.ndarray | Sequence[ArrayLike]
"""What users pass as pairs: an (n_pairs, 3) array, or its three columns."""
_UNLABELED = "-1 among numbers, NaN, None or empty text"
# A handful of rows may well be one of each class; of many rows, some share one.
_ENOUGH_TO_QUESTION, _SHARE_TO_QUESTION = 20, 0.9
_WAY_OUT = "use a method that needs no labels (starshl.hashers.configurations lists what each method needs)"


class Pairs(NamedTuple):
    """Pairs of rows: ``similarity`` is +1 or -1."""

    first: np.ndarray
    second: np.ndarray
    similarity: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows with what is known about their classes.

    Parameters
    ----------
    rows : array or CSR array of shape (n, n_features)
    label : array of shape (n,)
        Class index of the given label, -1 if there is none.
    posteriors : array of shape (n, n_classes)
        The probability of each class by a fit without the row itself: that of such a row as a query.
    """

    rows: Rows
    label: np.ndarray
    posteriors: np.ndarray

    @property
    def own(self) -> np.ndarray:
        """The class index of each row: that of its label, or else the likeliest."""
        return np.where(self.label >= 0, self.label, self.posteriors.argmax(axis=1))


def question_classes(labels: Labels) -> None:
    """Warn if nearly every row has a class of its own: such labels are usually ids of rows."""
    n_rows, n_classes = labels.n_rows, len(labels.classes)
    if n_rows >= _ENOUGH_TO_QUESTION and n_classes > _SHARE_TO_QUESTION * n_rows:
        warn_caller(
            InputWarning(
                "{n_classes:,} classes for {n_rows:,} rows: nearly every row has a class of its own",
                "classes are learned from rows that share a label",
                "If the labels are ids of rows, give the labels of classes, or none.",
                n_classes=n_classes,
                n_rows=n_rows,
            )
        )


def require_labels(
    estimator: BaseEstimator, y: LabelsLike, n_samples: int, *, partial: bool = False, n_classes: int = 1
) -> Labels:
    """Return the labels, or say which methods need none.

    Parameters
    ----------
    estimator : the hasher, for its name
    y : array of shape (n_samples,) or None
    n_samples : int
    partial : bool, default=False
        Accept unlabeled rows as long as some row is labeled.
    n_classes : int, default=1
        The least number of classes the method can learn from.
    """
    name = type(estimator).__name__
    if y is None:
        # The first sentence is the wording scikit-learn's checks look for.
        raise ValueError(f"{name} requires y to be passed, but the target y is None. Pass labels, or {_WAY_OUT}.")
    labels = check_labels(y, n_samples)
    n_unlabeled = int(n_samples - labels.labeled.sum())
    if n_unlabeled == n_samples or (n_unlabeled and not partial):
        wanted = "some labeled rows" if partial else "a label for every row"
        raise ValueError(
            f"y leaves {n_unlabeled} of {n_samples} rows unlabeled ({_UNLABELED}); {name} needs {wanted}. "
            f"Label or drop those rows, or {_WAY_OUT}."
        )
    if len(labels.classes) < n_classes:
        gaps = f" and leaves {n_unlabeled} rows unlabeled ({_UNLABELED})" if n_unlabeled else ""
        raise ValueError(
            f"y holds {len(labels.classes)} class{gaps}; {name} learns from at least {n_classes}. "
            f"Add rows of another class, or {_WAY_OUT}."
        )
    question_classes(labels)
    return labels


def check_pairs(pairs: PairsLike, n_samples: int) -> Pairs:
    """Return pairs given as ``(first, second, similarity)`` or as an (n_pairs, 3) array, checked.

    Pairs of similarity 0 (unknown) are left out.
    """
    try:
        columns = pairs.T if isinstance(pairs, np.ndarray) else pairs
        first, second, similarity = (np.asarray(column) for column in columns)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"pairs is of type {type(pairs).__name__} and does not hold three columns. "
            "Pass (first, second, similarity), three arrays of one length."
        ) from error
    if not (first.ndim == 1 and first.shape == second.shape == similarity.shape):
        raise ValueError(
            f"The columns of pairs have the shapes {first.shape}, {second.shape} and {similarity.shape}; "
            "all must be (n_pairs,)."
        )
    if not np.isin(similarity, (-1, 0, 1)).all():
        raise ValueError(
            "The similarities of pairs must be +1 (similar), -1 (dissimilar) or 0 (ignored); "
            f"one is {np.setdiff1d(similarity, (-1, 0, 1))[0]}."
        )
    first, second = (_check_indices(column, "pairs", n_samples) for column in (first, second))
    if (first == second).any():
        raise ValueError(f"pairs joins row {first[first == second][0]} with itself. Leave such pairs out.")
    known = similarity != 0
    if not known.any():
        raise ValueError("pairs holds no pair of similarity +1 or -1. Give at least one.")
    return Pairs(first[known], second[known], similarity[known].astype(np.int8))


def check_triplets(triplets: ArrayLike, n_samples: int) -> np.ndarray:
    """Return triplets as an int64 array of shape (n_triplets, 3), checked."""
    triplets = np.asarray(triplets)
    if triplets.ndim != 2 or triplets.shape[1] != 3 or len(triplets) == 0:
        raise ValueError(
            f"triplets has shape {triplets.shape}; it must be (n_triplets, 3) with at least one row: "
            "anchor, similar row, dissimilar row."
        )
    triplets = _check_indices(triplets, "triplets", n_samples)
    anchor, similar, dissimilar = triplets.T
    clash = (anchor == similar) | (anchor == dissimilar) | (similar == dissimilar)
    if clash.any():
        raise ValueError(f"triplets repeats a row in {triplets[clash][0].tolist()}; its three rows must differ.")
    return triplets


def _check_indices(indices: np.ndarray, name: str, n_samples: int) -> np.ndarray:
    if indices.dtype.kind not in "iu":
        raise ValueError(f"{name} has row indices of dtype {indices.dtype}; they must be integers.")
    outside = (indices < 0) | (indices >= n_samples)
    if outside.any():
        raise ValueError(
            f"{name} names row {indices[outside][0]}; X has {n_samples} rows, so indices go from 0 to {n_samples - 1}."
        )
    return indices.astype(np.int64)


def pairs_from_labels(
    y: Sequence[Any] | np.ndarray | Labels, n_pairs: int, balance: float = 0.5, random_state: Seed = None
) -> Pairs:
    """Draw pairs of labeled rows: similar if the labels are equal, dissimilar if not.

    Each pair is uniform over all ordered pairs of its kind and never joins a row with itself; pairs are
    drawn independently, so one may come twice. Unlabeled rows take no part. O(n_pairs log n_samples).

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels; -1, NaN, None or empty text marks an unlabeled row.
    n_pairs : int
    balance : float, default=0.5
        The share of similar pairs; ``round(balance * n_pairs)`` of them come first.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    pairs : Pairs of three arrays of shape (n_pairs,)

    Examples
    --------
    >>> first, second, similarity = pairs_from_labels([0, 0, 1, 1, -1], 4, random_state=0)
    >>> similarity.tolist()
    [1, 1, -1, -1]
    """
    n_pairs = check_integer(n_pairs, "n_pairs", low=1)
    balance = check_number(balance, "balance", low=0.0)
    if balance > 1:
        raise ValueError(f"balance is {balance:g}; it is a share of pairs, from 0 to 1.")
    rng = check_random_state(random_state)
    labels = check_labels(y, len(y))
    rows = np.flatnonzero(labels.labeled)[np.argsort(labels.index[labels.labeled], kind="stable")]
    sizes = labels.class_counts
    n_similar = round(balance * n_pairs)
    _refuse_missing_kind(sizes, n_similar, n_pairs - n_similar)
    similar = _similar_positions(sizes, n_similar, rng)
    dissimilar = _dissimilar_positions(sizes, n_pairs - n_similar, rng)
    first, second = np.concatenate([similar, dissimilar], axis=1)
    similarity = np.repeat(np.array([1, -1], np.int8), [n_similar, n_pairs - n_similar])
    return Pairs(rows[first], rows[second], similarity)


def _refuse_missing_kind(sizes: np.ndarray, n_similar: int, n_dissimilar: int) -> None:
    if n_similar and not (sizes > 1).any():
        raise ValueError(
            f"y has {len(sizes)} classes and no two labeled rows of one class, so there is no similar pair. "
            "Label more rows, or pass pairs."
        )
    if n_dissimilar and len(sizes) < 2:
        raise ValueError(
            f"y holds {len(sizes)} class, so there is no dissimilar pair. "
            "Label rows of at least two classes, or pass pairs."
        )


def _similar_positions(sizes: np.ndarray, n_pairs: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw ordered pairs within classes; positions count the rows sorted by class."""
    starts = np.cumsum(sizes) - sizes
    group = _draw(sizes * (sizes - 1), n_pairs, rng)
    offset = rng.randint(0, np.maximum(sizes[group], 1))
    other = rng.randint(0, np.maximum(sizes[group] - 1, 1))
    other += other >= offset
    return np.stack([starts[group] + offset, starts[group] + other])


def _dissimilar_positions(sizes: np.ndarray, n_pairs: int, rng: np.random.RandomState) -> np.ndarray:
    starts = np.cumsum(sizes) - sizes
    others = sizes.sum() - sizes
    group = _draw(sizes * others, n_pairs, rng)
    position = starts[group] + rng.randint(0, np.maximum(sizes[group], 1))
    other = rng.randint(0, np.maximum(others[group], 1))
    other += np.where(other >= starts[group], sizes[group], 0)
    return np.stack([position, other])


def _draw(weights: np.ndarray, size: int, rng: np.random.RandomState) -> np.ndarray:
    if size == 0:
        return np.empty(0, np.int64)
    return np.searchsorted(np.cumsum(weights), rng.randint(0, weights.sum(), size), side="right")


def triplets_from_labels(X: ArrayLike, y: LabelsLike, k_pos: int = 10, k_neg: int = 10) -> np.ndarray:
    """Pair the nearest rows of the same class with the nearest rows of other classes.

    For each labeled row: its ``k_pos`` nearest rows of the same class times its ``k_neg`` nearest rows of
    other classes, Euclidean distance, fewer where a class is smaller. O(n_samples^2 n_features).

    Returns
    -------
    triplets : array of shape (n_triplets, 3)
        Anchor, similar row, dissimilar row; sorted by anchor, then by the distance of the similar row.

    Examples
    --------
    >>> triplets_from_labels([[0.0], [1.0], [3.0]], [7, 7, 8], k_pos=1, k_neg=1).tolist()
    [[0, 1, 2], [1, 0, 2]]
    """
    k_pos = check_integer(k_pos, "k_pos", low=1)
    k_neg = check_integer(k_neg, "k_neg", low=1)
    X = np.asarray(X)
    labels = check_labels(y, len(X))
    index, by_class = labels.index, []
    for group in range(len(labels.classes)):
        inside = np.flatnonzero(index == group)
        outside = np.flatnonzero((index >= 0) & (index != group))
        if len(inside) > 1 and len(outside):
            by_class.append(_triplets_of_class(X, inside, outside, k_pos, k_neg))
    if not by_class:
        raise ValueError(
            f"y holds {len(labels.classes)} classes, but no row has both a row of its own class and one of "
            "another, so there is no triplet. Label more rows, or pass triplets."
        )
    triplets = np.concatenate(by_class)
    return triplets[np.argsort(triplets[:, 0], kind="stable")]


def _triplets_of_class(X: np.ndarray, inside: np.ndarray, outside: np.ndarray, k_pos: int, k_neg: int) -> np.ndarray:
    similar = inside[nearest_rows(X[inside], X[inside], min(k_pos, len(inside) - 1), exclude_self=True)]
    dissimilar = outside[nearest_rows(X[inside], X[outside], min(k_neg, len(outside)))]
    shape = (len(inside), similar.shape[1], dissimilar.shape[1])
    columns = (inside[:, None, None], similar[:, :, None], dissimilar[:, None, :])
    return np.stack([np.broadcast_to(column, shape).ravel() for column in columns], axis=1)


def pairs_or_labels(
    estimator: BaseEstimator,
    pairs: PairsLike | None,
    y: LabelsLike,
    n_samples: int,
    *,
    n_pairs: int,
    random_state: Seed = None,
) -> Pairs:
    """Return the pairs passed to ``fit``, or draw them from its labels (partial labels will do)."""
    if pairs is not None:
        return check_pairs(pairs, n_samples)
    labels = require_labels(estimator, y, n_samples, partial=True, n_classes=2)
    return pairs_from_labels(labels, n_pairs, random_state=random_state)


def require_both_kinds(estimator: BaseEstimator, pairs: Pairs) -> Pairs:
    """Return the pairs if some are similar and some dissimilar."""
    if len(np.unique(pairs.similarity)) < 2:
        kind = "similar" if pairs.similarity[0] > 0 else "dissimilar"
        raise ValueError(
            f"pairs holds only {kind} pairs; {type(estimator).__name__} compares similar with dissimilar ones. Give "
            "both."
        )
    return pairs


def triplets_or_labels(
    estimator: BaseEstimator,
    triplets: ArrayLike | None,
    X: np.ndarray,
    y: LabelsLike,
    *,
    k_pos: int = 10,
    k_neg: int = 10,
) -> np.ndarray:
    """Return the triplets passed to ``fit``, or make them from its labels (partial labels will do)."""
    if triplets is not None:
        return check_triplets(triplets, len(X))
    labels = require_labels(estimator, y, len(X), partial=True, n_classes=2)
    return triplets_from_labels(X, labels, k_pos, k_neg)
