"""StarSHL as scikit-learn sees it: checks, pipelines, containers, labels."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from starshl import StarSHL
from starshl.learning.kernels import GraphGaussian
from starshl.testing import hasher_checks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WEIGHT_CHECK = "equal to the tolerance of the SVM solver, not to the 1e-7 that this check asks for"
PER_BIT = dict.fromkeys(
    ("check_classifiers_train", "check_classifiers_classes"),
    "decision_function returns one score per bit; the checks want (n,) for two classes, one column per class for more",
)
EXPECTED_FAILURES = {
    "scaled": {
        "check_sample_weight_equivalence_on_dense_data": WEIGHT_CHECK,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHT_CHECK,
        **PER_BIT,
    },
    "precomputed": {
        **PER_BIT,
        "check_classifiers_one_label_sample_weights": "the check's X is no kernel matrix: it is not symmetric",
        "check_positive_only_tag_during_fit": "the check's X is no kernel matrix: it is not positive semi-definite",
        "check_estimators_dtypes": "rounding a kernel matrix to integers makes it indefinite, which is refused",
        "check_estimators_nan_inf": "the check's X is not square, and that is reported first",
    },
}


def expected_failures(estimator):
    return EXPECTED_FAILURES[estimator.kernels]


@parametrize_with_checks(
    [StarSHL(4, random_state=0), StarSHL(4, kernels="precomputed", random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_star_shl_obeys_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "name",
    [
        "declared_capabilities_are_there_and_no_others",
        "rows_are_classified_as_declared",
        "items_are_found_by_the_index_of_the_hasher",
        "fitted_hasher_is_changed_as_declared",
        "classes_of_a_fit_without_labels_are_clusters",
    ],
)
def test_star_shl_does_what_it_declares(name):
    dict(hasher_checks(StarSHL(4, random_state=0)))[name]()


@pytest.fixture(scope="module")
def small(digits):
    X, y = digits
    return X[:150], y[:150]


@pytest.fixture(scope="module")
def fitted(small):
    return StarSHL(8, random_state=0).fit(*small)


def test_star_shl_is_a_transformer_and_a_classifier(fitted):
    assert is_classifier(fitted)
    assert not is_regressor(fitted)
    assert hasattr(fitted, "transform")


def test_cross_validation_keeps_every_class_in_every_fold():
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(StarSHL(8, random_state=0), X, y).min() > 0.8


def test_cross_validation_needs_no_labels(small):
    X, _ = small
    scores = cross_val_score(StarSHL(8, n_codewords=5, random_state=0), X, cv=3)
    assert np.isfinite(scores).all()


def test_shapes_and_types_of_everything_learned(fitted, small):
    X, y = small
    n_kernels = len(fitted.kernels_)
    assert fitted.classes_.tolist() == list(range(10))
    assert fitted.codewords_.shape == (10, 8)
    assert fitted.codewords_.dtype == np.int8
    assert fitted.kernel_weights_.shape == (8, n_kernels)
    assert fitted.dual_coef_.shape == (8, 150)
    assert fitted.intercept_.shape == (8,)
    assert len(fitted.objective_history_) == len(fitted.surrogate_history_) == len(fitted.distortion_history_)
    assert len(fitted.objective_history_) >= fitted.n_iter_ + 2
    assert fitted.decision_function(X).shape == (150, 8)
    assert fitted.transform(X).dtype == np.int8
    assert fitted.encode(X).packed.shape == (150, 1)
    assert fitted.codeword_distances(X).shape == fitted.codeword_distances(X, metric="hinge").shape == (150, 10)
    assert fitted.get_feature_names_out().tolist() == [f"starshl{b}" for b in range(8)]
    assert fitted.predict(X).dtype == y.dtype


def test_defaults_are_the_contract():
    assert StarSHL().get_params() == {
        "n_bits": 32,
        "kernels": "scaled",
        "views": None,
        "C": 10.0,
        "kernel_norm": 2.0,
        "codewords": "separated",
        "n_codewords": None,
        "kernel_weights": None,
        "update_codewords": True,
        "codeword_constraint": "distinct",
        "keep_clusters": True,
        "unlabeled": "graph",
        "unlabeled_weight": 1.0,
        "solver": "auto",
        "max_iter": 20,
        "tol": 1e-3,
        "svm_tol": 1e-3,
        "n_jobs": None,
        "max_memory": None,
        "random_state": None,
        "verbose": 0,
    }


def test_paper_settings_can_be_overridden():
    paper = StarSHL.paper(25, C=5.0)
    assert (paper.n_bits, paper.kernels, paper.C, paper.tol) == (25, "paper", 5.0, 0.05)
    assert (paper.codewords, paper.kernel_weights, paper.codeword_constraint) == ("random", "random", "none")
    assert paper.unlabeled == "nearest"
    assert StarSHL.paper().n_bits == StarSHL().n_bits


def test_works_in_a_pipeline_and_a_grid_search(small):
    X, y = small
    search = GridSearchCV(
        make_pipeline(StandardScaler(), StarSHL(6, random_state=0, max_iter=3)), {"starshl__C": [0.1, 10.0]}, cv=2
    ).fit(X, y)
    assert search.best_score_ > 0.6
    assert search.transform(X).shape == (150, 6)


def test_a_precomputed_kernel_works_under_cross_validation(small):
    X, y = small
    K = X @ X.T
    assert np.mean(cross_val_score(StarSHL(8, kernels="precomputed", random_state=0), K, y, cv=3)) > 0.7


def test_clone_and_pickle_keep_the_settings_and_the_codes(fitted, small):
    X, _y = small
    assert clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_go_in_and_come_out(small, library):
    X, y = small
    names = [f"pixel{j}" for j in range(64)]
    make = pd.DataFrame if library == "pandas" else pl.DataFrame
    series = pd.Series(y) if library == "pandas" else pl.Series(y)
    frame = make(X, columns=names) if library == "pandas" else make(X, schema=names)
    hasher = StarSHL(5, random_state=0, max_iter=2).set_output(transform=library).fit(frame, series)
    plain = StarSHL(5, random_state=0, max_iter=2).fit(X, y)
    assert hasher.feature_names_in_.tolist() == names
    codes = hasher.transform(frame)
    assert isinstance(codes, make)
    assert list(codes.columns) == [f"starshl{b}" for b in range(5)]
    assert np.array_equal(codes.to_numpy(), plain.transform(X))


LABELS = {
    "integers": (np.array([3, -1, 7, 3, 7, -1]), [3, 7], [1, 5]),
    "floats": (np.array([3.0, np.nan, 7.0, 3.0, 7.0, np.nan]), [3.0, 7.0], [1, 5]),
    "objects": (np.array(["a", None, "b", "a", "b", float("nan")], dtype=object), ["a", "b"], [1, 5]),
    "strings": (np.array(["a", "-1", "b", "a", "b", "-1"]), ["-1", "a", "b"], []),
    "strings with gaps": (np.array(["a", "", "b", "a", "b", ""]), ["a", "b"], [1, 5]),
    "objects with empty text": (np.array(["a", "", "b", "a", "b", ""], dtype=object), ["a", "b"], [1, 5]),
    "booleans": (np.array([True, False, True, False, True, True]), [False, True], []),
    "a column": (np.array([[3], [-1], [7], [3], [7], [-1]]), [3, 7], [1, 5]),
}

WITH_GAPS = {
    "pandas": pd.Series([3, None, 7, 3, 7, None], dtype="Int64"),
    "pandas without a sign": pd.Series([3, None, 7, 3, 7, None], dtype="UInt8"),
    "pandas in one column": pd.DataFrame({"label": pd.array([3, None, 7, 3, 7, None], dtype="Int64")}),
    "polars": pl.Series([3, None, 7, 3, 7, None]),
}


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("kind", LABELS)
def test_each_kind_of_labels_marks_unlabeled_rows_its_own_way(kind):
    y, classes, unlabeled = LABELS[kind]
    X = np.random.default_rng(0).standard_normal((6, 4))
    X[:, 0] += [5, 5, -5, 5, -5, 5]
    hasher = StarSHL(6, random_state=0).fit(X, y)
    assert hasher.classes_.tolist() == classes
    given = np.asarray(y).ravel()
    labeled = np.setdiff1d(np.arange(6), unlabeled)
    assert hasher.transduction_.dtype == given.dtype
    assert hasher.transduction_[labeled].tolist() == given[labeled].tolist()
    assert set(hasher.transduction_[unlabeled].tolist()) <= set(classes)


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("kind", WITH_GAPS)
def test_integers_with_gaps_stay_integers(kind):
    X = np.random.default_rng(0).standard_normal((6, 4))
    hasher = StarSHL(6, random_state=0).fit(X, WITH_GAPS[kind])
    assert hasher.classes_.tolist() == [3, 7]
    assert hasher.classes_.dtype.kind == hasher.transduction_.dtype.kind == "i"
    assert hasher.transduction_[[0, 2, 3, 4]].tolist() == [3, 7, 3, 7]


def test_categories_keep_their_type_beside_gaps():
    X = np.random.default_rng(0).standard_normal((6, 4))
    hasher = StarSHL(6, random_state=0).fit(X, pd.Categorical([3, None, 7, 3, 7, None]))
    assert [type(label) for label in hasher.predict(X)] == [int] * 6


def test_labels_of_plus_and_minus_one_are_told_that_minus_one_is_unlabeled():
    X = np.random.default_rng(0).standard_normal((6, 4))
    with pytest.raises(ValueError, match="3 rows of y that are -1 count as unlabeled"):
        StarSHL(6, random_state=0).fit(X, [-1, 1, -1, 1, -1, 1])


@pytest.mark.parametrize("dtype", [np.float64, object])
def test_measurements_are_not_taken_for_labels(dtype):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 4)), rng.standard_normal(20).astype(dtype)
    with pytest.raises(ValueError, match="labels name classes"):
        StarSHL(6).fit(X, y)
    with pytest.raises(ValueError, match="labels name classes"):
        StarSHL(6).fit(X, np.array([np.float32(value) for value in y], dtype=object))


def test_long_codes_are_learned():
    X = np.random.default_rng(0).standard_normal((12, 3))
    assert StarSHL(300, random_state=0).fit(X, np.arange(12) % 2).transform(X).shape == (12, 300)


def test_the_graph_kernel_has_a_name(small):
    X, y = small
    few = np.where(np.arange(len(y)) < 40, y, -1)
    named, listed = (
        StarSHL(8, kernels=kernels, random_state=0).fit(X, few) for kernels in ("graph", [GraphGaussian()])
    )
    assert np.array_equal(named.decision_function(X), listed.decision_function(X))


@pytest.mark.parametrize("unlabeled", [None, float("nan")])
def test_a_list_of_strings_marks_unlabeled_rows_as_an_object_array_does(unlabeled):
    X = np.random.default_rng(0).standard_normal((6, 4))
    hasher = StarSHL(6, random_state=0).fit(X, ["a", unlabeled, "b", "a", "b", unlabeled])
    assert hasher.classes_.tolist() == ["a", "b"]
    assert hasher.transduction_.dtype == object
    assert set(hasher.transduction_) == {"a", "b"}


def test_string_labels_come_back_as_strings(small):
    X, y = small
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[y]
    hasher = StarSHL(16, random_state=0).fit(X, names)
    assert hasher.classes_.tolist() == sorted(set(names))
    assert np.mean(hasher.predict(X) == names) > 0.95
    assert hasher.score(X, names) > 0.95
