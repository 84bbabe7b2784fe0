import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_blobs

from starshl.hashers import Pairs
from starshl.hashers.baselines import KSH
from starshl.hashers.baselines.ksh import (
    LabelSimilarity,
    _pair_similarity,
    _relaxed_optimum,
    climb,
    learn_bits,
    smooth_objective,
)
from starshl.learning.kernels.anchors import gaussian_features

DIGITS, DIGIT_LABELS = (array[:400] for array in load_digits(return_X_y=True))


@pytest.fixture(scope="module")
def problem():
    """Centered kernel values of 80 rows at 12 anchors, S, and a residual after two random bits."""
    rng = np.random.default_rng(0)
    X, y = make_blobs(80, 5, centers=4, cluster_std=3.0, random_state=1)
    K = gaussian_features(X, X[:12], 100.0)
    K -= K.mean(axis=0)
    H = rng.choice([-1.0, 1.0], (80, 2))
    S = np.where(y[:, None] == y, 1.0, -1.0)
    return K, y, S, 6 * S - H @ H.T


def test_label_similarity_multiplies_like_the_dense_matrix(problem):
    _, y, S, _ = problem
    V = np.random.default_rng(1).standard_normal((80, 3))
    similarity = LabelSimilarity(y)
    assert np.allclose(similarity @ V, S @ V)
    assert np.allclose(similarity @ V[:, 0], S @ V[:, 0])
    assert similarity.squared_norm == np.sum(S**2)


def test_pair_similarity_is_symmetric_and_unknown_elsewhere():
    rows, S = _pair_similarity(Pairs(np.array([5, 9, 5]), np.array([9, 2, 9]), np.array([1, -1, 1], np.int8)))
    assert rows.tolist() == [2, 5, 9]
    assert S.toarray().tolist() == [[1, 0, -1], [0, 1, 1], [-1, 1, 1]]


def smooth_objective_of(K, R, a):
    """Return the smooth objective of coefficients, and its gradient in them."""
    value, pull = smooth_objective(K @ a, R.__matmul__)
    return value, K.T @ pull


def test_gradient_matches_finite_differences(problem):
    K, _, _, R = problem
    a = np.random.default_rng(2).standard_normal(12)
    value, gradient = smooth_objective_of(K, R, a)
    phi = 2 / (1 + np.exp(-K @ a)) - 1
    assert np.isclose(value, -phi @ R @ phi)
    numeric = approx_fprime(a, lambda a: smooth_objective_of(K, R, a)[0], 1e-7)
    assert np.allclose(gradient, numeric, atol=1e-3, rtol=1e-4)


def test_relaxed_optimum_beats_a_generic_optimizer(problem):
    K, _, _, R = problem
    target, scatter = K.T @ R @ K, K.T @ K
    a = _relaxed_optimum(target, scatter, len(K))
    assert np.isclose(a @ scatter @ a, len(K))

    def negative_quotient(b):
        return -(b @ target @ b) / (b @ scatter @ b)

    found = min(minimize(negative_quotient, start).fun for start in np.random.default_rng(3).standard_normal((5, 12)))
    assert negative_quotient(a) <= found + 1e-6 * abs(found)


def test_climbing_reaches_a_stationary_point_no_worse_than_its_start(problem):
    K, _, _, R = problem
    start = _relaxed_optimum(K.T @ R @ K, K.T @ K, len(K))
    found, _ = climb(K, R.__matmul__, start, 3000, 0.0)
    value, gradient = smooth_objective_of(K, R, found)
    start_value, start_gradient = smooth_objective_of(K, R, start)
    assert value < start_value
    assert np.linalg.norm(gradient) < 1e-2 * np.linalg.norm(start_gradient)


def test_history_is_the_dense_residual_and_falls(problem):
    K, y, S, _ = problem
    coefficients, history, _ = learn_bits(K, LabelSimilarity(y), 6, 500, 1e-2)
    H = np.where(K @ coefficients.T >= 0, 1.0, -1.0)
    dense = [np.sum((6 * S - H[:, :b] @ H[:, :b].T) ** 2) / np.sum((6 * S) ** 2) for b in range(7)]
    assert np.allclose(history, dense)
    assert (np.diff(history) < 0).all()


