"""Search by the vectors themselves: among all of them, or first among those of the class that a classifier gives."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from .._common.threads import single_threaded_blas, tiles
from ..learning.linalg import squared_distances

# A block of distances stays below 100 MB for 250,000 items.
_QUERIES_PER_BLOCK = 100
_MOST_ITERATIONS = 200
# Strengths of the regularization (C of scikit-learn), each the best one on some of eight data sets.
_STRENGTHS = (0.003, 0.03, 0.3, 1.0)
_MOST_ROWS = 5000  # that choose among them
_ROUNDING = float(np.finfo(np.float32).eps)


class ByVectors:
    """Exact search by Euclidean distance, the reference of all others.

    Products in single precision choose candidates, as many as their rounding errors could confuse with the nearest, and
    distances in double precision order them.
    """

    def __init__(self, X: np.ndarray) -> None:
        self._X = X
        # Centered rows of size 1 neither overflow in single precision nor lose their differences to a large mean.
        self._center = X.mean(axis=0, dtype=np.float64)
        self._unit = float(max(np.abs(X.max(axis=0) - self._center).max(), np.abs(X.min(axis=0) - self._center).max()))
        self._unit = self._unit or 1.0
        self._rows = self._scaled(X)
        self._norms = np.einsum("ij,ij->i", self._rows, self._rows)

    def distances(self, X: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Return squared distances to the rows ``among``."""
        return squared_distances(X.astype(np.float64), self._X[among].astype(np.float64))

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | slice | None = None) -> np.ndarray:
        """Return the positions of the k nearest rows, or of those ``among`` them, shape (n_queries, k)."""
        among = slice(None) if among is None else among
        rows, norms = self._rows[among], self._norms[among]
        # A slice takes no copy of the rows.
        positions = np.arange(len(self._rows))[among]
        longest = float(np.sqrt(norms.max(initial=0.0)))
        found = np.empty((len(X), k), np.int64)
        for block in tiles(len(X), _QUERIES_PER_BLOCK):
            queries = self._scaled(X[block])
            distances = queries @ rows.T
            distances *= -2.0
            distances += norms
            limits = np.partition(distances, k - 1, axis=1)[:, k - 1]
            # Of a sum of products, and of entries that were rounded before; two distances may both be wrong by it.
            error = _ROUNDING * (X.shape[1] + 8) * (np.sqrt(np.einsum("ij,ij->i", queries, queries)) + longest) ** 2
            limits = limits + 2 * error
            for number, query in enumerate(X[block]):
                close = positions[distances[number] <= limits[number]]
                exact = np.square(self._X[close].astype(np.float64) - query).sum(axis=1)
                found[block.start + number] = close[exact.argsort(kind="stable")[:k]]
        return found

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return ((X - self._center) / self._unit).astype(np.float32)


class ByClass:
    """Float search within the class that logistic regression gives a query, then among the other items.

    Parameters
    ----------
    X : array of shape (n_items, n_features)
    classes : array of shape (n_items,)
        Numbers of classes, -1 for an item without one: it gets the predicted one. Only the others are learned from.
    """

    def __init__(self, X: np.ndarray, classes: np.ndarray) -> None:
        known = classes >= 0
        if len(np.unique(classes[known])) < 2:
            raise ValueError("A classifier needs labeled items of two classes or more.")
        scaler = StandardScaler().fit(X[known].astype(np.float64))
        model = _fitted(scaler.transform(X[known].astype(np.float64)).astype(np.float32), classes[known])
        # The scales of the columns become part of the weights.
        self._weights = (model.coef_ / scaler.scale_).T
        self._intercept = model.intercept_ - scaler.mean_ @ self._weights
        self._classes = model.classes_
        of_item = np.where(known, classes, self._predict(X))
        self._order = of_item.argsort(kind="stable")
        self._ends = np.searchsorted(of_item[self._order], np.arange(self._classes.max() + 2))
        self._search = ByVectors(X[self._order])

    @property
    def class_bytes(self) -> int:
        """Bytes of the number of a class, which is kept beside each vector."""
        return np.min_scalar_type(int(self._classes.max())).itemsize

    @property
    def model_bytes(self) -> int:
        """Bytes of the weights."""
        return int(self._weights.nbytes + self._intercept.nbytes)

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the k items found first, or of those ``among`` all items, shape (n_queries, k)."""
        allowed = None if among is None else np.isin(self._order, among)
        predicted = self._predict(X)
        found = np.empty((len(X), k), np.int64)
        for one in np.unique(predicted):
            queries = np.flatnonzero(predicted == one)
            first, last = self._ends[one], self._ends[one + 1]
            inside: np.ndarray | slice = slice(first, last)
            if allowed is not None:
                inside = first + np.flatnonzero(allowed[first:last])
            n_inside = last - first if allowed is None else int(allowed[first:last].sum())
            n_first = min(k, n_inside)
            lists = [self._search.nearest(X[queries], n_first, inside)] if n_first else []
            if n_first < k:
                is_outside = np.ones(len(self._order), bool) if allowed is None else allowed.copy()
                is_outside[first:last] = False
                lists.append(self._search.nearest(X[queries], k - n_first, np.flatnonzero(is_outside)))
            found[queries] = np.hstack(lists)
        return self._order[found]

    def _predict(self, X: np.ndarray) -> np.ndarray:
        scores = X @ self._weights + self._intercept
        # Two classes have one column of weights.
        numbers = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self._classes[numbers]


def _fitted(X: np.ndarray, classes: np.ndarray) -> LogisticRegression:
    """Fit logistic regression; a fifth of the rows chooses how strongly it is regularized."""
    order = np.random.default_rng(0).permutation(len(X))[:_MOST_ROWS]
    tried, learned = np.split(order, [len(order) // 5])
    # On a busy machine, several threads of BLAS wait for each other in every one of many small products.
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        strength = _STRENGTHS[1]
        if len(tried) and len(np.unique(classes[learned])) > 1:
            models = [LogisticRegression(C=C, max_iter=_MOST_ITERATIONS) for C in _STRENGTHS]
            shares = [model.fit(X[learned], classes[learned]).score(X[tried], classes[tried]) for model in models]
            strength = _STRENGTHS[int(np.argmax(shares))]
        return LogisticRegression(C=strength, max_iter=_MOST_ITERATIONS).fit(X, classes)
