"""SVMs on active rows only: which rows are active, and that the others obey the result too."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import StarSHL
from starshl.learning.solvers import proposals
from starshl.learning.solvers._svm_loops import violation_of


@pytest.fixture
def few_rows_are_active(monkeypatch):
    """Treat a few hundred rows as the solver treats many thousands."""
    monkeypatch.setattr(proposals, "SAMPLE_ABOVE_ROWS", 60)
    monkeypatch.setattr(proposals, "MIN_JOINING_LIMIT", 30)
    monkeypatch.setattr(proposals, "SAMPLE_SIZES", (40, 80))


@pytest.fixture(scope="module")
def some_digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16.0, y[:400]


def settings(**others):
    return {"random_state": 0, "codeword_constraint": "none", "tol": 1e-5, "svm_tol": 1e-6, "max_iter": 100} | others


def test_all_of_a_few_rows_are_active():
    assert proposals.active_rows(np.zeros(50), np.full(50, 9.0)).all()
    assert proposals.sample_of(np.zeros(50, dtype=int)) is None


@pytest.mark.usefixtures("few_rows_are_active")
def test_rows_with_a_coefficient_and_rows_near_the_margin_are_active():
    coefficients, margins = np.zeros(100), np.full(100, 2.0)
    coefficients[:5] = 1.0
    margins[10:15] = 0.9
    margins[20] = 1.04
    assert np.flatnonzero(proposals.active_rows(coefficients, margins)).tolist() == [0, 1, 2, 3, 4, *range(10, 15), 20]


@pytest.mark.usefixtures("few_rows_are_active")
def test_of_many_rows_inside_the_margin_evenly_spaced_ones_join():
    margins = np.linspace(1.0, -1.0, 88)
    assert np.flatnonzero(proposals.active_rows(np.zeros(88), margins)).tolist() == list(range(0, 88, 3))


@pytest.mark.usefixtures("few_rows_are_active")
def test_a_sample_has_a_row_of_every_group_and_its_share_of_large_ones():
    groups = np.array([0] * 200 + [1] + [2] * 100)
    chosen = proposals.sample_of(groups)
    assert chosen[200]
    assert abs(int(chosen[:200].sum()) - 50) <= 2
    assert abs(int(chosen[201:].sum()) - 25) <= 2


@pytest.mark.usefixtures("few_rows_are_active")
@pytest.mark.parametrize("C", [0.3, 10.0, 1000.0])
def test_rows_that_were_left_out_obey_the_svm_too(some_digits, C):
    X, y = some_digits
    hasher = StarSHL(6, C=C, random_state=0, kernels="paper", codewords="random", tol=0.05).fit(X, y)
    labels = hasher.codewords_[hasher.assignments_].astype(float)
    scores = hasher.decision_function(X)
    for bit in range(6):
        high, low = np.where(labels[:, bit] > 0, C, 0.0), np.where(labels[:, bit] > 0, 0.0, -C)
        gradient = labels[:, bit] - scores[:, bit] + hasher.intercept_[bit]
        violation, _, _ = violation_of(gradient, hasher.dual_coef_[bit], low, high)
        assert violation <= 1.05 * hasher.svm_tol


@pytest.mark.parametrize(
    ("mode", "precision"),
    [
        ("supervised", np.float32),
        ("supervised", np.float64),
        ("semi-supervised", np.float64),
        ("unsupervised", np.float32),
    ],
)
def test_active_rows_lead_to_the_same_hasher(some_digits, mode, precision, request):
    X, y = some_digits[0].astype(precision), some_digits[1].copy()
    tight = settings(C=1.0)
    if mode == "semi-supervised":
        y[150:] = -1
    elif mode == "unsupervised":
        y, tight["n_codewords"] = None, 6
    with_all = StarSHL(6, **tight).fit(X, y)
    request.getfixturevalue("few_rows_are_active")
    with_some = StarSHL(6, **tight).fit(X, y)
    assert np.array_equal(with_some.assignments_, with_all.assignments_)
    assert with_some.objective_history_[-1] == pytest.approx(with_all.objective_history_[-1], rel=1e-5)
    assert np.abs(with_some.decision_function(X) - with_all.decision_function(X)).max() < 2e-3


@pytest.mark.usefixtures("few_rows_are_active")
@pytest.mark.parametrize("mode", ["supervised", "semi-supervised", "unsupervised"])
def test_the_objective_never_rises_and_threads_change_no_byte(some_digits, mode):
    X, y = some_digits[0].astype(np.float32), some_digits[1].copy()
    others = {}
    if mode == "semi-supervised":
        y[150:] = -1
    elif mode == "unsupervised":
        y, others["n_codewords"] = None, 6
    one, two = (StarSHL(7, random_state=0, n_jobs=n_jobs, **others).fit(X, y) for n_jobs in (1, 2))
    history = one.objective_history_
    assert np.all(np.diff(history) <= 1e-6 * history[:-1])
    assert one.dual_coef_.tobytes() == two.dual_coef_.tobytes()
    assert one.kernel_weights_.tobytes() == two.kernel_weights_.tobytes()


@pytest.mark.usefixtures("few_rows_are_active")
@pytest.mark.parametrize("solver", ["smo", "libsvm"])
def test_a_class_of_one_row_among_many_is_learned(some_digits, solver):
    X = some_digits[0]
    y = np.zeros(400, dtype=int)
    y[201] = 1
    y[390:] = -1
    hasher = StarSHL(3, random_state=0, solver=solver).fit(X, y)
    assert hasher.predict(X[[201]]) == 1
    assert hasher.score(X[:390], y[:390]) == 1.0


@pytest.mark.usefixtures("few_rows_are_active")
def test_precomputed_kernels_take_the_same_way(some_digits):
    X, y = some_digits
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 8.0)
    hasher = StarSHL(6, kernels="precomputed", random_state=0).fit(gram, y)
    assert hasher.score(gram, y) == 1.0
