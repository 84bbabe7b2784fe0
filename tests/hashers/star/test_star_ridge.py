"""StarRidge: codes, lengths, labels, files and everything that users of scikit-learn expect."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import starshl
from starshl import BinaryCodes, StarRidge
from starshl.evaluation import precision_at
from starshl.hashers.star import compression, ridge_training
from starshl.learning.kernels import Gaussian, rich_kernels
from starshl.learning.kernels.choice import fit_kernels
from starshl.learning.kernels.vector_bank import VectorBank
from starshl.learning.solvers import iterated_ridge
from starshl.learning.solvers.leave_one_out import Mixture
from starshl.learning.solvers.ridge import RidgeFactor


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture(scope="module")
def fitted(digits):
    X, y = digits
    return StarRidge(16, random_state=0).fit(X[:400], y[:400])


def test_shapes_and_types_of_everything_learned(fitted, digits):
    X, _ = digits
    assert fitted.codewords_.shape == (10, 16)
    assert fitted.codewords_.dtype == np.int8
    assert fitted.kernel_weights_.shape == (8,)
    assert fitted.kernel_weights_.sum() == pytest.approx(1.0)
    assert fitted.dual_coef_.shape == (10, 400)
    assert fitted.training_scores_.shape == (400, 10)
    assert len(fitted.training_codes_) == 400
    assert fitted.decision_function(X[:7]).shape == (7, 16)
    assert fitted.class_scores(X[:7]).shape == fitted.predict_proba(X[:7]).shape == (7, 10)
    assert is_classifier(fitted)
    for word in ("400 rows of 10 classes", "kernels", "ridge", "temperature", "leave-one-out accuracy"):
        assert word in fitted.choice_


def test_neighbors_by_code_and_predictions_are_right(fitted, digits):
    X, y = digits
    assert fitted.score(X[400:], y[400:]) > 0.92
    assert precision_at(fitted.encode(X[400:]), fitted.encode_database(X[:400], y[:400]), y[400:], y[:400]) > 0.92


def test_probabilities_decide_and_sum_to_one(fitted, digits):
    X, _ = digits
    shares = fitted.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(fitted.classes_[shares.argmax(axis=1)], fitted.predict(X))


def test_score_without_labels_is_the_mean_log_probability(fitted, digits):
    X, _ = digits
    assert fitted.score(X[:50]) == pytest.approx(np.log(fitted.predict_proba(X[:50]).max(axis=1)).mean())


def test_scores_of_training_rows_are_those_of_a_fit_without_them(digits):
    X, y = digits
    hasher = StarRidge(8, kernels=[Gaussian(1.5)], random_state=0).fit(X[:80], y[:80])
    constant = np.median(hasher.intercept_ / hasher.dual_coef_.sum(axis=1))
    matrix = hasher.kernel_weights_[0] * Gaussian(1.5)(X[:80], X[:80]) + constant
    for row in (0, 17, 79):
        others = np.delete(np.arange(80), row)
        ridged = matrix[np.ix_(others, others)] + hasher.ridge_ * np.eye(79)
        refit = np.linalg.solve(ridged, np.eye(10)[y[others]])
        np.testing.assert_allclose(hasher.training_scores_[row], matrix[row, others] @ refit, atol=1e-4)


@pytest.mark.parametrize("n_bits", [1, 5, 8, 40])
def test_another_length_is_the_fit_of_that_length(digits, tmp_path, n_bits):
    X, y = digits
    y = np.minimum(y, 1) if n_bits == 1 else y
    long, short = (StarRidge(b, random_state=3).fit(X[:150], y[:150]) for b in (32, n_bits))
    short.save(tmp_path / "fitted.star")
    long.with_bits(n_bits).save(tmp_path / "shortened.star")
    assert (tmp_path / "fitted.star").read_bytes() == (tmp_path / "shortened.star").read_bytes()


def test_another_length_shares_arrays_and_leaves_the_first_one_alone(fitted, digits):
    X, _ = digits
    before = fitted.encode(X[:50])
    other = fitted.with_bits(4)
    assert other.dual_coef_ is fitted.dual_coef_
    assert other.encode(X[:50]).n_bits == 4
    assert fitted.encode(X[:50]) == before
    assert np.array_equal(other.predict(X), fitted.predict(X))


def test_codewords_may_be_given(fitted):
    codewords = np.where(np.arange(10)[:, None] >> np.arange(4) & 1, 1, -1)
    other = fitted.with_bits(4, codewords)
    assert np.array_equal(other.codewords_, codewords)
    again = other.with_bits(16)  # the given ones have the wrong length
    assert again.codewords == "separated"
    assert np.array_equal(again.codewords_, fitted.codewords_)
    with pytest.raises(ValueError, match=r"codewords has shape \(10, 4\)"):
        fitted.with_bits(5, codewords)


@pytest.mark.parametrize("n_bits", [0, 2.5, "8"])
def test_impossible_lengths_are_refused(fitted, n_bits):
    with pytest.raises(ValueError, match="n_bits is"):
        fitted.with_bits(n_bits)


def test_items_get_the_codeword_of_a_known_label_and_a_code_otherwise(fitted, digits):
    X, _ = digits
    y = np.array([3, -1, 77, 0])  # 77 is no class of the fit
    codes, alone = fitted.encode_database(X[400:404], y), fitted.encode_database(X[400:404])
    assert codes[[0, 3]] == BinaryCodes.from_signs(fitted.codewords_[[3, 0]])
    assert codes[[1, 2]] == alone[[1, 2]]


def test_training_codes_are_the_codewords_of_the_labels(fitted, digits):
    _, y = digits
    assert fitted.training_codes_ == BinaryCodes.from_signs(fitted.codewords_[y[:400]])
    assert np.array_equal(fitted.transduction_, y[:400])


def test_linear_head_is_ridge_regression_onto_codewords(digits):
    X, y = digits
    hasher = StarRidge(12, head="linear", random_state=0).fit(X[:200], y[:200])
    np.testing.assert_allclose(hasher.decision_function(X[:9]), hasher.class_scores(X[:9]) @ hasher.codewords_)
    assert hasher.encode_database(X[:9]) == hasher.encode(X[:9])
    assert hasher.predict_proba(X[:9]).shape == (9, 10)


def test_rows_of_weight_zero_are_absent(digits):
    X, y = digits
    weights = np.where(np.arange(120) < 100, 1.0, 0.0)
    relabeled = np.where(np.arange(120) < 100, y[:120], 99)
    weighted = StarRidge(8, random_state=0).fit(X[:120], relabeled, sample_weight=weights)
    alone = StarRidge(8, random_state=0).fit(X[:100], y[:100])
    assert weighted.decision_function(X).tobytes() == alone.decision_function(X).tobytes()
    assert weighted.transduction_.shape == (120,)
    assert weighted.dual_coef_.shape == (10, 120)


def test_heavier_rows_are_fitted_more_closely(digits):
    X, y = digits
    X, y = X[:200], y[:200].copy()
    wrong = np.arange(0, 200, 10)
    y[wrong] = (y[wrong] + 1) % 10
    agreements = [
        StarRidge(8, random_state=0)
        .fit(X, y, sample_weight=np.where(np.isin(np.arange(200), wrong), w, 1.0))
        .predict(X)
        for w in (0.01, 100.0)
    ]
    assert np.mean(agreements[0][wrong] == y[wrong]) < np.mean(agreements[1][wrong] == y[wrong])


def test_one_class_warns_and_gives_its_codeword(digits):
    X, _ = digits
    with pytest.warns(UserWarning, match="only one class"):
        hasher = StarRidge(8, random_state=0).fit(X[:30], np.full(30, 7))
    assert hasher.encode(X[:5]) == BinaryCodes.from_signs(np.repeat(hasher.codewords_, 5, axis=0))
    assert np.array_equal(hasher.predict_proba(X[:5]), np.ones((5, 1)))


def test_more_classes_than_codes_warn_and_predict_all_classes(digits):
    X, y = digits
    with pytest.warns(UserWarning, match=r"10 codewords.*2 bits"):
        hasher = StarRidge(2, random_state=0).fit(X[:300], y[:300])
    assert len(np.unique(hasher.codewords_, axis=0)) == 4
    assert hasher.score(X[300:], y[300:]) > 0.9


@pytest.mark.parametrize(
    ("n_rows", "dtype"), [(2, np.float64), (2, np.float32), (3, np.int64), (25, np.float32), (750, np.float32)]
)
def test_any_number_of_rows_of_any_type_is_enough(digits, n_rows, dtype):
    X, y = digits
    rows, labels = (16 * X[:n_rows]).astype(dtype), np.arange(n_rows) % 2 if n_rows < 10 else y[:n_rows]
    hasher = StarRidge(5, random_state=0).fit(rows, labels)
    assert np.isfinite(hasher.decision_function(rows)).all()
    assert hasher.decision_function(rows).dtype == (np.float32 if dtype == np.float32 else np.float64)


def test_awkward_training_sets_are_fitted(digits):
    X, y = digits
    X, y = X[:120].copy(), y[:120].copy()
    X[:, 3] = 5.0  # constant
    X[60:80] = X[:20]  # equal rows
    X[90] = 0.0
    y[100] = 42  # a class of one row
    hasher = StarRidge(8, random_state=0).fit(X, y)
    assert np.isfinite(hasher.decision_function(X)).all()
    assert hasher.classes_.tolist()[-1] == 42


def test_rows_that_are_all_equal_are_fitted():
    hasher = StarRidge(4, random_state=0).fit(np.ones((20, 3)), np.arange(20) % 2)
    np.testing.assert_allclose(hasher.predict_proba(np.ones((2, 3))), 0.5, atol=0.05)


def test_no_labels_are_refused_with_a_way_out_if_unlabeled_rows_are_ignored(digits):
    X, _ = digits
    with pytest.raises(ValueError, match="StarRidge requires y"):
        StarRidge(8, unlabeled="ignore").fit(X)
    with pytest.raises(ValueError, match="StarRidge needs some labeled rows"):
        StarRidge(8, unlabeled="ignore").fit(X, np.full(len(X), -1))


def test_weights_of_zero_on_all_labels_are_refused(digits):
    X, y = digits
    weights = np.zeros(30)
    weights[0] = 1.0
    labels = y[:30].copy()
    labels[0] = -1
    with pytest.raises(ValueError, match="sample_weight of zero"):
        StarRidge().fit(X[:30], labels, sample_weight=weights)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"head": "soft"}, "head is 'soft'"),
        ({"unlabeled": "nearest"}, "unlabeled is 'nearest'"),
        ({"max_exact_rows": 0}, "max_exact_rows is 0"),
        ({"n_codewords": 3}, "n_codewords is 3"),
        ({"kernels": "poor"}, "kernels is 'poor'"),
    ],
)
def test_impossible_settings_are_refused(digits, setting, message):
    X, y = digits
    with pytest.raises(ValueError, match=message):
        StarRidge(**setting).fit(X[:60], y[:60])


@pytest.mark.parametrize("kernels", ["scaled", "paper", [Gaussian(2.0), lambda a, b: float(a @ b)]])
def test_other_kernels_work(digits, kernels):
    X, y = digits
    hasher = StarRidge(8, kernels=kernels, random_state=0).fit(X[:120], y[:120])
    assert hasher.score(X[120:300], y[120:300]) > 0.8


def test_sparse_rows_give_the_codes_of_dense_ones(fitted, digits):
    X, y = digits
    sparse = StarRidge(16, random_state=0).fit(csr_array(X[:400]), y[:400])
    np.testing.assert_allclose(sparse.class_scores(csr_array(X)), fitted.class_scores(X), atol=1e-5)


def common_letters(first, second):
    return float(len(set(first) & set(second)))


def test_strings_are_fitted_saved_and_loaded_with_their_kernel(tmp_path):
    words = ["aaa", "aab", "aba", "abb", "xyz", "xzz", "yxz", "zyy"] * 3
    labels = ["left" if word < "c" else "right" for word in words]
    hasher = StarRidge(8, kernels=[common_letters], random_state=0).fit(words, labels)
    assert hasher.predict(["ab", "zy"]).tolist() == ["left", "right"]
    hasher.save(tmp_path / "words.star")
    with pytest.raises(ValueError, match="kernels given as functions"):
        starshl.load(tmp_path / "words.star")
    loaded = starshl.load(tmp_path / "words.star", kernels=[common_letters])
    assert np.array_equal(loaded.decision_function(words), hasher.decision_function(words))


def test_precomputed_kernels_give_the_codes_of_the_kernel(digits):
    X, y = digits
    kernel = Gaussian(1.5)
    on_rows = StarRidge(8, kernels=[kernel], random_state=0).fit(X[:150], y[:150])
    given = StarRidge(8, kernels="precomputed", random_state=0).fit(kernel(X[:150], X[:150]), y[:150])
    scores = given.decision_function(kernel(X[150:200], X[:150]))
    np.testing.assert_allclose(scores, on_rows.decision_function(X[150:200]), atol=1e-6)


def test_pipelines_clones_frames_and_cross_validation_work(digits):
    X, y = digits
    frame = pd.DataFrame(X[:200], columns=[f"pixel {i}" for i in range(64)])
    pipeline = make_pipeline(StandardScaler(), StarRidge(8, random_state=0)).fit(frame, y[:200])
    assert pipeline.score(frame, y[:200]) > 0.9
    assert cross_val_score(clone(StarRidge(8, random_state=0)), X[:200], y[:200], cv=3).mean() > 0.85


@pytest.mark.parametrize("head", ["posterior", "linear"])
def test_compressed_hasher_gives_nearly_the_same_codes(digits, tmp_path, head, monkeypatch):
    monkeypatch.setattr(compression, "MIN_STEPS", 1000)
    X, y = digits
    hasher = StarRidge(16, head=head, random_state=0).fit(X[:300], y[:300])
    small = hasher.compress(60)
    assert len(small.support_) == 60
    agreement = np.mean(small.transform(X[300:]) == hasher.transform(X[300:]))
    assert agreement > 0.9
    assert small.agreement_ == pytest.approx(agreement, abs=0.08)
    assert small.training_codes_ == hasher.training_codes_
    small.with_bits(8).save(tmp_path / "small.star")
    assert starshl.load(tmp_path / "small.star").with_bits(16).encode(X[:60]) == small.encode(X[:60])


def test_compressed_strings_keep_their_kernel():
    words = ["aaa", "aab", "aba", "abb", "xyz", "xzz", "yxz", "zyy"] * 4
    hasher = StarRidge(8, kernels=[common_letters], random_state=0).fit(words, [word < "c" for word in words])
    small = hasher.compress(4)
    assert set(small.support_samples_) <= set(words)
    assert np.array_equal(small.predict(words), hasher.predict(words))


def test_same_seed_gives_the_same_file_for_any_number_of_threads(digits, tmp_path):
    X, y = digits
    rng = np.random.default_rng(0)
    X = X[:800] + 0.01 * rng.standard_normal((800, 64))
    for n_jobs in (1, 3):
        hasher = StarRidge(8, n_jobs=n_jobs, random_state=5).fit(X, y[:800])
        hasher.set_params(n_jobs=None).save(tmp_path / f"{n_jobs}.star")
    assert (tmp_path / "1.star").read_bytes() == (tmp_path / "3.star").read_bytes()


def test_float32_rows_are_fitted_in_float64_where_rounding_exceeds_the_ridge(monkeypatch):
    X = np.random.default_rng(5).uniform(-1, 1, (600, 1)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    found = Mixture(weights=np.full(8, 1 / 8), constant=0.01, ridge=1e-5, temperature=5.0)
    monkeypatch.setattr(ridge_training, "search_mixture", lambda *_: found)
    gram = VectorBank(fit_kernels(rich_kernels(), X), X).combine(found.weights) + np.float32(found.constant)
    with pytest.raises(np.linalg.LinAlgError):
        RidgeFactor(gram, found.ridge)
    assert StarRidge(4, random_state=0).fit(X, y).score(X, y) > 0.99


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_from_a_number_of_rows_on_steps_find_what_a_factorization_finds(digits, tmp_path, monkeypatch, precision):
    X, y = digits
    X = X.astype(precision)
    weights = np.random.default_rng(0).uniform(0.2, 1.0, 800)
    monkeypatch.setattr(iterated_ridge, "LANDMARKS", 100)
    monkeypatch.setattr(iterated_ridge, "BLOCK_ROWS", 150)
    monkeypatch.setattr(ridge_training, "ITERATED_ROWS", 801)
    exact = StarRidge(16, random_state=0).fit(X[:800], y[:800], weights)
    monkeypatch.setattr(ridge_training, "ITERATED_ROWS", 800)
    for n_jobs in (1, 3):
        found = StarRidge(16, random_state=0, n_jobs=n_jobs).fit(X[:800], y[:800], weights)
        found.set_params(n_jobs=None).save(tmp_path / f"{n_jobs}.star")
    assert (tmp_path / "1.star").read_bytes() == (tmp_path / "3.star").read_bytes()
    assert "conjugate gradients with leave-one-out scores that are approximate" in found.choice_
    assert "conjugate" not in exact.choice_
    queries = X[800:]
    assert np.mean(found.predict(queries) == exact.predict(queries)) > 0.995
    assert abs(found.score(queries, y[800:]) - exact.score(queries, y[800:])) <= 0.002
    losses = [log_loss(y[800:], hasher.predict_proba(queries)) for hasher in (found, exact)]
    assert losses[0] < losses[1] + 0.01
    assert np.mean(found.predict_training(X[:800]) == exact.predict_training(X[:800])) > 0.98
    np.testing.assert_allclose(found.novelty(queries), exact.novelty(queries), atol=0.15)


def test_many_classes_are_factorized_at_any_number_of_rows(digits, monkeypatch):
    X, y = digits
    monkeypatch.setattr(ridge_training, "ITERATED_ROWS", 100)
    assert "conjugate" not in StarRidge(8, random_state=0).fit(X[:599], y[:599]).choice_
    assert "conjugate" in StarRidge(8, random_state=0).fit(X[:600], y[:600]).choice_


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_what_grows_with_rows_and_classes_is_as_precise_as_the_rows(digits, tmp_path, precision):
    X, y = digits
    hasher = StarRidge(8, random_state=0).fit(X[:200].astype(precision), y[:200])
    assert hasher.dual_coef_.dtype == precision
    assert hasher.training_scores_.dtype == np.float32
    hasher.save(tmp_path / "digits.star")
    assert starshl.load(tmp_path / "digits.star").dual_coef_.dtype == precision


def test_the_choice_counts_one_of_a_kind_in_the_singular():
    X = np.linspace(0.0, 1.0, 12)[:, None]
    with pytest.warns(UserWarning, match="only one class"):
        one = StarRidge(8, kernels=[Gaussian(1.0)], random_state=0).fit(X, np.zeros(12, dtype=int)).choice_
    assert one.startswith("12 rows of 1 class; 1 of 1 kernel;")
    pair = StarRidge(8, random_state=0).fit(X[:2]).choice_
    assert "1 cluster of the graph of 1 neighbor," in pair
