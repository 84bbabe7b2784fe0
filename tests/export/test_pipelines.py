"""Hashers at the end of scikit-learn pipelines go through skl2onnx."""

import numpy as np
import pytest
import skl2onnx
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from starshl import StarRidge
from starshl.export import register_converters
from starshl.export.onnx_model import open_session
from starshl.hashers import ClassifierHasher, Facts, LinearHasher, all_or_nothing
from starshl.hashers.baselines import ITQ


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


def codes_of(pipeline, rows):
    model = skl2onnx.to_onnx(pipeline, rows[:1])
    (codes,) = open_session(model).run(["codes"], {"X": rows})
    return codes


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    "hasher",
    [StarRidge(20, random_state=0), ITQ(20, random_state=0), ClassifierHasher(n_bits=20, random_state=0)],
    ids=lambda hasher: type(hasher).__name__,
)
def test_a_pipeline_converts_and_gives_the_bytes_of_encode(hasher, precision, digits):
    register_converters()
    X, y = digits
    rows = X.astype(precision)
    pipeline = make_pipeline(StandardScaler(), PCA(30, random_state=0), hasher).fit(X[:200], y[:200])
    expected = pipeline[-1].encode(pipeline[:-1].transform(rows)).packed
    assert np.mean(codes_of(pipeline, rows) != expected) <= (0 if precision == "float64" else 0.01)


def test_converters_of_further_classes_can_be_registered(digits):
    class FirstColumns(LinearHasher):
        facts = Facts(paper="Nobody: Nothing", year=2020, labels="ignored", cost="nothing")

        def __init__(self, n_jobs=None):
            self.n_jobs = n_jobs

        @all_or_nothing
        def fit(self, X, y=None):
            self.n_features_in_, self.n_bits_ = X.shape[1], 3
            self.components_, self.intercept_ = np.eye(3, X.shape[1]), np.zeros(3)
            return self

    register_converters(FirstColumns)
    X, _ = digits
    pipeline = make_pipeline(StandardScaler(), FirstColumns()).fit(X[:, 2:])
    expected = pipeline[-1].encode(pipeline[:-1].transform(X[:, 2:])).packed
    np.testing.assert_array_equal(codes_of(pipeline, X[:, 2:]), expected)


def test_an_opset_that_is_too_old_is_refused(digits):
    register_converters()
    X, _ = digits
    pipeline = make_pipeline(StandardScaler(), ITQ(4, random_state=0)).fit(X)
    with pytest.raises(ValueError, match="opset"):
        skl2onnx.to_onnx(pipeline, X[:1], target_opset=15)