def test_no_bit_agrees_less_than_the_relaxed_optimum(problem):
    K, y, S, _ = problem
    coefficients, _, _ = learn_bits(K, LabelSimilarity(y), 6, 500, 1e-2)
    R = 6 * S
    scatter = K.T @ K + 1e-6 * np.trace(K.T @ K) / 12 * np.eye(12)
    for a in coefficients:
        relaxed = np.where(K @ _relaxed_optimum(K.T @ R @ K, scatter, 80) >= 0, 1.0, -1.0)
        code = np.where(K @ a >= 0, 1.0, -1.0)
        assert code @ R @ code >= relaxed @ R @ relaxed - 1e-6
        R = R - np.outer(code, code)


def test_all_pairs_teach_what_the_labels_teach():
    X, y = make_blobs(60, 4, centers=3, random_state=0)
    first, second = np.triu_indices(60, 1)
    pairs = (first, second, np.where(y[first] == y[second], 1, -1))
    by_labels = KSH(6, random_state=0).fit(X, y)
    by_pairs = KSH(6, random_state=0).fit(X, pairs=pairs)
    assert np.allclose(by_labels.objective_history_, by_pairs.objective_history_)
    assert np.array_equal(by_labels.transform(X), by_pairs.transform(X))


def test_separated_classes_get_opposed_codes():
    X, y = make_blobs(100, 4, centers=[[0] * 4, [20] * 4], random_state=0)
    codes = KSH(8, random_state=0).fit(X, y).transform(X).astype(int)
    products = codes @ codes.T
    assert (products[y[:, None] == y] == 8).all()
    assert (products[y[:, None] != y] == -8).all()


def test_scores_are_centered_over_all_training_rows():
    y = np.where(np.arange(400) % 3 == 0, DIGIT_LABELS, -1)
    scores = KSH(4, random_state=0).fit(DIGITS, y).decision_function(DIGITS)
    assert np.allclose(scores.mean(axis=0), 0, atol=1e-8 * np.abs(scores).max())


def test_labels_of_a_few_rows_are_enough():
    y = np.where(np.arange(400) < 200, DIGIT_LABELS, -1)
    hasher = KSH(8, random_state=0).fit(DIGITS, y)
    alone = KSH(8, n_labeled=20, random_state=0).fit(DIGITS, y)
    assert not np.array_equal(hasher.coefficients_, alone.coefficients_)


def test_unknown_pairs_leave_the_sparse_matrix_sparse():
    _, S = _pair_similarity(Pairs(np.array([0]), np.array([1]), np.array([-1], np.int8)))
    assert isinstance(S, csr_array)


@pytest.mark.parametrize(
    ("y", "parameters", "message"),
    [
        (None, {}, "KSH requires y"),
        (np.full(400, -1), {}, "400 of 400 rows unlabeled"),
        (np.zeros(400, int), {}, "y holds 1 class"),
        (DIGIT_LABELS, {"n_labeled": 1}, "n_labeled is 1"),
        (DIGIT_LABELS, {"tol": -1.0}, "tol is -1.0"),
        (DIGIT_LABELS, {"anchors": np.ones((2, 3))}, r"anchors has shape \(2, 3\)"),
    ],
)
def test_bad_input_is_refused(y, parameters, message):
    with pytest.raises(ValueError, match=message):
        KSH(4, **parameters).fit(DIGITS, y)


def test_number_of_labels_that_were_used_is_told():
    X, y = load_digits(return_X_y=True)
    y[:100] = -1
    settings = {"n_anchors": 20, "max_iter": 2, "random_state": 0}
    assert KSH(2, n_labeled=300, **settings).fit(X, y).n_labeled_ == 300
    assert KSH(2, n_labeled=None, **settings).fit(X, y).n_labeled_ == len(y) - 100
