"""Each step gives what scikit-learn's own gives, and comes back from a file the same."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from starshl.data.features import Impute, OneHot, Reduce, Scale, Step, TableFeatures, Text, UnitLength
from starshl.data.features.step_files import BUILT_IN_STEPS
from starshl.exceptions import BundleFormatError, InputError

TEXTS = ["a red car and a blue car", "fresh bread", "the red bread", "blue sky", "sky over fresh bread", "car"]


def numbers(seed=0, missing=0.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(50, [1, 10, 1000, 0.1], (40, 4)).astype(dtype)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def words(seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    cells = rng.choice(["red", "blue", "green", ""], (40, 3)).astype(object)
    cells[rng.random(cells.shape) < missing] = None
    return cells


def through_a_file(step):
    arrays = {}
    spec = step.pack("step.", arrays)
    return Step.unpack(spec, "step.", arrays, BUILT_IN_STEPS)


@parametrize_with_checks([Scale(), Impute(), Reduce(), UnitLength()])
def test_step_obeys_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("center", [True, False])
def test_scaling_is_that_of_standard_scaler(center, missing, dtype):
    X = numbers(0, missing, dtype)
    X[:, 3] = 7  # a constant column
    step, oracle = Scale(center=center).fit(X), StandardScaler(with_mean=center).fit(X)
    result, expected = step.transform(numbers(1, missing, dtype)), oracle.transform(numbers(1, missing, dtype))
    assert result.dtype == expected.dtype
    assert np.allclose(result, expected, rtol=1e-15 if dtype == np.float64 else 1e-5, atol=1e-6, equal_nan=True)


def test_sparse_rows_are_scaled_and_stay_sparse():
    X = sparse.random(30, 8, 0.3, format="csr", random_state=0)
    result = Scale(center=False).fit_transform(X)
    assert sparse.issparse(result)
    expected = StandardScaler(with_mean=False).fit_transform(X)
    assert np.allclose(result.toarray(), expected.toarray(), rtol=1e-14)
    with pytest.raises(ValueError, match="center=False"):
        Scale().fit(X)
    with pytest.raises(InputError) as refused:
        Scale(center="no").fit(np.eye(3))
    assert (refused.value.parameter, refused.value.value) == ("center", "no")


@pytest.mark.parametrize("strategy", ["median", "mean", "most_frequent"])
def test_missing_numbers_are_filled_as_by_simple_imputer(strategy):
    X = numbers(0, 0.3).round()
    oracle = SimpleImputer(strategy=strategy).fit(X)
    other = numbers(1, 0.3)
    assert np.array_equal(Impute(strategy).fit(X).transform(other), oracle.transform(other))


def test_missing_text_is_filled_as_by_simple_imputer():
    X = words(0, 0.3)
    oracle = SimpleImputer(strategy="most_frequent", missing_values=None).fit(X)
    other = words(1, 0.3)
    assert np.array_equal(Impute("most_frequent").fit(X).transform(other), oracle.transform(other))


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, pd.NaT])
def test_every_mark_of_a_missing_value_is_filled(gap):
    X = np.array([["red"], [gap], ["red"]], dtype=object)
    assert Impute("most_frequent").fit_transform(X).ravel().tolist() == ["red"] * 3


def test_column_without_any_value_is_kept():
    X = numbers()
    X[:, 1] = np.nan
    assert Impute().fit_transform(X).shape == X.shape
    assert not Impute().fit_transform(X)[:, 1].any()


def test_numbers_in_objects_are_numbers():
    X = np.array([[1, None], [3.0, 4], [float("nan"), 8]], dtype=object)
    assert Impute().fit_transform(X).tolist() == [[1, 6], [3, 4], [2, 8]]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_categories_are_those_of_one_hot_encoder(missing):
    X, other = words(0, missing), words(1, missing)
    other[0] = ["violet", "red", "red"]
    oracle = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(X)
    assert np.array_equal(OneHot().fit(X).transform(other), oracle.transform(other))


def test_categories_may_be_numbers():
    X = np.array([[3.0], [1.0], [np.nan], [3.0]])
    oracle = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(X)
    other = np.array([[1.0], [2.0], [np.nan]])
    assert np.array_equal(OneHot().fit(X).transform(other), oracle.transform(other))


def test_text_features_are_those_of_tfidf_and_svd():
    oracle = make_pipeline(TfidfVectorizer(sublinear_tf=True), TruncatedSVD(3, random_state=0)).fit(TEXTS)
    other = ["red sky", "nothing known", "", "bread bread bread"]
    assert np.allclose(Text(3).fit(TEXTS).transform(other), oracle.transform(other), rtol=0, atol=1e-12)


def test_texts_may_be_one_column_with_missing_entries():
    column = np.array([[text] for text in TEXTS], dtype=object)
    column[1, 0] = None
    step = Text(3).fit(column)
    assert not step.transform(column)[1].any()
    assert np.array_equal(step.transform(column), step.transform(["" if t is None else t for t in column[:, 0]]))


def test_number_of_text_features_is_limited_by_the_words():
    assert Text(50).fit(["red car", "blue car"]).n_features_out_ == 2
    assert Text(50).fit(["red", "red"]).n_features_out_ == 1


def test_frequent_words_count_less_with_a_higher_power():
    texts = [f"the {word} in the {place}" for word in ("cup", "bank", "train") for place in ("park", "town", "hall")]
    query = ["the cup in the end"]

    def share_of_the_cup(power):
        step = Text(50, idf_power=power).fit(texts)
        same, other = step.transform(["cup"])[0], step.transform(["the in"])[0]
        vector = step.transform(query)[0]
        return (vector @ same) / (vector @ other)

    assert share_of_the_cup(3.0) > 2 * share_of_the_cup(1.0)
    assert np.allclose(Text(3, idf_power=3.0).fit(texts).idf_, Text(3).fit(texts).idf_ ** 3)


@pytest.mark.parametrize(
    ("step", "rows", "message"),
    [
        (Impute("best"), numbers(), "choose one of"),
        (Impute(), words(), "TableFeatures"),
        (Impute(), np.array([[np.inf]]), "infinity"),
        (Text(0), TEXTS, "n_components is 0"),
        (Text(idf_power=-1), TEXTS, "idf_power is -1"),
        (Text(), [1, 2], "texts are strings"),
        (Text(), [["a", "b"]], "one column of texts"),
        (Text(), ["a", "b"], "no word of two"),
        (Text(min_count=9), TEXTS, "lower min_count"),
    ],
    ids=str,
)
def test_bad_input_is_refused_with_a_way_out(step, rows, message):
    with pytest.raises(ValueError, match=message):
        step.fit(rows)


FITTED = {
    "Scale": lambda: (Scale().fit(numbers()), numbers(1)),
    "Impute": lambda: (Impute().fit(numbers(0, 0.2)), numbers(1, 0.2)),
    "Impute text": lambda: (Impute("most_frequent").fit(words(0, 0.2)), words(1, 0.2)),
    "OneHot": lambda: (OneHot().fit(words(0, 0.2)), words(1, 0.2)),
    "OneHot numbers": lambda: (OneHot().fit(numbers(0, 0.2).round(-1)), numbers(1, 0.2).round(-1)),
    "Text": lambda: (Text(3).fit(TEXTS), ["red sky"]),
    "TableFeatures": lambda: (
        TableFeatures(text=3).fit(np.column_stack([words(0, 0.2), TEXTS * 6 + TEXTS[:4], numbers(0, 0.2)])),
        np.column_stack([words(1, 0.2), TEXTS * 6 + TEXTS[:4], numbers(1, 0.2)]),
    ),
}


@pytest.mark.parametrize("name", FITTED)
def test_step_comes_back_from_a_file_the_same(name):
    step, rows = FITTED[name]()
    loaded = through_a_file(step)
    result = step.transform(rows)
    assert np.array_equal(loaded.transform(rows), result, equal_nan=result.dtype.kind == "f")
    assert loaded.get_params() == step.get_params()
    assert clone(loaded).get_params() == clone(step).get_params()


@pytest.mark.parametrize("name", FITTED)
def test_edited_step_is_refused(name):
    step, _ = FITTED[name]()
    arrays = {}
    spec = step.pack("step.", arrays)
    for key in list(spec["fitted"]):
        edited = spec | {"fitted": {k: v for k, v in spec["fitted"].items() if k != key}}
        with pytest.raises((BundleFormatError, AttributeError)):
            Step.unpack(edited, "step.", arrays, BUILT_IN_STEPS)
    for key in arrays:
        with pytest.raises(BundleFormatError):
            Step.unpack(spec, "step.", arrays | {key: arrays[key][:-1]}, BUILT_IN_STEPS)
    for edit in ({"name": "os.system"}, {"fitted": spec["fitted"] | {"transform": {"kind": "value", "value": 1}}}):
        with pytest.raises(BundleFormatError):
            Step.unpack(spec | edit, "step.", arrays, BUILT_IN_STEPS)


def test_reduced_rows_are_those_of_pca_on_balanced_views():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(5, 1, (60, 3)), rng.normal(0, 1000, (60, 4))])
    step = Reduce(3, view_sizes=[3, 4]).fit(X)
    views = [view - view.mean(axis=0) for view in (X[:, :3], X[:, 3:])]
    balanced = np.hstack([view / np.sqrt((view**2).sum(axis=1).mean()) for view in views])
    expected = PCA(3).fit_transform(balanced)
    assert np.allclose(np.abs(step.transform(X)), np.abs(expected), atol=1e-4)
    assert np.array_equal(through_a_file(step).transform(X), step.transform(X))


def test_reduction_gives_fewer_features_where_rows_do_not_differ():
    X = np.outer(np.arange(10.0), np.ones(5))
    assert Reduce(4).fit_transform(X).shape == (10, 1)
    assert Reduce(4).fit_transform(np.ones((3, 5))).tolist() == [[0.0]] * 3


def test_views_that_do_not_cover_the_columns_are_refused():
    with pytest.raises(ValueError, match="3 columns; X has 4"):
        Reduce(view_sizes=[1, 2]).fit(numbers())


def test_rows_of_unit_length_come_back_from_a_file():
    step = UnitLength().fit(numbers())
    assert np.allclose(np.linalg.norm(through_a_file(step).transform(numbers(1)), axis=1), 1)
