"""The label-efficiency curves that come with reports, and what StarRidge is measured against in them."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.reproduction.label_efficiency import EMPHASIZED
from starshl.reproduction.label_efficiency import shipped_curves
from starshl.paper.neighbor_learners import PoissonLearning
from starshl.paper.neighbor_learners import _weights
from starshl.paper.neighbor_learners import spreading_on_neighbors


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    known = np.full(400, -1)
    known[[np.flatnonzero(y[:400] == digit)[0] for digit in range(10)]] = np.arange(10)
    return X[:400], y[:400], known


def test_poisson_learning_agrees_with_a_dense_solve_of_the_poisson_equation(digits):
    X, _, known = digits
    learner = PoissonLearning().fit(X, known)
    one_way = _weights(len(X), *learner.finder_.kneighbors()).toarray()
    W = (one_way + one_way.T) / 2
    sources = np.zeros((len(X), 10))
    sources[known >= 0] = np.eye(10)[known[known >= 0]] - 0.1
    exact = np.linalg.pinv(np.diag(W.sum(axis=1)) - W) @ sources
    exact -= np.average(exact, axis=0, weights=W.sum(axis=1))
    # The steps stop when a random walk has mixed to 1 / n, not when the equation is solved to rounding.
    assert (learner.potential_.argmax(axis=1) == exact.argmax(axis=1)).mean() > 0.95


@pytest.mark.parametrize("make", [PoissonLearning, spreading_on_neighbors])
def test_graph_yardsticks_keep_labels_and_find_most_others(make, digits):
    X, y, known = digits
    learner = make().fit(X, known)
    assert np.array_equal(learner.transduction_[known >= 0], known[known >= 0])
    assert (learner.transduction_ == y).mean() > 0.6
    assert (learner.predict(X[:50]) == learner.transduction_[:50]).mean() > 0.9


def test_poisson_learning_without_a_label_is_refused():
    with pytest.raises(ValueError, match="needs a label of every class"):
        PoissonLearning().fit(np.eye(20), np.full(20, -1))


def test_the_curves_of_reports_emphasize_one_of_their_lines():
    curves = shipped_curves()
    assert curves
    assert all(EMPHASIZED in curve.accuracies for curve in curves)
