"""Codes from the probabilities of any classifier: contract, out-of-fold posteriors, files, and what is refused."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import starshl
from starshl import Codebook
from starshl._common.bundle import read_bundle, write_bundle
from starshl.exceptions import BundleFormatError, MissingFunctionError
from starshl.hashers import ClassifierHasher
from starshl.testing import check_hasher

CLASSIFIERS = {
    "logistic regression": LogisticRegression(),
    "stochastic descent": SGDClassifier(loss="log_loss"),
    "discriminant analysis": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "naive Bayes": GaussianNB(var_smoothing=1e-2),
    "network": MLPClassifier(max_iter=300),
    "tree": DecisionTreeClassifier(),
    "random tree": ExtraTreeClassifier(),
    "forest": RandomForestClassifier(20),
    "random forest": ExtraTreesClassifier(20),
    "pipeline": make_pipeline(MinMaxScaler(), PCA(20, whiten=True), LogisticRegression()),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture(scope="module")
def fitted(digits):
    X, y = digits
    return {
        name: ClassifierHasher(classifier, 16, random_state=0).fit(X[:600], y[:600])
        for name, classifier in CLASSIFIERS.items()
    }


def test_it_keeps_the_contract_of_a_hasher():
    check_hasher(ClassifierHasher(n_bits=4, random_state=0))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_file_holds_the_classifier_as_data(fitted, digits, tmp_path, name):
    X, hasher = digits[0], fitted[name]
    hasher.save(tmp_path / "model")
    loaded = starshl.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), hasher.predict_proba(X))
    assert loaded.encode_database(X) == hasher.encode_database(X)
    assert loaded.training_codes_ == hasher.training_codes_
    assert loaded.space_id_ == hasher.space_id_
    assert repr(loaded.estimator) == repr(hasher.estimator)


def test_words_order_items_nearly_as_the_probabilities_themselves(fitted, digits):
    X, y = digits
    for name in ("logistic regression", "network", "forest", "pipeline"):
        hasher = fitted[name]
        asked, stored = hasher.predict_proba(X[600:1000]), hasher.predict_proba(X[1000:])
        same = y[600:1000, None] == y[1000:]
        read = hasher.words.posteriors_of(hasher.encode_database(X[1000:]))
        precisions = [
            np.take_along_axis(same, np.argsort(-(asked @ each.T), axis=1, kind="stable")[:, :50], axis=1).mean()
            for each in (stored, read)
        ]
        assert precisions[1] > precisions[0] - 0.02, name


def test_search_finds_the_class_and_says_how_likely(fitted, digits):
    X, y = digits
    hasher = fitted["forest"]
    index = hasher.make_index(hasher.encode_training(X[:600], y[:600]))
    queries = hasher.encode_queries(X[600:])
    ids = index.search(queries, 10).ids
    said, same = index.probabilities(queries, ids), y[ids] == y[600:, None]
    assert same.mean() == pytest.approx(hasher.score(X[600:], y[600:]), abs=0.005)
    assert said.mean() == pytest.approx(same.mean(), abs=0.08)


def test_posteriors_of_training_rows_are_by_classifiers_that_have_not_seen_them(digits):
    X, y = digits
    hasher = ClassifierHasher(DecisionTreeClassifier(), random_state=0).fit(X[:600], y[:600])
    assert (hasher.estimator_.predict(X[:600]) == y[:600]).all()
    seen = (hasher.training_proba().argmax(axis=1) == y[:600]).mean()
    assert seen == pytest.approx(hasher.score(X[600:], y[600:]), abs=0.06)
    assert hasher.leave_one_out()["accuracy"] == pytest.approx(seen, abs=1e-4)


def test_temperature_lowers_the_log_loss_of_unseen_rows(fitted, digits):
    X, y = digits
    for name in ("naive Bayes", "forest"):
        hasher = fitted[name]
        raw = np.clip(hasher.estimator_.predict_proba(X[600:]), 1e-6, 1)
        assert log_loss(y[600:], hasher.predict_proba(X[600:])) < log_loss(y[600:], raw / raw.sum(1, keepdims=True))


def test_frozen_classifier_stays_as_it_is_and_learns_from_rows_it_has_not_seen(digits, tmp_path):
    X, y = digits
    forest = RandomForestClassifier(30, random_state=0).fit(X[:600], y[:600])
    hasher = ClassifierHasher(FrozenEstimator(forest), 16, random_state=0).fit(X[600:900], y[600:900])
    assert hasher.estimator_ is forest
    assert hasher.temperature_ > 1
    assert hasher.score(X[900:], y[900:]) == np.mean(forest.predict(X[900:]) == y[900:])
    hasher.save(tmp_path / "model")
    assert isinstance(starshl.load(tmp_path / "model").estimator, FrozenEstimator)


def test_unlabeled_rows_are_left_out_of_the_fit_and_coded_by_their_posterior(digits):
    X, y = digits
    some = np.where(np.arange(600) % 3 == 0, -1, y[:600])
    hasher = ClassifierHasher(LogisticRegression(), 16, random_state=0).fit(X[:600], some)
    np.testing.assert_allclose(
        hasher.estimator_.coef_, clone(LogisticRegression()).fit(X[:600][some >= 0], some[some >= 0]).coef_, atol=1e-6
    )
    codes = hasher.training_codes_
    assert (hasher.words.columns_of(codes) == some).all()
    assert codes[some < 0] == hasher.encode_database(X[:600][some < 0])


def test_another_length_is_that_of_another_fit(fitted, digits):
    X, y = digits
    longer = fitted["logistic regression"].with_bits(24)
    assert longer.encode(X) == ClassifierHasher(LogisticRegression(), 24, random_state=0).fit(X[:600], y[:600]).encode(
        X
    )


def test_same_seed_gives_the_same_codes_whatever_the_classifier_draws(fitted, digits):
    X, y = digits
    again = ClassifierHasher(CLASSIFIERS["forest"], 16, random_state=0).fit(X[:600], y[:600])
    assert again.encode_database(X) == fitted["forest"].encode_database(X)


def test_codes_of_two_classifiers_of_one_codebook_are_of_one_space(digits):
    X, y = digits
    codebook = Codebook.make(range(10), 16, n_reserved=2, random_state=0)
    two = [
        ClassifierHasher(each, 16, codewords=codebook, random_state=0).fit(X[:600], y[:600])
        for each in (LogisticRegression(), GaussianNB(var_smoothing=0.01))
    ]
    assert two[0].space_id_ == two[1].space_id_ == codebook.space_id
    index = two[0].make_index(two[1].encode_database(X[600:]))
    ids = index.search(two[0].encode_queries(X[:200]), 10).ids
    assert (y[600:][ids] == y[:200, None]).mean() > 0.85


def test_sparse_rows_are_taken_if_the_classifier_takes_them(digits):
    X, y = digits
    hasher = ClassifierHasher(LogisticRegression(), 16, random_state=0).fit(csr_array(X[:600]), y[:600])
    assert hasher.score(csr_array(X[600:]), y[600:]) > 0.85
    with pytest.raises(TypeError, match="sparse"):
        ClassifierHasher(GaussianNB()).fit(csr_array(X[:600]), y[:600])


def test_class_of_a_single_row_has_a_place_among_the_posteriors(digits):
    X, y = digits
    rows = np.flatnonzero(y[:400] < 3)
    rows = np.append(rows, np.flatnonzero(y == 7)[0])
    hasher = ClassifierHasher(LogisticRegression(), 16, random_state=0).fit(X[rows], y[rows])
    assert hasher.classes_.tolist() == [0, 1, 2, 7]
    np.testing.assert_allclose(hasher.training_proba().sum(axis=1), 1, atol=1e-5)


def test_classifier_that_a_file_cannot_hold_is_passed_again(digits, tmp_path):
    X, y = digits
    hasher = ClassifierHasher(KNeighborsClassifier(), 16, random_state=0).fit(X[:600], y[:600])
    hasher.save(tmp_path / "model")
    with pytest.raises(MissingFunctionError, match="KNeighborsClassifier"):
        starshl.load(tmp_path / "model")
    loaded = starshl.load(tmp_path / "model", steps=[hasher.estimator_])
    assert loaded.encode(X) == hasher.encode(X)
    with pytest.raises(ValueError, match="another"):
        starshl.load(tmp_path / "model", steps=[KNeighborsClassifier().fit(X[600:], y[600:])])
    with pytest.raises(ValueError, match="fitted classifier"):
        starshl.load(tmp_path / "model", steps=[])


@pytest.mark.parametrize(
    ("field", "damage"),
    [
        ("left_child", lambda child: child[::-1].copy()),
        ("right_child", lambda child: np.where(child >= 0, 10**6, child)),
        ("feature", lambda feature: np.full_like(feature, 64)),
        ("left_child", lambda child: np.zeros_like(child)),
    ],
)
def test_tree_that_leads_outside_its_nodes_is_refused(fitted, tmp_path, field, damage):
    fitted["tree"].save(tmp_path / "model")
    header, arrays = read_bundle(tmp_path / "model")
    arrays[f"classifier.tree.{field}"] = damage(np.array(arrays[f"classifier.tree.{field}"]))
    write_bundle(tmp_path / "broken", header, arrays)
    with pytest.raises(BundleFormatError):
        starshl.load(tmp_path / "broken")


def test_classifiers_that_cannot_be_used_are_refused(digits):
    X, y = digits
    two = RandomForestClassifier(5).fit(X[:100], y[:100] % 2)
    one = DecisionTreeClassifier().fit(X[:100], np.zeros(100, int))
    wrong = [
        (LinearSVC(), y, "has no predict_proba"),
        (Ridge(), y, "a regressor; it must be a classifier"),
        (LogisticRegression, y, "must be a scikit-learn classifier"),
        ("forest", y, "must be a scikit-learn classifier"),
        (FrozenEstimator(two), y, "is none of the 2 classes"),
        (FrozenEstimator(two), np.array(["a"] * len(y)), "is none of the 2 classes"),
        (FrozenEstimator(one), y * 0, "one class"),
        (LogisticRegression(), y * 0, "1 class"),
        (LogisticRegression(), None, "requires y"),
        (LogisticRegression(), np.where(np.arange(len(y)) < 2, np.arange(len(y)) % 2, -1), "three or more"),
        (LogisticRegression(), np.where(np.arange(len(y)) < 3, np.arange(len(y)), -1), "no two of one class"),
    ]
    for classifier, labels, part in wrong:
        with pytest.raises(ValueError, match=part):
            ClassifierHasher(classifier).fit(X, labels)
