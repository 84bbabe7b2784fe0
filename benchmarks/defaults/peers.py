"""Other ways to learn from few labels, written from their papers or taken from scikit-learn.

Every peer is a function of training rows, their labels (-1 where unknown) and unseen rows. It returns the class of
every training row and of every unseen row.
"""

import warnings
from itertools import product

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.spatial.distance import pdist
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

SPREADING_SETTINGS = tuple(product((5, 7, 10, 15), (0.2, 0.8, 0.99)))


def label_spreading(X, y, unseen, n_neighbors=7, alpha=0.99):
    """Zhou et al. 2004, as in scikit-learn, on the graph of nearest neighbors; alpha is that of the paper."""
    model = LabelSpreading(kernel="knn", n_neighbors=n_neighbors, alpha=alpha, max_iter=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows that no label reaches are divided by zero
        model.fit(X, y)
        return model.transduction_, model.predict(unseen)


def poisson_learning(X, y, unseen, n_neighbors=10):
    """Calder et al., Poisson Learning, 2020: u <- u + D^-1 (b - L u) from zero, until a random walk has mixed.

    The graph has weights exp(-4 |x_i - x_j|^2 / r_i^2) with r_i the distance to the farthest neighbor of i, made
    symmetric. Row i of b is e_(y_i) minus the mean label where row i is labeled, and zero elsewhere. A new row takes
    the weighted mean of u over its neighbors.
    """
    finder = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
    W = neighbor_weights(*finder.kneighbors(), len(X))
    W = (W + W.T) / 2
    degree = W.sum(axis=1)
    labeled = np.flatnonzero(y >= 0)
    classes, index = np.unique(y[labeled], return_inverse=True)
    source = np.zeros((len(X), len(classes)))
    source[labeled] = np.eye(len(classes))[index] - np.bincount(index) / len(index)
    u = np.zeros_like(source)
    walk, mixed = np.zeros(len(X)), degree / degree.sum()
    walk[labeled] = 1 / len(labeled)
    step = diags_array(1 / degree)
    for _ in range(1000):
        u += step @ (source - (degree[:, None] * u - W @ u))
        walk = W @ (step @ walk)
        if np.abs(walk - mixed).max() <= 1 / len(X):
            break
    extended = neighbor_weights(*finder.kneighbors(unseen), len(X)) @ u
    return np.where(y >= 0, y, classes[u.argmax(axis=1)]), classes[extended.argmax(axis=1)]


def neighbor_weights(distances, neighbors, n_rows):
    radius = np.maximum(distances[:, -1:], 1e-12)
    weights = np.exp(-4 * distances**2 / radius**2)
    pointers = np.arange(len(neighbors) + 1) * neighbors.shape[1]
    return csr_array((weights.ravel(), neighbors.ravel(), pointers), shape=(len(neighbors), n_rows))


def svc(X, y, unseen):
    """A Gaussian SVC on the labeled rows, C = 10, bandwidth by the rule of scikit-learn."""
    return on_labeled_rows(SVC(C=10.0), X, y, unseen)


def logistic(X, y, unseen):
    """Logistic regression on the labeled rows."""
    return on_labeled_rows(LogisticRegression(C=10.0, max_iter=300), X, y, unseen)


def on_labeled_rows(classifier, X, y, unseen):
    classifier.fit(X[y >= 0], y[y >= 0])
    return np.where(y >= 0, y, classifier.predict(X)), classifier.predict(unseen)


def plain_ridge_scores(X, y, rows, codewords, ridge=0.1):
    """Bit scores of kernel ridge regression onto codewords from the labeled rows alone.

    The Gaussian has a bandwidth of half the median distance between all training rows, which needs no label.
    """
    labeled = y >= 0
    some = X[np.random.default_rng(0).permutation(len(X))[:1000]].astype(np.float64)
    sigma = 0.5 * np.median(pdist(some))
    gaussian = lambda A: np.exp(-euclidean_distances(A, X[labeled], squared=True) / (2 * sigma**2))  # noqa: E731
    K = gaussian(X[labeled]).astype(np.float64)
    return gaussian(rows) @ np.linalg.solve(K + ridge * np.eye(len(K)), codewords[y[labeled]].astype(np.float64))
