"""Other ways to learn from few labels, written from their papers or taken from scikit-learn.

Every peer is a function of rows and their labels, -1 where unknown. It returns the class of every row.
"""

import warnings

import numpy as np
from neighbor_learners import PoissonLearning, spreading_on_neighbors
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC


def label_spreading(X, y):
    """Zhou et al. 2004 by scikit-learn, on the weighted graph of neighbors; alpha is that of the paper."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows that no label reaches are divided by zero
        return spreading_on_neighbors().fit(X, y).transduction_


def poisson_learning(X, y):
    """Calder et al. 2020, with the settings of the paper."""
    return PoissonLearning().fit(X, y).transduction_


def svc(X, y):
    """A Gaussian SVC on the labeled rows, C = 10, bandwidth by the rule of scikit-learn."""
    return SVC(C=10.0).fit(X[y >= 0], y[y >= 0]).predict(X)


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
