"""None of these: rows of no known class are recognized, and known rows are rejected as often as was asked for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

import starshl
from starshl import HybridHasher, StarRidge, StarSHL
from starshl.hashers.star import compression
from starshl.hashers.star.expansion import Expansion
from starshl.hashers.star.novelty import (
    NoveltyRule,
    NoveltyTraining,
    distances_to_support,
    marked_labels,
    nearest_distances,
    unexplained,
)
from starshl.hashers.star.samples import Vectors
from starshl.learning.kernels import Gaussian, SpectrumKernel

DIGITS, LABELS = load_digits(return_X_y=True)
# In their own order, the last digits are by other writers than the first.
KNOWN = np.random.default_rng(0).permutation(np.flatnonzero(~np.isin(LABELS, (2, 7))))
TRAIN, UNSEEN = KNOWN[:600], KNOWN[600:]
NOVEL = np.flatnonzero(np.isin(LABELS, (2, 7)))


@pytest.fixture(scope="module")
def hashers():
    ridge = StarRidge(16, random_state=0).fit(DIGITS[TRAIN], LABELS[TRAIN])
    return {
        "ridge": ridge,
        "landmarks": StarRidge(16, max_exact_rows=100, n_landmarks=200, random_state=0).fit(
            DIGITS[TRAIN], LABELS[TRAIN]
        ),
        "hinge": StarSHL(8, random_state=0).fit(DIGITS[TRAIN], LABELS[TRAIN]),
    }


@pytest.fixture(scope="module")
def blobs():
    """Three clouds of 12 rows in the plane, whose corners of a triangle are 6 apart, and their classes."""
    y = np.repeat(np.arange(3), 12)
    corners = 6.0 * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.9]])
    return np.random.default_rng(0).normal(size=(36, 2)) + corners[y], y


@pytest.mark.parametrize("name", ["ridge", "landmarks", "hinge"])
def test_about_one_known_row_in_twenty_is_rejected_at_five_percent(name, hashers):
    rejected = np.mean(hashers[name].predict(DIGITS[UNSEEN], reject=0.05) == -1)
    # 600 training rows and 840 unseen ones: the deviation is sqrt(.05 * .95 * (1 / 600 + 1 / 840)) = .012.
    assert 0.02 < rejected < 0.09


@pytest.mark.parametrize("name", ["ridge", "landmarks", "hinge"])
def test_classes_that_were_left_out_are_recognized_at_least_as_well_as_by_distances(name, hashers):
    queries = DIGITS[np.concatenate([UNSEEN, NOVEL])]
    is_novel = np.repeat([0, 1], [len(UNSEEN), len(NOVEL)])
    found = roc_auc_score(is_novel, hashers[name].novelty(queries))
    distances = NearestNeighbors(n_neighbors=10).fit(DIGITS[TRAIN]).kneighbors(queries)[0]
    by_distance = max(roc_auc_score(is_novel, distances[:, k - 1]) for k in (1, 5, 10))
    # Landmarks are compared with 200 rows only. The others err by the draw of the training rows.
    assert found > (0.97 if name == "landmarks" else by_distance - 0.003)


def test_the_share_counts_training_rows_that_look_more_familiar():
    line = Expansion(
        Vectors, [Gaussian(1.0)], np.ones(1), np.array([0]), np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1)
    )
    rule = NoveltyRule(1.0, 1, np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.1, 0.2, 1.5]))
    # Distances to the support row 0 under the kernel: 0, and sqrt(2 - 2 exp(-1 / 2)) = .887.
    shares = rule.shares(Vectors(np.array([[0.0], [1.0]])), line)
    assert shares.tolist() == [0.0, 0.5]  # none and 2 of 3 training rows; the row itself is the fourth


def test_calibration_measures_each_row_by_a_fit_without_it(blobs):
    X, y = blobs
    hasher = StarRidge(8, random_state=0).fit(X, y)
    rule, expansion = NoveltyRule.of(hasher), hasher.expansion
    constant = hasher.intercept_[0] / hasher.dual_coef_[0].sum()
    measures = []
    for row in range(len(X)):
        others = np.delete(np.arange(len(X)), row)
        among = replace(expansion, support=others, support_samples=X[others])
        values, distances = distances_to_support(Vectors(X), among)
        gram = values[others] + constant + hasher.ridge_ * np.eye(len(others))
        scores = (values[row] + constant) @ np.linalg.solve(gram, np.eye(3)[y[others]])
        nearest = np.sort(distances[row])[rule.n_neighbors - 1]
        measures.append(rule.measure(unexplained(scores[None]), np.array([nearest]))[0])
    np.testing.assert_allclose(np.sort(measures), hasher.novelty_calibration_, rtol=1e-3, atol=1e-3)


def test_of_many_classes_that_overlap_as_many_known_rows_are_rejected_as_was_said():
    rng = np.random.default_rng(5)
    centers = rng.normal(size=(20, 16))

    def draw(n_rows):
        y = rng.integers(0, 20, n_rows)
        return centers[y] + 0.7 * rng.normal(size=(n_rows, 16)), y

    hasher = StarRidge(16, kernels="scaled", random_state=0).fit(*draw(4000))
    novelty = hasher.novelty(draw(8000)[0])
    shares = [np.mean(novelty >= 1 - share) for share in (0.05, 0.1, 0.2)]
    assert shares == pytest.approx([0.05, 0.1, 0.2], abs=0.01)


def test_a_class_is_left_out_as_if_the_fit_had_not_seen_it(blobs):
    X, y = blobs
    hasher = StarRidge(8, random_state=0).fit(X, y)
    expansion, constant = hasher.expansion, 0.7
    training = NoveltyTraining(Vectors(X), np.arange(36), y, np.zeros((36, 3)), expansion, y, 0.1, constant)
    _, novel = training._trial_measures(np.arange(36))
    values = (
        distances_to_support(Vectors(X), replace(expansion, support=np.arange(36), support_samples=X))[0] + constant
    )
    for own in range(3):
        kept = np.flatnonzero(y != own)
        gram = values[np.ix_(kept, kept)] + 0.1 * np.eye(len(kept))
        scores = values[np.ix_(y == own, kept)] @ np.linalg.solve(gram, np.eye(3)[y[kept]])
        np.testing.assert_allclose(novel[y == own], unexplained(np.delete(scores, own, axis=1)), atol=1e-6)


def test_nearest_distances_are_those_of_sorted_rows():
    distances = np.random.default_rng(0).random((5, 40))
    np.testing.assert_array_equal(nearest_distances(distances, (1, 3, 30)), np.sort(distances, axis=1)[:, [0, 2, 29]])


def test_a_row_far_away_is_new_and_a_training_row_is_not(blobs):
    X, y = blobs
    for hasher in (StarRidge(8, random_state=0).fit(X, y), StarSHL(8, random_state=0).fit(X, y)):
        assert hasher.novelty(np.array([[80.0, -60.0]]))[0] == pytest.approx(36 / 37)
        assert np.median(hasher.novelty(X)) < 0.6


@pytest.mark.parametrize(
    ("labels", "mark"),
    [
        (np.array([0, 1]), -1),
        (np.array([0, 1], np.uint8), -1),
        (np.array(["no", "yes"]), ""),
        (np.array([b"no", b"yes"]), b""),
        (np.array(["no", "yes"], object), None),
        (np.array([False, True]), None),
    ],
)
def test_rejected_rows_are_marked_as_unlabeled_ones_are(labels, mark):
    marked = marked_labels(labels, np.array([False, True])).tolist()
    assert marked == [labels.tolist()[0], mark]


def test_rejected_rows_among_floats_are_nan():
    assert np.isnan(marked_labels(np.array([0.0, 1.0]), np.array([False, True]))).tolist() == [False, True]


def test_rejection_changes_no_other_prediction(hashers):
    hasher = hashers["ridge"]
    kept, free = hasher.predict(DIGITS[UNSEEN], reject=0.2), hasher.predict(DIGITS[UNSEEN])
    assert (kept == free)[kept != -1].all()
    assert (hasher.predict(DIGITS[UNSEEN], reject=0) == free).all()
    assert (hasher.predict(DIGITS[UNSEEN], reject=1) == -1).all()


@pytest.mark.parametrize("reject", [-0.1, 1.5, np.nan, "often", True])
def test_a_share_that_is_none_is_refused(reject, hashers):
    with pytest.raises(ValueError, match="reject"):
        hashers["ridge"].predict(DIGITS[:3], reject=reject)


def test_novelty_needs_a_fit():
    with pytest.raises(NotFittedError):
        StarRidge().novelty(DIGITS[:3])


@pytest.mark.filterwarnings("ignore:With .* support rows")
@pytest.mark.parametrize("method", [StarRidge, StarSHL])
def test_a_compressed_hasher_has_no_rows_to_compare_with_and_says_so(method, blobs, tmp_path, monkeypatch):
    monkeypatch.setattr(compression, "MIN_STEPS", 20)
    X, y = blobs
    small = method(8, random_state=0).fit(X, y).compress(4)
    small.save(tmp_path / "small")
    for hasher in (small, starshl.load(tmp_path / "small")):
        with pytest.raises(ValueError, match="compressed"):
            hasher.novelty(X)


def test_another_length_has_the_same_novelty(hashers):
    hasher = hashers["ridge"]
    np.testing.assert_array_equal(hasher.with_bits(8).novelty(DIGITS[:50]), hasher.novelty(DIGITS[:50]))


@pytest.mark.parametrize("method", [StarRidge, StarSHL])
@pytest.mark.parametrize("kind", ["rows", "sparse", "strings", "precomputed"])
def test_novelty_survives_a_file_for_samples_of_every_kind(method, kind, blobs, tmp_path):
    X, y = blobs
    kernels = "scaled"
    if kind == "sparse":
        X = csr_array(np.maximum(X, 0.0))
    elif kind == "strings":
        rng = np.random.default_rng(0)
        X, kernels = ["".join(rng.choice(list(("ab", "cd", "ef")[label]), 6)) for label in y], [SpectrumKernel(2)]
    elif kind == "precomputed":
        X, kernels = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 4), "precomputed"
    hasher = method(8, kernels=kernels, random_state=0).fit(X, y)
    hasher.save(tmp_path / "model")
    novelty = hasher.novelty(X)
    assert novelty.shape == (36,)
    assert np.all((novelty >= 0) & (novelty < 1))
    np.testing.assert_array_equal(starshl.load(tmp_path / "model").novelty(X), novelty)


def test_novelty_does_not_depend_on_the_number_of_threads(hashers):
    for hasher in hashers.values():
        one = hasher.novelty(DIGITS)
        hasher.n_jobs = 2
        two = hasher.novelty(DIGITS)
        hasher.n_jobs = None
        np.testing.assert_array_equal(one, two)


def test_unlabeled_rows_and_clusters_have_novelty_too(blobs):
    X, y = blobs
    some = np.where(np.arange(36) % 4 == 0, y, -1)
    far = np.array([[80.0, -60.0]])
    for labels, params in ((some, {}), (None, {"n_codewords": 3})):
        for method in (StarRidge, StarSHL):
            assert method(8, random_state=0, **params).fit(X, labels).novelty(far)[0] > 0.95


@pytest.mark.filterwarnings("ignore:y has only one class")
@pytest.mark.parametrize("method", [StarRidge, StarSHL])
def test_tiny_fits_reject_nothing_they_cannot_judge(method):
    X = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert method(2, random_state=0).fit(X, [0, 1]).novelty(X).max() <= 2 / 3
    assert method(2, random_state=0).fit(X, [0, 0]).predict(100 * X, reject=0.05).tolist() == [0, 0]
    weighed = method(2, random_state=0).fit(X, [0, 0], sample_weight=[1.0, 0.0])
    assert weighed.novelty(X).tolist() == [0.0, 0.0]


def test_a_hybrid_hasher_asks_its_class_hasher(blobs):
    X, y = blobs
    hybrid = HybridHasher(4, random_state=0).fit(X, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(hybrid.novelty(X), hybrid.class_hasher_.novelty(X))
    assert hybrid.predict(np.array([[80.0, -60.0]]), reject=0.05).tolist() == [""]


def test_a_far_row_is_not_familiar_because_the_classes_have_little_to_explain_of_it():
    """Classes that share features leave much of a usual row unexplained, and little of a row without these features."""
    usual = np.array([[2.0, 0.2], [0.7, 0.2]])
    rule = NoveltyRule(0.5, 1, usual, np.empty(0))
    known, near, far = rule.measure(np.array([2.0, 2.4, 1.0]), np.array([0.7, 0.7, 1.3]))
    assert (known, near, far) == pytest.approx((0.0, 1.0, 1.5))
