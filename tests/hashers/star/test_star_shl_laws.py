"""Laws that hold for every fit of StarSHL."""

import numpy as np
import pytest
from sklearn.svm import SVC

from starshl import StarSHL
from starshl.learning.kernels import Gaussian, NormalizedLinear, ScaledGaussian
from starshl.learning.solvers.objective import hinge_distances

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Unconstrained")

MODES = ["supervised", "semi-supervised", "unsupervised"]


@pytest.fixture(scope="module")
def rows(digits):
    X, y = digits
    return X[:160], y[:160]


def labels_of(mode, y):
    if mode == "supervised":
        return y
    return np.where(np.arange(len(y)) < 60, y, -1) if mode == "semi-supervised" else None


def fit(mode, rows, n_bits=8, **settings):
    """Fit with the paper's treatment of unlabeled rows, in which the descent has all of its steps."""
    X, y = rows
    settings = {"random_state": 0, "unlabeled": "nearest"} | settings
    n_codewords = 10 if mode == "unsupervised" else None
    return StarSHL(n_bits, n_codewords=n_codewords, **settings).fit(X, labels_of(mode, y))


def objective(hasher, X, grams, y=None):
    """J from the attributes alone, by its definition."""
    J = 0.0
    for b in range(len(hasher.intercept_)):
        theta, eta = hasher.kernel_weights_[b], hasher.dual_coef_[b]
        K = np.tensordot(theta, grams, 1)
        scores = K @ eta + hasher.intercept_[b]
        J += hasher.C * np.maximum(0, 1 - hasher.codewords_[hasher.assignments_, b] * scores).sum()
        J += 0.5 * sum(t * eta @ G @ eta for t, G in zip(theta, grams, strict=True))
    return J


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"C": 1000.0, "kernels": "paper", "codewords": "random", "kernel_weights": "random"},
        {"C": 0.01, "codeword_constraint": "none"},
        {"C": 0.1, "codeword_constraint": "nonconstant"},
        {"kernel_norm": 1.0},
        {"kernel_norm": 1.5, "svm_tol": 0.1},
        {"kernel_norm": np.inf},
        {"solver": "libsvm", "max_iter": 4},
    ],
    ids=str,
)
def test_the_objective_never_rises_and_ends_at_the_stored_model(mode, settings, rows):
    X, _y = rows
    hasher = fit(mode, rows, **settings)
    history = hasher.objective_history_
    assert np.all(np.diff(history) <= 1e-6 * np.abs(history[:-1]))
    grams = np.array([kernel.gram(X) for kernel in hasher.kernels_])
    assert objective(hasher, X, grams) == pytest.approx(history[-1], rel=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_the_objective_never_rises_in_float32_and_ends_near_the_stored_model(mode, C, rows):
    X = rows[0].astype(np.float32)
    hasher = fit(mode, (X, rows[1]), C=C)
    history = hasher.objective_history_
    assert np.all(np.diff(history) <= 1e-6 * np.abs(history[:-1]))
    grams = np.array([kernel.gram(X.astype(np.float64)) for kernel in hasher.kernels_])
    # Kernel values are rounded to 1e-7 and the objective multiplies that by C.
    assert objective(hasher, X, grams) == pytest.approx(history[-1], rel=1e-6 * C)


@pytest.mark.parametrize("mode", MODES)
def test_distortion_lies_below_surrogate_and_surrogate_below_objective(mode, rows):
    hasher = fit(mode, rows)
    assert np.all(hasher.distortion_history_ <= hasher.surrogate_history_ + 1e-9)
    assert np.all(hasher.C * hasher.surrogate_history_ <= hasher.objective_history_ + 1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_the_result_is_a_fixed_point_of_every_block(mode, rows):
    X, y = rows
    hasher = fit(mode, rows, tol=1e-6, svm_tol=1e-8, max_iter=500, C=1.0)
    scores = hasher.decision_function(X)
    distances = hinge_distances(scores, hasher.codewords_)
    rows_of = np.arange(len(X))
    if mode != "supervised":
        free = labels_of(mode, y) == -1 if mode == "semi-supervised" else np.ones(len(X), bool)
        own = distances[rows_of, hasher.assignments_][free]
        crowded = np.bincount(hasher.assignments_, minlength=10)[hasher.assignments_][free] > 1
        assert np.all(own[crowded] <= distances[free].min(axis=1)[crowded] + 1e-9)
    grams = np.array([kernel.gram(X) for kernel in hasher.kernels_])
    for b in range(8):
        labels = hasher.codewords_[hasher.assignments_, b]
        K = np.tensordot(hasher.kernel_weights_[b], grams, 1)
        machine = SVC(kernel="precomputed", C=1.0, tol=1e-9).fit(K, labels)
        assert np.abs(machine.decision_function(K) - scores[:, b]).max() < 1e-3
        norms = hasher.kernel_weights_[b] ** 2 * [hasher.dual_coef_[b] @ G @ hasher.dual_coef_[b] for G in grams]
        best = norms ** (1 / 3) / np.linalg.norm(norms ** (1 / 3))
        assert np.abs(best - hasher.kernel_weights_[b]).max() < 1e-4
    flips = hasher.codewords_.copy()
    for g in range(10):
        for b in range(8):
            members = scores[hasher.assignments_ == g, b]
            now = np.maximum(0, 1 - hasher.codewords_[g, b] * members).sum()
            other = np.maximum(0, 1 + hasher.codewords_[g, b] * members).sum()
            flips[g, b] *= -1
            allowed = len(np.unique(flips, axis=0)) == 10 and abs(flips[:, b].sum()) < 10
            flips[g, b] *= -1
            assert not allowed or now <= other + 1e-9


def test_one_kernel_and_fixed_codewords_are_independent_svms(rows):
    X, y = rows
    hasher = StarSHL(6, kernels=[Gaussian(1.5)], update_codewords=False, svm_tol=1e-7, random_state=0).fit(X, y)
    K = Gaussian(1.5)(X, X)
    for b in range(6):
        machine = SVC(kernel="precomputed", C=10.0, tol=1e-8).fit(K, hasher.codewords_[y, b])
        assert np.abs(machine.decision_function(K) - hasher.decision_function(X)[:, b]).max() < 1e-4
    assert np.array_equal(hasher.kernel_weights_, np.ones((6, 1)))


@pytest.mark.parametrize("mode", MODES)
def test_codes_and_model_do_not_depend_on_the_number_of_threads(mode, rows):
    one, two = (fit(mode, rows, n_jobs=n_jobs) for n_jobs in (1, 2))
    X = rows[0]
    assert one.decision_function(X).tobytes() == two.decision_function(X).tobytes()
    for name in ("codewords_", "kernel_weights_", "dual_coef_", "intercept_", "objective_history_", "assignments_"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


@pytest.mark.parametrize("mode", MODES)
def test_same_seed_gives_the_same_bytes(mode, rows):
    first, second = (fit(mode, rows).decision_function(rows[0]) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("unlabeled", ["graph", "nearest"])
@pytest.mark.parametrize("mode", MODES)
def test_permuting_rows_permutes_codes(mode, unlabeled, rows):
    X, y = rows[0][:120], rows[1][:120]
    order = np.random.default_rng(0).permutation(len(X))
    settings = {"svm_tol": 1e-8, "tol": 1e-5, "max_iter": 100, "unlabeled": unlabeled}
    plain, permuted = fit(mode, (X, y), **settings), None
    hidden = labels_of(mode, y)
    n_codewords = 10 if mode == "unsupervised" else None
    permuted = StarSHL(8, n_codewords=n_codewords, random_state=0, **settings)
    permuted.fit(X[order], None if hidden is None else hidden[order])
    assert np.abs(permuted.decision_function(X) - plain.decision_function(X)).max() < 1e-3


def test_permuting_classes_permutes_codewords_and_keeps_codes(rows):
    X, y = rows
    codewords = StarSHL(8, random_state=0, max_iter=1).fit(X, y).codewords_
    renamed = (y + 3) % 10
    plain = StarSHL(8, codewords=codewords).fit(X, y)
    moved = StarSHL(8, codewords=np.roll(codewords, 3, axis=0)).fit(X, renamed)
    assert np.array_equal(moved.codewords_, np.roll(plain.codewords_, 3, axis=0))
    assert np.array_equal(moved.transform(X), plain.transform(X))


def test_negating_a_codeword_column_negates_that_bit(rows):
    X, y = rows
    codewords = StarSHL(8, random_state=0, max_iter=1).fit(X, y).codewords_.copy()
    plain = StarSHL(8, codewords=codewords, svm_tol=1e-8).fit(X, y).decision_function(X)
    codewords[:, 3] *= -1
    negated = StarSHL(8, codewords=codewords, svm_tol=1e-8).fit(X, y).decision_function(X)
    signs = np.ones(8)
    signs[3] = -1
    assert np.abs(negated * signs - plain).max() < 1e-3


@pytest.mark.parametrize("kernels", ["paper", "scaled"])
def test_unlabeled_rows_of_no_weight_change_nothing(rows, kernels):
    X, y = rows
    hidden = np.where(np.arange(len(y)) < 60, y, -1)
    settings = {"kernels": kernels, "random_state": 0, "svm_tol": 1e-8, "tol": 1e-5, "max_iter": 100}
    settings["unlabeled"] = "nearest"
    labeled_only = StarSHL(8, **settings).fit(X[:60], y[:60])
    with_others = StarSHL(8, unlabeled_weight=0.0, **settings).fit(X, hidden)
    assert np.abs(with_others.decision_function(X) - labeled_only.decision_function(X)).max() < 1e-4
    assert with_others.transduction_.tolist() == [*y[:60], *labeled_only.predict(X[60:])]
    on_graph = StarSHL(8, unlabeled_weight=0.0, **settings | {"unlabeled": "graph"}).fit(X, hidden)
    assert np.abs(on_graph.decision_function(X) - labeled_only.decision_function(X)).max() < 1e-4


@pytest.mark.parametrize("mode", MODES)
def test_weight_zero_leaves_out_and_weight_two_repeats(mode, rows):
    X, y = rows[0][:100], rows[1][:100]
    hidden = labels_of(mode, y)
    weights = np.random.default_rng(1).integers(0, 3, 100)
    weights[:20] = 1
    settings = {"random_state": 0, "svm_tol": 1e-8, "tol": 1e-6, "max_iter": 300, "C": 1.0}
    settings["n_codewords"] = 10 if mode == "unsupervised" else None
    settings["unlabeled"] = "nearest"  # a neighbor graph has every row once
    weighted = StarSHL(8, **settings).fit(X, hidden, sample_weight=weights)
    repeat = np.repeat(np.arange(100), weights)
    repeated = StarSHL(8, **settings).fit(X[repeat], None if hidden is None else hidden[repeat])
    sigmas = [
        [kernel.sigma for kernel in hasher.kernels_ if hasattr(kernel, "sigma")] for hasher in (weighted, repeated)
    ]
    assert sigmas[0] == pytest.approx(sigmas[1], rel=1e-12)
    assert np.abs(weighted.decision_function(X) - repeated.decision_function(X)).max() < 1e-3
    assert weighted.objective_history_[-1] == pytest.approx(repeated.objective_history_[-1], rel=1e-4)
    assert np.array_equal(weighted.assignments_[repeat], repeated.assignments_)


def test_predict_is_the_nearest_codeword_by_hamming_then_hinge_then_index(rows):
    X, _y = rows
    hasher = fit("supervised", rows, n_bits=5)
    hamming, hinge = hasher.codeword_distances(X), hasher.codeword_distances(X, metric="hinge")
    brute = [min(range(10), key=lambda g: (hamming[n, g], hinge[n, g], g)) for n in range(len(X))]
    assert np.array_equal(hasher.predict(X), hasher.classes_[brute])
    assert np.array_equal(hamming, (hasher.transform(X)[:, None, :] != hasher.codewords_[None]).sum(2))


def test_score_is_accuracy_over_labeled_rows_or_minus_the_hinge_distance(rows):
    X, y = rows
    hasher = fit("supervised", rows)
    hidden = np.where(np.arange(len(y)) % 2, y, -1)
    assert hasher.score(X, hidden) == pytest.approx(np.mean(hasher.predict(X)[1::2] == y[1::2]))
    assert hasher.score(X) == pytest.approx(-hasher.codeword_distances(X, "hinge").min(axis=1).mean())


@pytest.mark.parametrize("kernels", ["scaled", "paper", [NormalizedLinear(), ScaledGaussian(0.5)]])
def test_float32_rows_give_float32_scores_close_to_float64_ones(rows, kernels):
    X, y = rows
    settings = {"kernels": kernels, "random_state": 0, "svm_tol": 1e-6, "tol": 1e-5, "max_iter": 100}
    wide = StarSHL(8, **settings).fit(X, y).decision_function(X)
    narrow = StarSHL(8, **settings).fit(X.astype(np.float32), y).decision_function(X.astype(np.float32))
    assert wide.dtype == np.float64
    assert narrow.dtype == np.float32
    assert np.abs(wide - narrow).max() < 5e-3
