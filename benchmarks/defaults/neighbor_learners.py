"""Two other ways to spread few labels over a graph of neighbors, which StarRidge is compared with."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

_N_NEIGHBORS = 10  # as in Calder et al. 2020, who introduced Poisson learning
_MAX_STEPS = 1000


def spreading_on_neighbors(alpha: float = 0.99, n_neighbors: int = _N_NEIGHBORS) -> LabelSpreading:
    """Return scikit-learn's label spreading (Zhou et al. 2004) on the weighted, symmetric graph of neighbors.

    ``alpha`` is that of the paper. The graph is that of :class:`PoissonLearning`; on the unweighted graph that
    scikit-learn makes itself, it is wrong twice as often with few labels.
    """

    def weights(rows: np.ndarray, others: np.ndarray | None = None) -> csr_matrix:
        finder = NearestNeighbors(n_neighbors=n_neighbors).fit(rows)
        if others is None:
            W = _weights(len(rows), *finder.kneighbors())
            return csr_matrix((W + W.T) / 2)
        return csr_matrix(_weights(len(rows), *finder.kneighbors(others)).T)

    return LabelSpreading(kernel=weights, alpha=alpha, max_iter=1000, tol=1e-4)


class PoissonLearning(BaseEstimator):
    r"""Solve the Poisson equation on the graph of nearest neighbors, with the labels as sources and sinks.

    .. math:: L u = b, \qquad u \leftarrow u + D^{-1} (b - L u),

    from u = 0 until a random walk from the labeled rows has mixed. Row i of b is the one-hot label minus the mean label
    where row i is labeled, and zero elsewhere. Weights are :math:`e^{-4 |x_i - x_j|^2 / r_i^2}`, where :math:`r_i` is
    the distance to the farthest neighbor, made symmetric. A row takes the class of its largest u; a new row takes the
    weighted mean of u over its neighbors. A yardstick for hashers that learn from few labels.

    Parameters
    ----------
    n_neighbors : int, default=10

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    transduction_ : class of every training row

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> PoissonLearning(n_neighbors=2).fit(X, [0, -1, -1, 1, -1, -1]).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, n_neighbors: int = _N_NEIGHBORS) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Spread the labels; -1 marks a row without one."""
        rows, labels = np.asarray(X), np.asarray(y)
        labeled = np.flatnonzero(labels != -1)
        if not len(labeled):
            raise ValueError("All of y is -1, which means unlabeled. Poisson learning needs a label of every class.")
        self.classes_, index = np.unique(labels[labeled], return_inverse=True)
        self.finder_ = NearestNeighbors(n_neighbors=self.n_neighbors).fit(rows)
        W = _weights(len(rows), *self.finder_.kneighbors())
        b = np.zeros((len(rows), len(self.classes_)))
        b[labeled] = np.eye(len(self.classes_))[index] - np.bincount(index) / len(index)
        self.potential_ = poisson_potential((W + W.T) / 2, b, labeled)
        self.transduction_ = self.classes_[self.potential_.argmax(axis=1)]
        self.transduction_[labeled] = labels[labeled]
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each row, by the potential of its nearest training rows."""
        weights = _weights(len(self.potential_), *self.finder_.kneighbors(np.asarray(X)))
        return self.classes_[(weights @ self.potential_).argmax(axis=1)]


def _weights(n_rows: int, distances: np.ndarray, neighbors: np.ndarray) -> csr_array:
    # Equal rows have distance zero, also to the farthest neighbor.
    radius = np.maximum(distances[:, -1:], np.finfo(np.float64).tiny)
    starts = np.arange(len(neighbors) + 1) * neighbors.shape[1]
    values = np.exp(-4.0 * (distances / radius) ** 2)
    return csr_array((values.ravel(), neighbors.ravel(), starts), shape=(len(neighbors), n_rows))


def poisson_potential(W: csr_array, b: np.ndarray, labeled: np.ndarray) -> np.ndarray:
    """Return the u of Poisson learning on a graph with the weights W."""
    degree = np.maximum(W.sum(axis=1), np.finfo(np.float64).tiny)
    u, walk = np.zeros_like(b), np.zeros(len(b))
    walk[labeled] = 1.0 / len(labeled)
    mixed = degree / degree.sum()
    for _ in range(_MAX_STEPS):
        # u + D^-1 (b - (D - W) u)
        u = (b + W @ u) / degree[:, None]
        walk = W @ (walk / degree)
        if np.abs(walk - mixed).max() <= 1.0 / len(b):
            break
    return u
