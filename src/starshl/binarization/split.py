"""Rows held out as queries, and the rows that they search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_random_state

from .._types import LabelsLike, Seed
from .._validation import as_label_array, check_integer, check_labels
from .._words import counted

__all__ = ["N_NEAREST", "N_SHORTLIST", "Split", "hold_out"]

#: Recall: how many of the 10 nearest vectors are among the first 100 found.
N_NEAREST, N_SHORTLIST = 10, 100
_MOST_QUERIES = 1000  # a share then has a standard error of at most .016


@dataclass(frozen=True, slots=True)
class Split:
    """Queries and items as row numbers of X; labels as given, and as indices that are -1 without a label."""

    X: np.ndarray
    labels: np.ndarray | None
    label_index: np.ndarray
    query: np.ndarray
    base: np.ndarray

    @property
    def queries(self) -> np.ndarray:
        return self.X[self.query]

    @property
    def items(self) -> np.ndarray:
        return self.X[self.base]

    @property
    def item_labels(self) -> np.ndarray | None:
        return None if self.labels is None else self.labels[self.base]

    @property
    def has_recall(self) -> bool:
        return len(self.base) > N_SHORTLIST

    @property
    def has_labels(self) -> bool:
        return bool((self.label_index >= 0).any())

    @property
    def labeled(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Which queries and which items have labels; None if precision cannot be measured."""
        asked, known = self.label_index[self.query] >= 0, self.label_index[self.base] >= 0
        return (asked, known) if asked.any() and known.sum() >= N_NEAREST else None

    def precision(self, found: np.ndarray) -> float:
        """Return the share of right items among those found for the labeled queries; all of them have labels."""
        asked = self.query[self.label_index[self.query] >= 0]
        right = self.label_index[self.base][found] == self.label_index[asked][:, None]
        return float(np.mean(right))

    def precision_ceiling(self) -> float | None:
        """Return the precision of a ranking that puts every labeled item of the query's class first."""
        if self.labeled is None:
            return None
        asked, known = self.labeled
        n_of_class = np.bincount(self.label_index[self.base][known], minlength=self.label_index.max() + 1)
        return float(np.mean(np.minimum(n_of_class[self.label_index[self.query][asked]], N_NEAREST) / N_NEAREST))


def hold_out(X: ArrayLike, y: LabelsLike, n_queries: int | None, random_state: Seed) -> Split:
    """Draw the queries: a tenth of the rows, at most 1,000, by default."""
    if issparse(X):
        raise TypeError(
            "X is a sparse matrix; codes are compared with dense vectors. Reduce it first, for example with "
            "sklearn.decomposition.TruncatedSVD, or convert it with X.toarray() if it fits in memory."
        )
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise ValueError(f"X has {rows.ndim} dimension(s); it must have two, with one row per item. Reshape it.")
    _refuse_gaps(rows)
    if len(rows) <= N_NEAREST:
        raise ValueError(
            f"There are {len(rows)} rows; comparing codes with vectors needs at least {N_NEAREST + 1}: one to hold "
            f"out, and its {N_NEAREST} nearest neighbors. Give more rows, or fit a hasher and fill a collection "
            "yourself."
        )
    if n_queries is None:
        n_queries = max(1, min(_MOST_QUERIES, len(rows) // 10))
    n_queries = check_integer(n_queries, "n_queries", low=1, high=len(rows) - N_NEAREST)
    order = check_random_state(random_state).permutation(len(rows))
    labels = None if y is None else as_label_array(y)
    label_index = np.full(len(rows), -1) if labels is None else check_labels(labels, len(rows)).index
    return Split(rows, labels, label_index, order[:n_queries], order[n_queries:])


def _refuse_gaps(rows: np.ndarray) -> None:
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"X holds values of type {rows.dtype}; vectors must be numbers. Encode other columns first.")
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(
            f"X has NaN or infinite values in {counted(int(bad.sum()), 'row')}, the first in row {int(bad.argmax())}. "
            "Fill them in or leave these rows out: vectors with gaps have no distances to compare codes with."
        )
