"""The label-efficiency curve that comes with reports, and its yardsticks."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.paper import label_curve
from starshl.paper.neighbor_learners import PoissonLearning, _weights, spreading_on_neighbors


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


def test_reports_show_the_curve_of_their_records_or_the_one_that_comes_with_the_package(tmp_path, monkeypatch):
    shipped = label_curve.curves_for(tmp_path)
    monkeypatch.setattr(label_curve, "label_learners", lambda n_jobs: {"zero": lambda X, y, seed: np.zeros(len(X))})
    measured = label_curve.measure_digits(tmp_path, n_draws=1)
    assert label_curve.curves_for(tmp_path) == [measured]
    assert measured not in shipped


def test_the_learners_of_the_curve_answer_for_every_row(digits):
    X, y, _ = digits
    known = np.where(np.arange(len(y)) < 60, y, -1)
    for name, learner in label_curve.label_learners().items():
        found = learner(X[:200], known[:200], 0)
        assert found.shape == (200,), name
        assert (found[60:] == y[60:200]).mean() > 0.5, name
