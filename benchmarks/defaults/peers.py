"""Other ways to learn from few labels, written from their papers or taken from scikit-learn.

Every peer is a function of training rows, their labels (-1 where unknown) and unseen rows. It returns the class of
every training row and of every unseen row.
"""

import warnings

import numpy as np
from neighbor_learners import PoissonLearning, spreading_on_neighbors
from scipy.spatial.distance import pdist
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC

# Neighbors and alpha.
SPREADING_SETTINGS = ((10, 0.99), (10, 0.9), (10, 0.999), (6, 0.99), (20, 0.99))


def label_spreading(X, y, unseen, n_neighbors=10, alpha=0.99):
    """Zhou et al. 2004 by scikit-learn, on the weighted graph of neighbors; alpha is that of the paper."""
    model = spreading_on_neighbors(alpha, n_neighbors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows that no label reaches are divided by zero
        model.fit(X, y)
        return model.transduction_, model.predict(unseen)


def poisson_learning(X, y, unseen):
    """Calder et al. 2020, with the settings of the paper."""
    model = PoissonLearning().fit(X, y)
    return model.transduction_, model.predict(unseen)


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
