"""StarRidge above max_exact_rows: against the exact fit, and the same bytes from every kind of input."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from starshl import StarRidge, load
from starshl.data.tables import ParquetRows, TableError
from starshl.hashers.star import landmarks
from starshl.hashers.star.ridge_training import search_mixture
from starshl.learning.kernels import ScaledGaussian


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make a few hundred rows several blocks: searches for kernel weights take seconds on more."""
    monkeypatch.setattr(landmarks, "BLOCK_ROWS", 100)


def overlapping_classes(n_rows=260, dtype=np.float64, seed=0):
    """Return rows of three classes that no classifier can tell apart completely."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 3
    return (rng.standard_normal((n_rows, 5)) + 0.8 * np.eye(5)[y]).astype(dtype), y


def fit(X, y, **params):
    return StarRidge(16, random_state=0, **params).fit(X, y)


def assert_same_model(first, second):
    for name in ("support_", "dual_coef_", "intercept_", "training_scores_", "kernel_weights_"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name
    assert first.temperature_ == second.temperature_
    np.testing.assert_array_equal(first.training_codes_.packed, second.training_codes_.packed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_rows_as_landmarks_are_the_exact_solution(dtype, weighted):
    X, y = overlapping_classes(dtype=dtype)
    queries, _ = overlapping_classes(400, dtype, seed=1)
    weights = np.random.default_rng(2).uniform(0.2, 2.0, len(y)) if weighted else None
    exact = StarRidge(16, random_state=0, max_exact_rows=260).fit(X, y, weights)
    other = StarRidge(16, random_state=0, max_exact_rows=259, n_landmarks=260).fit(X, y, weights)
    assert "landmarks" in other.choice_
    assert "landmarks" not in exact.choice_
    np.testing.assert_array_equal(other.kernel_weights_, exact.kernel_weights_)
    np.testing.assert_allclose(other.class_scores(queries), exact.class_scores(queries), atol=2e-3)
    np.testing.assert_allclose(other.training_scores_, exact.training_scores_, atol=2e-3)
    assert other.temperature_ == pytest.approx(exact.temperature_, rel=2e-3)
    assert np.mean(other.transform(queries) == exact.transform(queries)) > 0.995  # scores near zero may round apart
    np.testing.assert_array_equal(other.transduction_, exact.transduction_)


def test_leave_one_out_scores_are_those_of_fits_on_the_other_rows():
    X, y = overlapping_classes(90)
    hasher = fit(X, y, max_exact_rows=50, n_landmarks=30)
    Z = hasher.support_samples_
    K, K_Z = (sum(w * k(A, Z) for w, k in zip(hasher.kernel_weights_, hasher.kernels_, strict=True)) for A in (X, Z))
    # The constant kernel shows in the intercept; its weight is not an attribute, so it is recovered from the fit.
    projected = K @ np.linalg.solve(K_Z + 1e-6 * np.eye(30), K.T)
    targets = np.eye(3)[y]
    constant = _constant(projected, targets, hasher)
    for row in range(0, 90, 7):
        others = np.delete(np.arange(90), row)
        matrix = projected[np.ix_(others, others)] + constant + hasher.ridge_ * np.eye(89)
        refitted = (projected[row, others] + constant) @ np.linalg.solve(matrix, targets[others])
        np.testing.assert_allclose(hasher.training_scores_[row], refitted, atol=2e-3)


def _constant(projected, targets, hasher):
    """Return the weight of the constant kernel that gives the intercept of the fit."""
    from scipy.optimize import brentq

    def excess(log):
        constant = np.exp(log)
        dual = np.linalg.solve(projected + constant + hasher.ridge_ * np.eye(len(targets)), targets)
        return (constant * dual.sum(axis=0) - hasher.intercept_)[0]

    return float(np.exp(brentq(excess, -8, 6)))


def test_few_landmarks_are_nearly_as_accurate_as_all_rows():
    X, y = overlapping_classes(450)
    queries, truth = overlapping_classes(1000, seed=1)
    exact = fit(X, y)
    other = fit(X, y, max_exact_rows=400, n_landmarks=100)
    assert len(other.support_) == 100
    assert other.score(queries, truth) >= exact.score(queries, truth) - 0.03
    assert other.training_scores_.shape == (450, 3)
    np.testing.assert_array_equal(other.transduction_, y)


@pytest.mark.parametrize("n_landmarks", [300, 600])
def test_probabilities_of_new_rows_are_right_though_landmarks_left_out_are_no_such_rows(n_landmarks):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = (X + np.random.default_rng(1).normal(0, 5, X.shape))[order], y[order]
    posteriors = fit(X[:900], y[:900], max_exact_rows=800, n_landmarks=n_landmarks).predict_proba(X[900:])
    assert posteriors.max(axis=1).mean() == pytest.approx((posteriors.argmax(axis=1) == y[900:]).mean(), abs=0.04)


def test_classes_meet_where_half_of_the_landmarks_are():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 2))
    hasher = fit(X, (X[:, 0] > 0).astype(int), kernels=[ScaledGaussian(0.5)], max_exact_rows=5000, n_landmarks=100)
    assert np.sum(np.abs(hasher.support_samples_[:, 0]) < 0.1) > 40  # of random ones, about ten


def test_threads_and_kinds_of_input_give_the_same_bytes(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = overlapping_classes(330, np.float32)
    np.save(tmp_path / "rows.npy", X)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    pq.write_table(pa.table({"v": vectors}), tmp_path / "rows.parquet")
    params = {"max_exact_rows": 300, "n_landmarks": 60}
    expected = fit(X, y, **params)
    assert_same_model(fit(X, y, n_jobs=2, **params), expected)
    assert_same_model(fit(np.load(tmp_path / "rows.npy", mmap_mode="r"), y, **params), expected)
    assert_same_model(fit(ParquetRows(tmp_path / "rows.parquet", ["v"]), y, **params), expected)
    assert_same_model(fit(X.tolist(), y, **params), fit(X.astype(np.float64), y, **params))


def test_small_integers_are_the_same_as_their_float32(tmp_path):
    X, y = overlapping_classes(330)
    X = np.round(40 * X).astype(np.int8)
    params = {"max_exact_rows": 300, "n_landmarks": 50}
    assert_same_model(fit(X, y, **params), fit(X.astype(np.float32), y, **params))


def test_sparse_rows_take_landmarks():
    X, y = overlapping_classes(330)
    X = np.maximum(X, 0)
    params = {"max_exact_rows": 300, "n_landmarks": 50}
    sparse, dense = fit(csr_array(X), y, **params), fit(X, y, **params)
    np.testing.assert_allclose(sparse.class_scores(csr_array(X)), dense.class_scores(X), atol=1e-4)


def test_unlabeled_rows_get_scores_from_landmarks():
    X, y = overlapping_classes(400)
    labels = y.copy()
    labels[330:] = -1
    hasher = fit(X, labels, max_exact_rows=300, n_landmarks=80, unlabeled="ignore")
    np.testing.assert_allclose(hasher.training_scores_[330:], hasher.class_scores(X[330:]), atol=1e-4)
    assert len(hasher.training_codes_) == 400


def test_a_model_over_landmarks_survives_a_file(tmp_path):
    X, y = overlapping_classes(330)
    hasher = fit(X, y, max_exact_rows=300, n_landmarks=50)
    hasher.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.encode(X).packed, hasher.encode(X).packed)
    np.testing.assert_array_equal(again.training_codes_.packed, hasher.training_codes_.packed)
    assert again.with_bits(8).encode(X).n_bits == 8


def test_a_bad_entry_of_a_memory_map_is_refused_with_file_and_row(tmp_path):
    X, y = overlapping_classes(330)
    X[231, 2] = np.inf
    np.save(tmp_path / "rows.npy", X)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    with pytest.raises(TableError, match=r"rows.npy'.*column 2.*row 231"):
        fit(rows, y, max_exact_rows=300, n_landmarks=50)


def test_too_many_landmarks_for_the_memory_are_refused():
    X, y = overlapping_classes(330)
    with pytest.raises(MemoryError, match=r"320 landmarks.*n_landmarks"):
        fit(X, y, max_exact_rows=300, n_landmarks=320, max_memory=0.001)


def test_the_ridge_is_lowered_as_long_as_rows_left_out_are_predicted_better(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (1200, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2  # a chessboard
    y = np.where(rng.random(1200) < 0.2, 1 - y, y)

    def search_with_a_large_ridge(*args):
        return replace(search_mixture(*args), ridge=300.0)

    monkeypatch.setattr(landmarks, "search_mixture", search_with_a_large_ridge)
    params = {"kernels": [ScaledGaussian(0.3)], "max_exact_rows": 1000, "n_landmarks": 200}
    lowered = fit(X, y, **params)
    monkeypatch.setattr(landmarks, "RIDGE_STEP", np.inf)
    searched = fit(X, y, **params)
    assert searched.ridge_ == 300
    assert lowered.ridge_ < 100
    assert _log_loss(lowered, y) < _log_loss(searched, y)


def _log_loss(hasher, y):
    """Return the log loss of scores without the row itself."""
    return landmarks._log_loss(hasher.training_scores_.astype(np.float64), y, np.ones(len(y)))


def test_a_progress_bar_names_the_landmarks(capsys):
    X, y = overlapping_classes(330)
    fit(X, y, max_exact_rows=300, n_landmarks=50, verbose=1)
    shown = capsys.readouterr().err
    assert "50 landmarks, learning" in shown
    assert "330/330" in shown
