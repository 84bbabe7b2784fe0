"""StarSHL gives the same hash functions as the plain float64 implementation of docs/plain.md, on LIBSVM."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import StarSHL
from starshl.learning.solvers import proposals

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from plain_star_shl import Model, fit, objective, paper_grams, scores

TIGHT = {"tol": 1e-6, "svm_tol": 1e-7, "max_iter": 200, "codeword_constraint": "none"}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    keep = y < 5
    return X[keep] / 16.0, y[keep]


def start(n_codewords, n_bits, seed):
    rng = np.random.default_rng(seed)
    codewords = np.where(rng.random((n_codewords, n_bits)) < 0.5, -1, 1)
    codewords[0], codewords[1] = 1, -1
    weights = rng.random((n_bits, 11))
    return codewords, weights / weights.sum(1, keepdims=True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Some rows of codewords")
@pytest.mark.filterwarnings("ignore:10 codewords do not fit")
def test_many_rows_of_any_precision_agree(monkeypatch):
    """Weights are first learned on a sample, and SVMs are solved on active rows."""
    # Half of the solver's numbers, because the plain implementation takes a while on more than 1,500 rows.
    monkeypatch.setattr(proposals, "SAMPLE_ABOVE_ROWS", 750)
    monkeypatch.setattr(proposals, "MIN_JOINING_LIMIT", 2000)
    monkeypatch.setattr(proposals, "SAMPLE_SIZES", (375, 2000))
    X, y = load_digits(return_X_y=True)
    X, y = X[:760] / 16.0, y[:760]
    codewords, weights = start(10, 2, seed=0)
    grams = paper_grams(X, X)
    plain = fit(Model(grams, y, np.ones(len(y), bool), codewords, weights, C=1000.0))
    for rows in (X.astype(np.float32), X):
        ours = StarSHL.paper(2, codewords=codewords, kernel_weights=weights).set_params(**TIGHT).fit(rows, y)
        assert np.array_equal(ours.codewords_, plain.codewords)
        assert np.abs(ours.decision_function(rows) - plain.f).max() < 1e-3
        # LIBSVM keeps kernels in float32, whose rounding costs hinge losses at this C: ours is a little cheaper.
        assert 0.999 * objective(plain) < ours.objective_history_[-1] <= 1.00001 * objective(plain)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Some rows of codewords")
@pytest.mark.parametrize("C", [0.01, 0.3, 10.0, 1000.0])
def test_supervised_decision_values_agree(digits, C):
    X, y = digits
    X_train, y_train, X_new = X[:90], y[:90], X[90:170]
    codewords, weights = start(5, 6, seed=0)
    plain = fit(Model(paper_grams(X_train, X_train), y_train, np.ones(90, bool), codewords, weights, C))
    ours = StarSHL(6, kernels="paper", C=C, codewords=codewords, kernel_weights=weights, **TIGHT).fit(X_train, y_train)
    assert np.array_equal(ours.codewords_, plain.codewords)
    assert np.abs(ours.decision_function(X_train) - plain.f).max() < 1e-3
    assert np.abs(ours.decision_function(X_new) - scores(plain, paper_grams(X_new, X_train))).max() < 1e-3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Some rows of codewords")
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("C", [0.3, 10.0])
def test_semi_supervised_decision_values_agree(digits, C, given):
    X, y = digits
    X, y = X[:100], y[:100].copy()
    labeled = np.arange(100) < 30
    rng = np.random.default_rng(1)
    first = np.where(labeled, y, np.where(rng.random(100) < 0.7, y, rng.integers(0, 5, 100)))
    codewords, weights = start(5, 5, seed=2)
    start_of_all = first if given else np.where(labeled, y, 0)
    plain = fit(Model(paper_grams(X, X), start_of_all, labeled, codewords, weights, C), late=not given)
    settings = {"codewords": codewords, "kernel_weights": weights, "unlabeled": "nearest"} | TIGHT
    ours = StarSHL(5, kernels="paper", C=C, **settings)
    ours.fit(X, np.where(labeled, y, -1), initial_assignments=first if given else None)
    assert np.array_equal(ours.assignments_, plain.a)
    assert np.abs(ours.decision_function(X) - plain.f).max() < 1e-3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Some rows of codewords")
def test_unsupervised_decision_values_agree_from_given_clusters(digits):
    X, y = digits
    X, y = X[:80], y[:80]
    codewords, weights = start(5, 5, seed=3)
    plain = fit(Model(paper_grams(X, X), y, np.zeros(80, bool), codewords, weights, C=1.0))
    ours = StarSHL(5, kernels="paper", C=1.0, codewords=codewords, kernel_weights=weights, n_codewords=5, **TIGHT)
    ours.fit(X, initial_assignments=y)
    assert np.array_equal(ours.assignments_, plain.a)
    assert np.abs(ours.decision_function(X) - plain.f).max() < 1e-3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("mode", ["supervised", "semi-supervised", "unsupervised"])
def test_both_solvers_give_the_same_hasher(digits, mode):
    X, y = digits
    X, y = X[:120], y[:120].copy()
    settings = {"random_state": 0, "tol": 1e-5, "svm_tol": 1e-7, "max_iter": 100}
    if mode == "semi-supervised":
        y[40:] = -1
    elif mode == "unsupervised":
        y, settings["n_codewords"] = None, 5
    ours, theirs = (StarSHL(8, solver=solver, **settings).fit(X, y) for solver in ("smo", "libsvm"))
    # LIBSVM cannot continue an earlier solution, so near the end it stops improving a few sweeps sooner.
    assert np.abs(ours.decision_function(X) - theirs.decision_function(X)).max() < 5e-3
    assert ours.objective_history_[-1] == pytest.approx(theirs.objective_history_[-1], rel=1e-4)
